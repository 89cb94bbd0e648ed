"""The texts that an editor has open, kept equal to its own edit by edit.

An editor's lines end in LF, CRLF or CR, and it counts columns in the encoding agreed on. The rest of the program sees
`text`: line feeds alone, no byte order mark, no half of a surrogate pair; offsets count its characters.
"""

import re
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from urllib.parse import unquote, urlsplit

from assistant.protocol import Edit
from lsp.positions import Encoding, cut, index_of, paired, units_of

BOM = "\ufeff"
_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")
_HALF = re.compile("[\ud800-\udfff]")
Place = tuple[int, int]
"""line and column, from 0, the column in the editor's encoding"""


@dataclass(frozen=True, slots=True)
class Change:
    """An edit as the protocol has it; without a range it is the whole text."""

    text: str
    start: Place | None = None
    end: Place | None = None


class Document:
    """One open document."""

    def __init__(self, uri: str, language: str | None, version: int | None, raw: str, encoding: Encoding) -> None:
        self.uri = uri
        self.path = path_of(uri)
        self.language = language
        self.version = version
        """the editor's own number"""
        self.revision = 1
        """counts changes; what the daemon is told as version"""
        self.encoding = encoding
        self._lines = _split(paired(raw), last=True)
        self._lengths = [len(_plain(line, number)) for number, line in enumerate(self._lines)]
        self.text = "".join(_plain(line, number) for number, line in enumerate(self._lines))

    @property
    def raw(self) -> str:
        """The editor's own text."""
        return "".join(self._lines)

    @property
    def newline(self) -> str:
        """The line end of the document's first line."""
        return _end(self._lines[0]) or "\n"

    def apply(self, changes: Sequence[Change], version: int | None) -> list[Edit]:
        """Take in changes, one after the other, and return what they are in `text`; no change is no edit.

        Places outside the document count as its nearest place.
        """
        edits = [edit for change in changes if (edit := self._apply(change)) is not None]
        self.version = version
        self.revision += 1
        return edits

    def offset(self, place: Place) -> int:
        """The offset in `text` of a place."""
        number, column = self._clamped(place)
        line = self._lines[number]
        content = line[: len(line) - len(_end(line))]
        index = index_of(content, column, self.encoding) - self._marked(number)
        return sum(self._lengths[:number]) + max(index, 0)

    def place(self, offset: int) -> Place:
        """The place of an offset in `text`."""
        starts = [0, *accumulate(self._lengths[:-1])]
        number = bisect_right(starts, offset) - 1
        index = offset - starts[number] + self._marked(number)
        return number, units_of(self._lines[number], index, self.encoding)

    def with_own_line_ends(self, text: str) -> str:
        """A text for this document with the line ends that it has."""
        return text if self.newline == "\n" else text.replace("\n", self.newline)

    def _apply(self, change: Change) -> Edit | None:
        end = len(self._lines) - 1
        if change.start is None or change.end is None:
            first, last, before, after = 0, end, "", ""
        else:
            start, stop = sorted((self._clamped(change.start), self._clamped(change.end)))
            (first, before, _), (last, _, after) = self._cut(start), self._cut(stop)
        if first and self._lines[first - 1].endswith("\r"):  # a line feed that comes to stand here belongs to it
            first -= 1
            before = self._lines[first] + before
        lines = _split(paired(before + change.text + after), last=last == end)
        return self._replace(first, last + 1, lines, (len(before), len(after)))

    def _replace(self, first: int, stop: int, lines: list[str], kept: tuple[int, int]) -> Edit | None:
        """Put `lines` in place of some; of the region the first and last `kept` characters are probably the same."""
        offset = sum(self._lengths[:first])
        old = self.text[offset : offset + sum(self._lengths[first:stop])]
        plain = [_plain(line, first + number) for number, line in enumerate(lines)]
        new = "".join(plain)
        self._lines[first:stop] = lines
        self._lengths[first:stop] = map(len, plain)
        if old == new:
            return None
        whole = kept == (0, 0)
        head = _common(old, new, None if whole else kept[0])
        tail = _common(old[head:][::-1], new[head:][::-1], None if whole else kept[1])
        edit = Edit(start=offset + head, end=offset + len(old) - tail, text=new[head : len(new) - tail])
        self.text = self.text[: edit.start] + edit.text + self.text[edit.end :]
        return edit

    def _clamped(self, place: Place) -> Place:
        line, column = place
        if line < 0:
            return 0, 0
        if line >= len(self._lines):
            return len(self._lines) - 1, 1 << 31
        return line, max(column, 0)

    def _cut(self, place: Place) -> tuple[int, str, str]:
        """A line's number, and what stands in it before and after a column, its end included."""
        line = self._lines[place[0]]
        end = _end(line)
        before, after = cut(line[: len(line) - len(end)], place[1], self.encoding)
        return place[0], before, after + end

    def _marked(self, number: int) -> int:
        """Characters of a line that are no text: a byte order mark."""
        return 1 if number == 0 and self._lines[0].startswith(BOM) else 0


def path_of(uri: str) -> str:
    """The file that a URI names; the URI itself where it names none."""
    parts = urlsplit(uri)
    if parts.scheme != "file":
        return uri
    path = unquote(parts.path)
    if re.match(r"/[A-Za-z]:", path):  # file:///c:/a.py
        return str(Path(path[1:]))
    return path


def _split(text: str, *, last: bool) -> list[str]:
    """Lines with their ends; `last`: the final one has none, so it may be empty."""
    lines = _LINE.findall(text)
    if last and (not lines or _end(lines[-1])):
        lines.append("")
    return lines


def _end(line: str) -> str:
    if line.endswith("\r\n"):
        return "\r\n"
    return line[-1] if line.endswith(("\n", "\r")) else ""


def _plain(line: str, number: int) -> str:
    """A line as the rest of the program sees it."""
    end = _end(line)
    content = line[: len(line) - len(end)]
    if number == 0:
        content = content.removeprefix(BOM)
    if not content.isascii():
        content = _HALF.sub("\ufffd", content)
    return content + "\n" if end else content


def _common(one: str, other: str, limit: int | None) -> int:
    """How many characters both begin with, `limit` at most."""
    high = min(len(one), len(other), len(one) if limit is None else limit)
    low = 0
    if one[:high] == other[:high]:
        return high
    while low < high:  # by halves: comparing slices is much quicker than comparing characters
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low
