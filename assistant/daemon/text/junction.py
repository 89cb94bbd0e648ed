"""Where a text meets what follows the cursor: the rest of its line, and brackets that are closed already."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from assistant.daemon.text import grammar
from assistant.daemon.text.place import Place, Shape
from assistant.daemon.text.reasons import Reason
from assistant.daemon.text.scan import Event, code_of, quoted, scan

_LEXEME = re.compile(r"\w+|[^\w\s]")
_CLOSING = re.compile(r"[\s)\]}>\"'`,;:.]*")
_TELLING = 2
"""lexemes that the end of a text and the beginning of the rest must share before one of them goes"""


@dataclass(frozen=True, slots=True)
class End:
    """A text ends before the character `at`."""

    at: int
    reason: Reason


def end_of(place: Place, text: str) -> End | None:
    """Where a text has to end for the sake of what follows; None where it need not.

    Where it ends with the rest of the line, that goes. Failing that, a text that keeps the brackets as they were stays
    whole: `a).bar(b` between `f(` and `)` is one. Otherwise it ends at the rest of the line, wherever that is written
    first, or at the first bracket that what follows closes as well.
    """
    rest = place.rest.strip()
    found = list(_rests(place, text, rest)) if rest and not place.before_line else []
    exact = [at for at in found if not code_of(text[at + len(rest) :], place.syntax)]
    if exact:
        return End(exact[0], Reason.JUNCTION)
    excess = first_excess(place, text)
    if excess is None or (not _ends_string(place, excess) and keeps(place, text)):
        shared = _shared(text, rest) if place.shape is Shape.JOIN else 0
        return End(len(text.rstrip()) - shared, Reason.JUNCTION) if shared else None
    return End(_whole(place, text[: min([*found[:1], excess.at])]), Reason.JUNCTION)


def first_excess(place: Place, text: str) -> Event | None:
    """Where a text first closes what is closed behind the cursor as well, or what was never open."""
    for event in scan(text, place.syntax, place.stack).events:
        if event.opens:
            continue
        if event.stray and (place.syntax.blocks != "none" or event.symbol in place.closers):
            return event
        if len(event.stack) < len(place.stack) and place.leaves(event.stack) > 0:
            return event
    return None


def _whole(place: Place, text: str) -> int:
    """The length of the longest beginning of a text that leaves nothing open."""
    here = scan(text, place.syntax, place.stack)
    while place.leaves(here.stack) > 0:
        opened = [event.at for event in here.events if event.opens]
        if not opened:
            return 0
        text = text[: opened[-1]]
        here = scan(text, place.syntax, place.stack)
    return len(text)


def _ends_string(place: Place, event: Event) -> bool:
    """A string that is closed behind the cursor is never left by its content."""
    return quoted((event.symbol,)) and place.stack[-1:] == (event.symbol,)


def keeps(place: Place, text: str) -> bool:
    """Whether with `text` no more brackets lack a partner than without."""
    here = scan(text, place.syntax, place.stack)
    return not here.unmatched and place.leaves(here.stack) <= 0


def _rests(place: Place, text: str, rest: str) -> Iterator[int]:
    """Where the rest of the line is written in the last line of a text, with brackets as they were before it."""
    at = text.find(rest, text.rfind("\n") + 1)
    while at >= 0:
        if keeps(place, text[:at]):
            yield at
        at = text.find(rest, at + 1)


def _shared(text: str, rest: str) -> int:
    """Characters that end a text and begin the rest of the line, where they say enough to be no chance."""
    ended = text.rstrip()
    for size in range(min(len(ended), len(rest)), 1, -1):
        shared = rest[:size]
        if ended.endswith(shared) and len(_LEXEME.findall(shared)) >= _TELLING and re.search(r"\w", shared):
            return size
    return 0


def join(place: Place, text: str, shown: str, *, own_line: bool) -> str | None:
    """A text as it goes before the rest of its line; None where it fits in no way.

    Args:
        place: where; text follows on the line.
        text: what was written.
        shown: that without white space at its end.
        own_line: it ended with a line.
    """
    if place.before_line:
        lines = f"{shown}\n{place.before}"
        if own_line or place.rest[0].isspace() or _errors(place, shown) > _errors(place, lines):
            return lines
    here = scan(text, place.syntax, place.stack)
    if here.commented and not place.in_text:  # it would swallow the rest of the line
        text = text[: here.comment_at]
        shown = text.rstrip()
    fitting = text if not own_line and _needs_space(place, text, shown) else shown
    if not shown:
        return None
    if _CLOSING.fullmatch(place.rest) or not own_line or place.in_text:
        return fitting
    found = _errors(place, fitting)
    return fitting if found == 0 or found < _errors(place, "") else None


def _needs_space(place: Place, text: str, shown: str) -> bool:
    return text != shown and not place.rest[:1].isspace()


def _errors(place: Place, text: str) -> int:
    """Broken places in the lines that a text would stand in; where no grammar tells, words that run together."""
    first = place.head.count("\n")
    found = grammar.errors(place.language, place.head + text + place.tail, first, first + text.count("\n") + 1)
    if found is not None:
        return found
    return int(bool(text) and text[-1].isalnum() and place.rest[:1].isalnum())
