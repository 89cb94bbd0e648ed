"""A suggestion and the text it belongs to, so that it is shown nowhere else."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Anchor:
    """A cursor in a text: what stood before and after it when a completion was asked for."""

    before: str
    after: str

    def typed(self, before: str, after: str) -> str | None:
        """What was typed here since, seen from a cursor; None where anything else happened to the text."""
        if after != self.after or not before.startswith(self.before):
            return None
        return before[len(self.before) :]

    def cursor(self, text: str) -> int | None:
        """Where the cursor is in a text to which nothing happened but that something was typed here; else None."""
        cursor = len(text) - len(self.after)
        if cursor < len(self.before) or not text.endswith(self.after) or not text.startswith(self.before):
            return None
        return cursor


@dataclass(frozen=True, slots=True)
class Suggestion:
    """A text to be put at an anchor."""

    id: str
    """names it in commands and notifications"""
    request: str
    """the daemon's id of the completion"""
    anchor: Anchor
    text: str
    """line feeds alone"""

    def left(self, text: str) -> tuple[int, str] | None:
        """(where the cursor is, what is left) in a text to which nothing happened but typing along it; else None."""
        cursor = self.anchor.cursor(text)
        rest = None if cursor is None else self.rest(text[len(self.anchor.before) : cursor])
        return None if cursor is None or rest is None else (cursor, rest)

    def rest(self, typed: str | None) -> str | None:
        """What is left of it after `typed` (see `Anchor.typed`); None where that leads elsewhere, or to its end."""
        if typed is None or not self.text.startswith(typed) or len(typed) == len(self.text):
            return None
        return self.text[len(typed) :]


@dataclass(frozen=True, slots=True)
class Offer:
    """An answer that shows something."""

    suggestion: Suggestion
    text: str
    """what is left of it"""
    cursor: int
    """where it goes"""
    again: bool
    """it was offered before, and the user types along it"""


@dataclass(frozen=True, slots=True)
class Silence:
    """An answer that shows nothing."""

    why: str
    """a clause for people; "" where it needs no explanation"""
