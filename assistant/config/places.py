"""Where the keys of a TOML document stand: what the parser does not say.

The document has been parsed already, so this reads valid TOML alone and only looks for the ends of its parts. Tables
inside arrays are passed over: no key of a configuration lies there.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from assistant.config.keys import DEEPEST, DOTTED, Path, split

_BLANK = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*")
_OPENING = re.compile(r"\[\[?[ \t]*")
_CLOSING = re.compile(r"[ \t]*\]\]?")
_EQUALS = re.compile(r"[ \t]*=")
_SCALAR = re.compile(
    r'"""(?:[^"\\]|\\.|"(?!""))*"{3,5}'
    r"|'''(?:[^']|'(?!''))*'{3,5}"
    r'|"(?:[^"\\]|\\.)*"'
    r"|'[^']*'"
    r"|[^,\]}\n#]+",
    re.DOTALL,
)
"""a value that is neither array nor table"""


def places(text: str) -> Mapping[Path, int]:
    """Path of each table and key -> the offset in `text` of the first place that names it; `text` is valid TOML."""
    return _Reader(text).read()


def line_and_column(text: str, offset: int) -> tuple[int, int]:
    """Both from 1, the column in characters."""
    return text.count("\n", 0, offset) + 1, offset - text.rfind("\n", 0, offset)


@dataclass(slots=True)
class _Reader:
    text: str
    found: dict[Path, int] = field(default_factory=dict)

    def read(self) -> Mapping[Path, int]:
        table: Path | None = ()
        position = self._after(_BLANK, 0)
        while position < len(self.text):
            if self.text[position] == "[":
                table, position = self._key((), self._after(_OPENING, position))
                position = self._after(_CLOSING, position)
            else:
                path, position = self._key(table, position)
                position = self._value(path, self._after(_EQUALS, position))
            position = self._after(_BLANK, position)
        return self.found

    def _key(self, table: Path | None, position: int) -> tuple[Path | None, int]:
        """The path of a key and its end; a table of None lies in an array."""
        match = DOTTED.match(self.text, position)
        assert match is not None
        if table is None:
            return None, match.end()
        parts = split(match[0])
        for length in range(1, min(len(parts), DEEPEST) + 1):
            self.found.setdefault((*table, *parts[:length]), position)
        return (*table, *parts), match.end()

    def _value(self, path: Path | None, position: int) -> int:
        """The end of the value of `path`; the keys of inline tables in it are noted."""
        brackets: list[tuple[str, Path | None]] = []
        while True:
            position = self._after(_BLANK, position)
            sign = self.text[position]
            if sign in "[{":
                brackets.append((sign, path if sign == "{" else None))
            elif sign in "]}":
                brackets.pop()
            position = position + 1 if sign in "[{]}," else self._after(_SCALAR, position)
            if not brackets:
                return position
            (bracket, table), path = brackets[-1], None
            position = self._after(_BLANK, position)
            if bracket == "{" and sign in "{," and self.text[position] != "}":
                path, position = self._key(table, position)
                position = self._after(_EQUALS, position)

    def _after(self, pattern: re.Pattern[str], position: int) -> int:
        match = pattern.match(self.text, position)
        assert match is not None
        return match.end()
