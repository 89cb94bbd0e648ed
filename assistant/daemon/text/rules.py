"""The rule of the text policy: where a text that is being written ends, and what of it is certain.

A completion is one statement: it ends with its line. It has more lines only while it leaves something open that what
follows the cursor does not close: a bracket, a string, a block whose body is not there yet. Where a block without a
body begins at the cursor, the completion is that body. It ends early where it would write again what follows the
cursor, or what it has just written, or would close a bracket that is closed already.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from assistant.daemon.text import junction
from assistant.daemon.text.fitting import may_fit_yet, may_misfit, misfits, without_empty_block
from assistant.daemon.text.indent import Reindent, width
from assistant.daemon.text.junction import End
from assistant.daemon.text.markers import begins_marker, marker_at
from assistant.daemon.text.place import Place, Shape, opens_block
from assistant.daemon.text.reasons import Reason
from assistant.daemon.text.repeats import bare, circle, circle_within, may_repeat, repeats_following
from assistant.daemon.text.scan import Scan, code_of, quoted, scan, spelt

_REMARKS = 8
"""lines of comments that may come before the statement that they belong to"""
_BLANK = 4
"""blank lines after which nothing is expected to come"""


class Limits(Protocol):
    """The part of the settings that bounds a text."""

    @property
    def multiline(self) -> bool | None: ...
    @property
    def max_lines(self) -> int: ...


@dataclass(frozen=True, slots=True)
class Ruling:
    """What of a text is certain, or all that is shown of it."""

    text: str
    finished: bool = False
    reason: Reason = Reason.NONE


def judge(place: Place, limits: Limits, written: str, *, final: bool = False, stopped: bool = True) -> Ruling:
    """What stands of everything `written` so far; `final`: no more comes, be it ended (`stopped`) or cut off."""
    text = written
    end = marker_at(text, place.head + place.tail)
    if end is not None:
        text, final, stopped = text[:end], True, False
    text = _laid_out(place, text)
    if (loop := circle_within(text)) is not None:
        return _finish(place, text[:loop], Reason.LOOP)
    lines = text.split("\n")
    for count in range(1, len(lines)):
        found = _after_line(place, limits, lines[:count])
        if found is not None:
            return _finish(place, text[: found.at], found.reason, line_ended=found.at == len("\n".join(lines[:count])))
    if final:
        return _at_end(place, limits, lines, Reason.MARKER if end is not None else _how(stopped=stopped))
    return Ruling(_certain(place, lines))


def _how(*, stopped: bool) -> Reason:
    return Reason.STOPPED if stopped else Reason.LENGTH


def _laid_out(place: Place, text: str) -> str:
    """The text with the file's indentation, without blank lines before it where the cursor's line is blank."""
    lines = text.split("\n")
    if place.on_new_line and len(lines) > 1 and not lines[0].strip():
        while len(lines) > 1 and not lines[0].strip():
            del lines[0]
        lines[0] = lines[0].removeprefix(place.before)
    style = Reindent(place.style)
    fresh = [style.line(line) for line in (lines if not place.before else lines[1:])]
    return "\n".join(fresh if not place.before else [lines[0], *fresh])


def _after_line(place: Place, limits: Limits, lines: Sequence[str]) -> End | None:
    """Whether a text of complete lines ends with the last of them, or within; None where it goes on."""
    text = "\n".join(lines)
    found = _repetition(place, lines) or junction.end_of(place, text)
    if found is not None:
        return found
    if not text.strip():
        return None if len(lines) < _BLANK else End(0, Reason.EMPTY)
    here = scan(text, place.syntax, place.stack)
    goes_on = place.leaves(here.stack) > 0 or _goes_on(place, lines)
    if not goes_on and misfits(place, lines):
        return None if may_fit_yet(place, lines) else End(0, Reason.MISFIT)
    if limits.multiline is False or len(lines) >= limits.max_lines:
        return End(len(text), Reason.LENGTH if len(lines) > 1 else Reason.LINE)
    return None if goes_on else _complete(place, lines, here)


def _complete(place: Place, lines: Sequence[str], here: Scan) -> End | None:
    """Whether complete lines that leave no bracket open are all that is wanted."""
    text = "\n".join(lines)
    if place.in_text or place.shape is Shape.JOIN:
        return End(len(text), Reason.LINE)
    return _block_end(place, lines, here) if place.shape is Shape.BLOCK else _statement_end(place, lines)


def _repetition(place: Place, lines: Sequence[str]) -> End | None:
    joined = [place.before + lines[0], *lines[1:]]
    for index, first, later in (
        (repeats_following(joined, place.following), Reason.REPEATS_NEXT, Reason.JUNCTION),
        (circle(joined, place.above), Reason.REPEATS_ABOVE, Reason.LOOP),
    ):
        if index is not None:
            before = lines[:index]
            if not "".join(before).strip():
                return End(0, first)
            return End(0, Reason.MISFIT) if misfits(place, before) else End(len("\n".join(before)), later)
    return None


def _goes_on(place: Place, lines: Sequence[str]) -> bool:
    """A line that is not a statement yet: comments and decorators belong to what follows them."""
    if place.in_text or not place.on_new_line:
        return False
    if lines[-1].rstrip().endswith("\\"):
        return True
    codes = [code_of(line, place.syntax) for line in lines]
    remarks = place.syntax.blocks != "none" and all(not code or code.startswith("@") for code in codes)
    return remarks and len(lines) < _REMARKS


def _statement_end(place: Place, lines: Sequence[str]) -> End | None:
    """The end of a statement with its blocks, where brackets are closed."""
    text = "\n".join(lines)
    if place.syntax.blocks != "indent":
        return End(len(text), Reason.LINE if len(lines) == 1 else Reason.BLOCK)
    first = next(index for index, line in enumerate(lines) if line.strip())
    base = width((place.before if first == 0 else "") + lines[first], place.style.tab)
    compound = any(opens_block(line, place.syntax) for line in lines[:-1])
    last = (place.before if len(lines) == 1 else "") + lines[-1]
    if compound and not last.strip():
        return None
    if compound and width(last, place.style.tab) <= base and not _continues(place, last):
        return End(len("\n".join(lines[:-1])), Reason.BLOCK)
    if opens_block(last, place.syntax):
        filled = place.next_indent() > width(last, place.style.tab)
        return End(len(text), Reason.LINE) if filled else None
    return None if compound else End(len(text), Reason.LINE)


def _continues(place: Place, line: str) -> bool:
    """Whether a line goes on with a compound statement: another clause, or closing brackets alone."""
    code = code_of(line, place.syntax)
    word = code.split(None, 1)[0].rstrip(":{") if code else ""
    return word in place.syntax.clauses or (bool(code) and not any(char.isalnum() for char in code))


def _block_end(place: Place, lines: Sequence[str], here: Scan) -> End | None:
    """The end of the body that was wanted at the cursor."""
    text = "\n".join(lines)
    if len(here.stack) < len(place.stack):
        return End(len(text), Reason.BLOCK)
    body = [index for index, line in enumerate(lines) if line.strip() and (index or place.on_new_line)]
    if not body:
        return End(len(text), Reason.LINE) if lines[0].strip() else None
    base = width((place.before if body[0] == 0 else "") + lines[body[0]], place.style.tab)
    last = body[-1]
    if last == len(lines) - 1 and width((place.before if last == 0 else "") + lines[last], place.style.tab) < base:
        return End(len("\n".join(lines[:last])), Reason.BLOCK)
    return None


def _at_end(place: Place, limits: Limits, lines: Sequence[str], how: Reason) -> Ruling:
    """What is shown where nothing more comes."""
    whole = how is not Reason.LENGTH or len(lines) > 1
    if how is Reason.LENGTH and len(lines) > 1:
        lines = lines[:-1]
    text = "\n".join(lines)
    found = _repetition(place, lines) or junction.end_of(place, text)
    if found is None and len(lines) > 1:
        found = _after_line(place, limits, lines)
        found = found if found is not None and found.at < len(text) else None
    own_line = not place.before_line or len(lines) > 1 or place.rest[0].isspace()
    if found is None and own_line and whole and misfits(place, lines):
        found = End(0, Reason.MISFIT)
    if found is not None:
        return _finish(place, text[: found.at], found.reason)
    return _finish(place, text, how)


def _certain(place: Place, lines: Sequence[str]) -> str:
    """The part of an unfinished text that no later decision takes away."""
    if place.shape is Shape.JOIN or place.before_line or place.wanted:
        return ""
    whole = list(lines[:-1])
    if not whole:
        return _certain_line(place, lines[0])
    if (place.shape is Shape.BLOCK and place.filled) or misfits(place, whole):
        return ""
    while whole and may_repeat((place.before if len(whole) == 1 else "") + whole[-1], place.following):
        whole.pop()
    return without_empty_block(place, "\n".join(whole)).rstrip()


def _certain_line(place: Place, line: str) -> str:
    """The part of an unfinished first line that is certain."""
    if may_repeat(place.before + line, (*place.following, place.above)) or may_misfit(place, line):
        return ""
    cut = junction.first_excess(place, line)
    certain = begins_marker(line if cut is None else line[: cut.at])
    return certain.rstrip(spelt(place.stack[-1])[0] if quoted(place.stack) else None).rstrip()


def _finish(place: Place, text: str, reason: Reason, *, line_ended: bool = False) -> Ruling:
    """The final text: trimmed, joined to what follows, or nothing and why."""
    if reason in {Reason.JUNCTION, Reason.LOOP}:
        text = without_empty_block(place, text)
    shown = text.rstrip()
    if not bare(shown):
        emptied = {Reason.JUNCTION: Reason.REPEATS_REST, Reason.REPEATS_NEXT: Reason.REPEATS_NEXT}
        known = reason in {Reason.REPEATS_ABOVE, Reason.LOOP, Reason.REPEATS_NEXT, Reason.MISFIT}
        return Ruling("", finished=True, reason=reason if known else emptied.get(reason, Reason.EMPTY))
    if not place.rest.strip():
        return Ruling(shown, finished=True, reason=reason)
    joined = junction.join(place, text, shown, own_line=line_ended or "\n" in shown)
    return Ruling(joined or "", finished=True, reason=reason if joined is not None else Reason.MISFIT)
