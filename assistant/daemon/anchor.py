"""Prompts that grow while one types, so that the rows of the text after the cursor are read once, not with every key.

A fill-in-the-middle prompt is prefix, suffix, middle. Were each key's prompt made anew, the typed character would stand
before the suffix, whose rows would all be computed again. So a prompt is kept as an anchor, at the beginning of the
line where it was made, and what stands between the anchor and the cursor is written behind it, as the beginning of the
middle: which is what it is. The completion is the target's own for that prompt. It may differ from the one for a prompt
made anew at the cursor, as for any two windows of a text.

Editors close what one opens: `(` is typed, and `)` appears behind the cursor. Where the reader allows it, such closers
are left out of the prompt, so that they do not part it from its anchor: the target writes them itself, and the text
policy ends a suggestion before what is closed behind the cursor already.

A new anchor is made where the text around the old one changed otherwise, where the cursor went back before it, and
where too much was typed since: then the text after the cursor is read again.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

from assistant.daemon.prompt import Surroundings, Window, build_prompt, heal
from assistant.engine.types import Prompt
from models.fim import FimFormat
from models.tokenizer import Tokenizer

LookAround = Callable[[], Surroundings | None]
TYPED_TOKENS = 192
"""tokens between anchor and cursor beyond which a new anchor is made"""
_TYPED_CHARACTERS = 4096
_LINE_CHARACTERS = 1024
"""a longer line is anchored within"""
_CLOSERS = {")": "(", "]": "[", "}": "{", '"': '"', "'": "'", "`": "`"}
"""what editors insert behind the cursor -> for what"""
_CLOSED = 8
"""closers that are left out at most"""


@dataclass(frozen=True, slots=True)
class Place:
    """A cursor in a text."""

    text: str
    cursor: int


@dataclass(frozen=True, slots=True)
class Reader:
    """What turns places into prompts for one target."""

    tokenizer: Tokenizer
    fim: FimFormat | None
    window: Window
    room: int = 1 << 30
    """most tokens of a prompt that leave the context enough for what is written"""
    surroundings: Surroundings | None = None
    closers: bool = False
    """whether closers right behind the cursor may be left out, of what was opened since the anchor"""


@dataclass(frozen=True, slots=True)
class Anchor:
    """A prompt that later ones begin with, and the text that it was made of."""

    prompt: Prompt
    before: str
    """what the prompt's prefix spells"""
    after: str
    """what its suffix spells"""
    from_start: bool
    """whether `before` begins with the document"""
    to_end: bool
    """whether `after` ends with it"""
    window: Window

    def typed(self, place: Place, *, closers: bool = False) -> str | None:
        """What stands between the anchor and a cursor; None where this is not the text of the anchor any more.

        With `closers` it is also where closers of what was typed stand behind the cursor besides.
        """
        typed = self._since(place) if self._goes_on(place.text, place.cursor) else None
        if typed is not None or not closers:
            return typed
        for end in range(place.cursor + 1, min(place.cursor + _CLOSED, len(place.text)) + 1):
            if place.text[end - 1] not in _CLOSERS:
                return None
            if self._goes_on(place.text, end):
                typed = self._since(place)
                closed = place.text[place.cursor : end]
                return typed if typed and all(_CLOSERS[closer] in typed for closer in closed) else None
        return None

    def _goes_on(self, text: str, start: int) -> bool:
        """Whether the text from a place on is what the anchor's suffix spells."""
        if not self.to_end:
            return text.startswith(self.after, start)
        rest = text[start:]
        return rest == self.after or not (self.after or rest.strip())  # white space alone is no suffix

    def _since(self, place: Place) -> str | None:
        """What stands between the anchor's prefix and a cursor, if the prefix stands before that."""
        text, cursor = place.text, place.cursor
        if self.from_start:
            return text[len(self.before) : cursor] if text.startswith(self.before, 0, cursor) else None
        first = max(0, cursor - len(self.before) - _TYPED_CHARACTERS)
        found = text.rfind(self.before, first, cursor) if self.before else -1
        return None if found < 0 else text[found + len(self.before) : cursor]


def prompt_at(
    place: Place, reader: Reader, anchor: Anchor | None, look_around: LookAround | None = None
) -> tuple[Prompt, Anchor | None]:
    """The prompt for a place, and the anchor that it begins with (None: the text there cannot be one).

    Args:
        place: the cursor.
        reader: how much is read; where `look_around` is given, its surroundings are not.
        anchor: of the prompt before, if there was one. What it holds of other files stays as it is while one types.
        look_around: finds surroundings; asked only where a new anchor is made.
    """
    if anchor is not None and anchor.window == reader.window:
        prompt = _continued(anchor, place, reader)
        if prompt is not None:
            return prompt, anchor
    if look_around is not None:
        reader = replace(reader, surroundings=look_around())
    anchor = _anchor(place, reader)
    prompt = None if anchor is None else _continued(anchor, place, reader)
    if prompt is not None:
        return prompt, anchor
    return prompt_here(place, reader), None


def prompt_here(place: Place, reader: Reader) -> Prompt:
    """The prompt of a place, without an anchor."""
    return build_prompt(place.text, place.cursor, reader.tokenizer, reader.fim, reader.window, reader.surroundings)


def _anchor(place: Place, reader: Reader) -> Anchor | None:
    """An anchor at the beginning of the cursor's line: the prompt of the text without what the line holds so far.

    In a line that is too long for that, it stands before the last word.
    """
    start = place.text.rfind("\n", 0, place.cursor) + 1
    if place.cursor - start > _LINE_CHARACTERS:
        start = place.cursor
    text = place.text[:start] + place.text[place.cursor :]
    prompt = prompt_here(Place(text, start), reader)
    spelt = (reader.tokenizer.join(prompt.prefix), prompt.forced, reader.tokenizer.join(prompt.suffix))
    before, taken, after = (data.decode("utf-8", "replace") for data in spelt)
    if not text.endswith(before + taken, 0, start) or not text.startswith(after, start):
        return None  # half a character at an edge, or a surrogate: rare enough to do without
    return Anchor(
        replace(prompt, forced=b""),
        before,
        after,
        from_start=len(before) + len(taken) == start,
        to_end=len(after) == len(text) - start or not text[start:].strip(),
        window=reader.window,
    )


def _continued(anchor: Anchor, place: Place, reader: Reader) -> Prompt | None:
    """The anchor's prompt with what was typed since; None where the text changed, or too much was typed."""
    typed = anchor.typed(place, closers=reader.closers)
    if typed is None or len(typed) > _TYPED_CHARACTERS:
        return None
    ids, forced = heal(reader.tokenizer.encode(typed), typed, reader.tokenizer)
    more, prompt = tuple(ids), anchor.prompt
    if len(more) > TYPED_TOKENS or len(prompt.ids) + len(more) > reader.room:
        return None
    return replace(prompt, ids=prompt.ids + more, prefix=prompt.prefix + more, forced=forced)
