"""Whether whole lines fit between their neighbours: indentation that means something, and code that can be reached."""

from collections.abc import Sequence

from assistant.daemon.text.indent import width
from assistant.daemon.text.place import Place, opens_block
from assistant.daemon.text.scan import code_of, scan

_JUMPS = frozenset({"return", "break", "continue", "raise", "throw", "goto"})
"""first words of a statement behind which nothing is reached"""
_MORE, _CLAUSE = 6, 2
"""lines that may come before one that fits; behind a statement that leaves its block only another clause does"""
_LABELS = frozenset({"case", "default", "end"})


def misfits(place: Place, lines: Sequence[str]) -> bool:
    """Whether complete lines, written on lines of their own, cannot stand where they are.

    Where blocks are indented: below a line that begins a block they have to be one level deeper, below another they
    must not be deeper, a deeper line can follow only where they begin its block, and another clause only below the
    block of its statement. Everywhere: a statement that leaves its block is the last one there.
    """
    joined = [line for line in (place.before + lines[0], *lines[1:]) if code_of(line, place.syntax)]
    if not joined or not _concerns(place):
        return False
    if _wrong_indent(place, joined[0]) or _one_clause_too_many(place, joined[0]):
        return True
    last = joined[-1]
    following, here = place.next_indent(), width(last, place.style.tab)
    if following < 0 or scan("\n".join(lines), place.syntax, place.stack).stack != place.stack:
        return False
    if place.syntax.blocks == "indent":
        opens = opens_block(last, place.syntax)
        if following > here and not (opens and _one_level(place, following - here)):
            return True
        if following >= here and not opens and _is_clause(place):
            return True
    return following == here and _leaves(place, last) and not _begins_anew(place)


def without_empty_block(place: Place, text: str) -> str:
    """A text that was cut, without lines at its end that begin a block which has no body now.

    One line that stays alone is left, for its body may be written yet, unless another clause follows.
    """
    lines = text.split("\n")
    while len(lines) > 1 and place.syntax.blocks == "indent" and not place.in_text:
        last = lines[-1]
        if last.strip() and (not opens_block(last, place.syntax) or place.next_indent() > width(last, place.style.tab)):
            break
        lines.pop()
    if len(lines) == 1 and place.on_new_line and lines[0].strip() and _bodiless(place, place.before + lines[0]):
        return ""
    return "\n".join(lines)


def _bodiless(place: Place, line: str) -> bool:
    """Whether a line begins a block, and the following line another clause instead of its body."""
    return (
        place.syntax.blocks == "indent"
        and opens_block(line, place.syntax)
        and 0 <= place.next_indent() <= width(line, place.style.tab)
        and _is_clause(place)
    )


def may_fit_yet(place: Place, lines: Sequence[str]) -> bool:
    """Whether lines that do not fit could with more: a statement before the one that begins the block which follows."""
    first = place.before + lines[0]
    if _wrong_indent(place, first) or _one_clause_too_many(place, first):
        return False
    return len(lines) < (_CLAUSE if _leaves(place, first) else _MORE)


def may_misfit(place: Place, line: str) -> bool:
    """Whether a line that is still being written might turn out not to fit."""
    joined = place.before + line
    if not _concerns(place):
        return False
    following, here = place.next_indent(), width(joined, place.style.tab)
    deeper = place.syntax.blocks == "indent" and following >= here and (following > here or _is_clause(place))
    word = joined.strip()
    begun = any(jump.startswith(word[: len(jump)]) for jump in _JUMPS) if word else True
    return deeper or begun or _wrong_indent(place, joined)


def _concerns(place: Place) -> bool:
    return place.on_new_line and not place.in_text and place.syntax.blocks != "none"


def _wrong_indent(place: Place, line: str) -> bool:
    """A first line that is not deeper than one that begins a block, or deeper than one that does not."""
    if place.syntax.blocks != "indent" or place.stack or not place.above or not line.strip():
        return False
    above, here = width(place.above, place.style.tab), width(line, place.style.tab)
    if here <= width(place.opener, place.style.tab) < place.next_indent() and _lacks_body(place):
        return True
    code = code_of(place.above, place.syntax)
    if not code or code.endswith(("\\", '"""', "'''")):
        return False  # a remark may stand anywhere; what follows a literal is not told by its last line
    if opens_block(place.above, place.syntax):
        return here <= above or not _one_level(place, here - above)
    return here > above


def _lacks_body(place: Place) -> bool:
    """Whether nothing but comments or a docstring stands in the block above; a class may be left at that."""
    opener = code_of(place.opener, place.syntax)
    return place.opener != place.above and opens_block(opener, place.syntax) and not opener.startswith("class ")


def _one_level(place: Place, columns: int) -> bool:
    """Whether so many columns are one level of the file, as far as it shows what that is."""
    unit = place.style.unit
    return not unit or unit == "\t" or columns == len(unit) or columns < len(unit)


def _one_clause_too_many(place: Place, line: str) -> bool:
    """Whether a line begins the last clause of a statement, `else` or `finally`, and the following line another."""
    if place.syntax.blocks != "indent" or place.next_indent() != width(line, place.style.tab) or not _is_clause(place):
        return False
    word, following = (code_of(text, place.syntax).partition(":")[0].strip() for text in (line, place.following[0]))
    return word == "finally" or (word == "else" and following != "finally")


def _is_clause(place: Place) -> bool:
    """Whether the following line is another clause of a statement, `else` and the like."""
    code = code_of(place.following[0], place.syntax)
    return bool(code) and code.replace(":", " ").split()[0] in place.syntax.clauses - {"case"}


def _leaves(place: Place, line: str) -> bool:
    words = code_of(line, place.syntax).replace(";", " ").split()
    return bool(words) and words[0] in _JUMPS


def _begins_anew(place: Place) -> bool:
    """The following line may be reached otherwise: it closes a block, or is another clause or case."""
    code = code_of(place.following[0], place.syntax)
    word = code.replace(":", " ").replace("(", " ").split()[0] if code.split() else ""
    known = place.syntax.clauses | _LABELS | place.syntax.closing_words
    return not code[:1].isalnum() or word in known or code.endswith(":")
