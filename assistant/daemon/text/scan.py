"""What is open at a place of a text: brackets, strings, comments, words that begin a block.

A stack holds, from the outermost on, the text that would close each of them; a string's or comment's is marked, so that
a quote is no bracket.
"""

import re
from dataclasses import dataclass

from assistant.daemon.text.languages import Quote, Syntax

Stack = tuple[str, ...]
_CLOSES = {"(": ")", "[": "]", "{": "}"}
_MARK = "\0"
"""before the closing text of strings and comments"""


@dataclass(frozen=True, slots=True)
class Event:
    """Something opened or closed."""

    at: int
    symbol: str
    """the closing text, as it stands in a stack"""
    opens: bool
    stack: Stack
    """what is open behind it"""
    stray: bool = False
    """it closes what was not open"""


@dataclass(frozen=True, slots=True)
class Scan:
    """What a text does to a stack."""

    events: tuple[Event, ...]
    stack: Stack
    unmatched: Stack
    """closers of what was not open, in order"""
    commented: bool
    """it ends within a line comment"""
    comment_at: int
    """where its last line comment begins, or its length"""


def quoted(stack: Stack) -> bool:
    """Whether a string or comment is open."""
    return bool(stack) and stack[-1].startswith(_MARK)


def spelt(symbol: str) -> str:
    """The closing text itself."""
    return symbol.removeprefix(_MARK)


def scan(text: str, syntax: Syntax, stack: Stack = ()) -> Scan:
    """Read `text` where `stack` is open before it."""
    scanner = _Scanner(syntax, stack)
    scanner.read(text)
    return Scan(
        tuple(scanner.events), tuple(scanner.stack), tuple(scanner.unmatched), scanner.commented, scanner.comment_at
    )


class _Scanner:
    def __init__(self, syntax: Syntax, stack: Stack) -> None:
        self.syntax = syntax
        self.stack = list(stack)
        self.events: list[Event] = []
        self.unmatched: list[str] = []
        self.commented = False
        self.comment_at = 0

    def read(self, text: str) -> None:
        self.comment_at = len(text)
        at = self._string(text, 0, self._inside()) if quoted(tuple(self.stack)) else 0
        while (match := self.syntax.tokens.search(text, at)) is not None:
            at = self._token(text, match)

    def result(self) -> Scan:
        return Scan(tuple(self.events), tuple(self.stack), tuple(self.unmatched), self.commented, self.comment_at)

    def _inside(self) -> Quote | None:
        closing = spelt(self.stack[-1])
        return next((quote for quote in self.syntax.quotes if quote.close == closing), None)

    def _token(self, text: str, match: re.Match[str]) -> int:
        kind, found = match.lastgroup, match[0]
        if match.groupdict().get("atom") is not None:
            if found == "$(":
                self._push(match.start(), ")")
        elif kind == "comment":
            self.commented, self.comment_at = match.end() == len(text), match.start()
        elif kind == "quote":
            quote = self.syntax.by_opening[found]
            self._push(match.start(), _MARK + quote.close)
            return self._string(text, match.end(), quote)
        elif kind == "open":
            self._push(match.start(), _CLOSES[found])
        elif kind == "close" or found in self.syntax.closing_words:
            self._pop(match.start(), found)
        elif _begins_command(text, match.start(), found):
            self._push(match.start(), self.syntax.opening_words[found])
        return match.end()

    def _string(self, text: str, at: int, quote: Quote | None) -> int:
        """Go to the end of the string that is open: its closing text, or the line's end where it cannot go on."""
        if quote is None:
            self.stack.pop()
            return at
        for match in _endings(quote).finditer(text, at):
            if match[0] == quote.close:
                self._close(match.start())
                return match.end()
            if match[0] == "\n":
                self._close(match.start())
                return match.start()
        return len(text)

    def _push(self, at: int, symbol: str) -> None:
        self.stack.append(symbol)
        self.events.append(Event(at, symbol, opens=True, stack=tuple(self.stack)))

    def _close(self, at: int) -> None:
        symbol = self.stack.pop()
        self.events.append(Event(at, symbol, opens=False, stack=tuple(self.stack)))

    def _pop(self, at: int, closer: str) -> None:
        if self.stack and self.stack[-1] == closer:
            self._close(at)
        elif closer == ")" and self.stack and self.stack[-1] == "esac":
            return  # a pattern of a case
        else:
            self.unmatched.append(closer)
            self.events.append(Event(at, closer, opens=False, stack=tuple(self.stack), stray=True))


def _endings(quote: Quote) -> re.Pattern[str]:
    escapes = r"\\.|" if quote.escapes else ""
    line = "" if quote.multiline else r"|\n"
    return re.compile(rf"{escapes}{re.escape(quote.close)}{line}", re.DOTALL)


_BEFORE_COMMAND = re.compile(r"(?:^|[;&|({\n=]|\b(?:then|do|else|elif|in|return|local|function))[ \t]*$")


def _begins_command(text: str, at: int, word: str) -> bool:
    """A word opens a block only where a command can begin; `do`, `then` and `function` do everywhere."""
    return word in {"do", "then", "function"} or _BEFORE_COMMAND.search(text[max(0, at - 40) : at]) is not None


def mismatch(stack: Stack, closers: Stack) -> int:
    """How many of what is open, and of the closers that follow, find no partner (the fewest, keeping the order)."""
    wanted = closers[::-1]
    common = 0
    while common < min(len(stack), len(wanted)) and stack[common] == wanted[common]:
        common += 1
    left, right = stack[common:], wanted[common:]
    row = [0] * (len(right) + 1)
    for symbol in left:
        above = row[:]
        for index, other in enumerate(right):
            row[index + 1] = above[index] + 1 if symbol == other else max(above[index + 1], row[index])
    return len(left) + len(right) - 2 * row[-1]


def code_of(line: str, syntax: Syntax) -> str:
    """A line without its comment and the white space around it."""
    return line[: scan(line, syntax).comment_at].strip()
