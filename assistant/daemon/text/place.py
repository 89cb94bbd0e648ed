"""What stands around a cursor, as far as the policy asks."""

import re
from dataclasses import dataclass
from enum import Enum, auto

from assistant.daemon.text import grammar
from assistant.daemon.text.indent import Style, style_of, width
from assistant.daemon.text.languages import Syntax, syntax_of
from assistant.daemon.text.scan import Scan, Stack, code_of, mismatch, quoted, scan, spelt
from assistant.daemon.text.wanted import wanted_names

_WINDOW = 60_000
"""characters on either side that are looked at"""
_FOLLOWING = 24
_DOCSTRING = re.compile(r"^[ \t]*(?P<q>\"\"\"|''')(?:(?!(?P=q)).)*(?P=q)[ \t]*\Z", re.DOTALL | re.MULTILINE)


class Shape(Enum):
    """How much is wanted at a cursor."""

    LINE = auto()
    """one statement: its line, and more lines only while it leaves something open that what follows does not close"""
    BLOCK = auto()
    """the body of a block that has none yet"""
    JOIN = auto()
    """whatever leads from here to the rest of the line"""


@dataclass(frozen=True, slots=True)
class Place:
    """A cursor's surroundings."""

    language: str
    syntax: Syntax
    shape: Shape
    before: str
    """the line up to the cursor"""
    rest: str
    """the line from the cursor on"""
    above: str
    """the last line before it that is not blank"""
    opener: str
    """the last line before it that is code: comments and a docstring are passed over"""
    following: tuple[str, ...]
    """lines behind it that are not blank"""
    stack: Stack
    """what is open at the cursor"""
    closers: Stack
    """what the text behind it closes"""
    style: Style
    in_text: bool
    """the cursor is in a comment or a string"""
    wanted: frozenset[str]
    """names that the following lines use and nothing introduces"""
    head: str
    """the document around the cursor, for a grammar"""
    tail: str

    @property
    def on_new_line(self) -> bool:
        """Nothing but white space stands before the cursor on its line."""
        return not self.before.strip()

    @property
    def before_line(self) -> bool:
        """The cursor is in the indentation of a line: whole lines may go before that."""
        return self.on_new_line and bool(self.rest.strip())

    @property
    def filled(self) -> bool:
        """The block that begins on the cursor's line has a body already."""
        return not self.on_new_line and self.next_indent() > width(self.before, self.style.tab)

    @property
    def mismatch(self) -> int:
        """Brackets without a partner as the document is."""
        return mismatch(self.stack, self.closers)

    def leaves(self, stack: Stack) -> int:
        """How many more brackets have no partner where `stack` is open before what follows (fewer: below 0)."""
        return mismatch(stack, self.closers) - self.mismatch

    def next_indent(self) -> int:
        """The indentation of the next line that is not blank, -1 where none follows."""
        return width(self.following[0], self.style.tab) if self.following else -1


def look(text: str, cursor: int, language: str) -> Place:
    """What stands around `cursor` in `text`."""
    syntax = syntax_of(language)
    head, tail = text[max(0, cursor - _WINDOW) : cursor], text[cursor : cursor + _WINDOW]
    upper, _, before = head.rpartition("\n")
    rest, _, lower = tail.partition("\n")
    stack, closers, in_text = _open(head, tail, before, rest, language)
    above = next((line for line in reversed(upper.rsplit("\n", 50)) if line.strip()), "")
    following = [line for line in lower.split("\n", 4 * _FOLLOWING) if line.strip()][:_FOLLOWING]
    if not before.strip() and rest.strip():
        following.insert(0, before + rest)
    style = style_of(head + tail)
    opener = _opener(upper, syntax)
    shape = _shape(syntax, opener, before, rest, following, style, in_text=in_text)
    return Place(
        language=language,
        syntax=syntax,
        shape=shape,
        before=before,
        rest=rest,
        above=above,
        opener=opener,
        following=tuple(following),
        stack=stack,
        closers=closers,
        style=style,
        in_text=in_text,
        wanted=wanted_names(head, following, language) if not (in_text or before.strip()) else frozenset(),
        head=head,
        tail=tail,
    )


def _open(head: str, tail: str, before: str, rest: str, language: str) -> tuple[Stack, Stack, bool]:
    """What is open at the cursor, what is closed behind it, and whether the cursor is in a comment or string."""
    syntax = syntax_of(language)
    if syntax.blocks == "none":
        head, tail = before, rest
    here = scan(head, syntax)
    stack, commented = here.stack, here.commented
    if quoted(stack) and spelt(stack[-1]) not in before and grammar.is_code(language, head, tail):
        stack = tuple(symbol for symbol in stack if not quoted((symbol,)))  # something above was no quote
    if commented:
        tail = tail.partition("\n")[2]
    if not quoted(stack):
        return stack, scan(tail, syntax).unmatched, commented
    behind = scan(tail, syntax, stack[-1:])
    if not _closes(spelt(stack[-1]), behind, before, rest, tail):
        # A string that nothing closes would swallow the rest of the document.
        return stack, scan(tail[len(rest) :], syntax).unmatched, True
    return stack, (stack[-1], *behind.unmatched), True


def _closes(closing: str, behind: Scan, before: str, rest: str, tail: str) -> bool:
    """Whether the string or comment at a cursor is closed behind it.

    One that began on the cursor's line and does not end there may go on, or its closing text may be missing, and what
    looks like it further down opens the next one: then what follows has an even number of them.
    """
    ends = [event.at for event in behind.events if not event.opens and not event.stack]
    if not ends or (ends[0] == len(rest) and not tail.startswith(closing, ends[0])):
        return False
    return ends[0] < len(rest) or closing not in before or tail.count(closing) % 2 == 1


def opens_block(line: str, syntax: Syntax) -> bool:
    """Whether a line begins a block that stands on the lines below it."""
    code = code_of(line, syntax)
    if syntax.blocks == "indent":
        return code.endswith(":") and not scan(code, syntax).stack
    if syntax.blocks == "braces":
        return code.endswith("{")
    if syntax.blocks == "words":
        return code.endswith("{") or any(symbol in syntax.closing_words for symbol in scan(code, syntax).stack)
    return False


def _shape(
    syntax: Syntax, opener: str, before: str, rest: str, following: list[str], style: Style, *, in_text: bool
) -> Shape:
    if in_text:
        return Shape.JOIN if rest.strip() else Shape.LINE
    if before.strip():
        opener = before
    if rest.strip() and before.strip():
        return Shape.JOIN
    if opens_block(opener, syntax) and not rest.strip():
        filled = bool(following) and width(following[0], style.tab) > width(opener, style.tab)
        return Shape.LINE if filled and not before.strip() else Shape.BLOCK
    return Shape.LINE


def _opener(upper: str, syntax: Syntax) -> str:
    """The line that the block at a blank line would belong to: comments and a docstring above are passed over."""
    upper = upper.rstrip()
    while upper:
        above, _, line = upper.rpartition("\n")
        docstring = _DOCSTRING.search(upper[-4000:]) if line.rstrip().endswith(('"""', "'''")) else None
        if docstring is not None:
            upper = upper[: len(upper) - len(docstring[0])].rstrip()
        elif line.strip() and not code_of(line, syntax):
            upper = above.rstrip()
        else:
            return line
    return ""
