"""Source files as an editor reads them, and positions in them.

Bytes that are no UTF-8 become U+FFFD, one for each maximal broken sequence, as editors show them: so columns count what
the user sees, and the text is always valid for a tokenizer. A byte order mark is not part of the text. Line ends are
normalised to a line feed, and the document remembers its own for what is written back.
"""

import codecs
import os
import re
import stat
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from assistant.errors import DocumentError

MAX_BYTES = 256 << 20
"""a larger file is no source file"""
STDIN = "-"
_POSITION = re.compile(r"(?P<path>.+?)(?::(?P<line>[0-9]+)(?::(?P<column>[0-9]+))?)?:?", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Location:
    """A file and a position in it; lines and columns count from 1, columns count characters."""

    path: str
    """`-` is standard input"""
    line: int | None = None
    """None is the end of the file"""
    column: int | None = None
    """None is the end of the line"""


@dataclass(frozen=True, slots=True)
class Document:
    """A source text with line feeds alone."""

    name: str
    """what errors call it"""
    text: str
    newline: str = "\n"
    """the line end that prevails in the file"""

    def offset(self, line: int | None = None, column: int | None = None) -> int:
        """The index in `text` of a position, both from 1; no column is the line's end, no line the document's.

        A column may be the line's length plus 1: the end of the line.

        Raises:
            DocumentError: the position lies outside the document.
        """
        if line is None:
            return len(self.text)
        head = self.text.split("\n", line)[:line] if line > 0 else []
        if len(head) < line or line < 1:
            count = self.text.count("\n") + 1
            raise DocumentError(f"{self.name} has no line {line}: its lines are 1 to {count}.")
        length = len(head[-1])
        start = sum(map(len, head)) + line - 1 - length
        if column is None:
            return start + length
        if not 1 <= column <= length + 1:
            raise DocumentError(
                f"{self.name} has no column {column} in line {line}: its columns are 1 to {length + 1}, "
                "the last being the line's end."
            )
        return start + column - 1

    def with_own_line_ends(self, text: str) -> str:
        """A text for this document with the line ends that the file has."""
        return text if self.newline == "\n" else text.replace("\n", self.newline)


def parse_location(argument: str, exists: Callable[[str], bool] = os.path.lexists) -> Location:
    """Read `PATH[:LINE[:COL]]`.

    A path that exists as it is written wins; so do longer paths over shorter ones, and a drive letter is part of
    its path. A colon at the very end, as compilers write it, is ignored.

    Raises:
        DocumentError: an existing file is followed by something that is no position.
    """
    if exists(argument):
        return Location(argument)
    match = _POSITION.fullmatch(argument)
    if match is None:
        raise DocumentError("the path is empty; give a file as PATH, PATH:LINE or PATH:LINE:COL.")
    path, line, column = match["path"], match["line"], match["column"]
    if line is not None and column is not None and exists(f"{path}:{line}"):
        return Location(f"{path}:{line}", _number(column))
    stem, colon, rest = path.partition(":")
    if colon and not exists(path) and exists(stem):
        raise DocumentError(f"{stem} exists, but {rest!r} is no position; write {stem}:LINE or {stem}:LINE:COL.")
    return Location(path, _number(line), _number(column))


def read(path: str, stdin: BinaryIO | None = None) -> Document:
    """Read a source file, or standard input for `-`.

    Raises:
        DocumentError: there is no such file, it is no regular file, cannot be read, is binary or far too large.
    """
    if path == STDIN:
        return decode((stdin or sys.stdin.buffer).read(MAX_BYTES + 1), "standard input")
    try:
        # A pipe would block, a device has no end: look before opening.
        mode = os.stat(path).st_mode  # noqa: PTH116 - a path of bytes that are no text stays as it is
        if not stat.S_ISREG(mode):
            raise DocumentError(f"{path} is {_kind(mode)}.")
        with Path(path).open("rb") as file:
            return decode(file.read(MAX_BYTES + 1), path)
    except FileNotFoundError as error:
        raise DocumentError(f"there is no file {path}; check its spelling and the working directory.") from error
    except PermissionError as error:
        raise DocumentError(f"{path} cannot be read: permission denied; change its permissions.") from error
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else "no valid path"
        raise DocumentError(f"{path} cannot be read: {reason}.") from error


def decode(data: bytes, name: str) -> Document:
    """The document that a file's bytes hold.

    Raises:
        DocumentError: they are binary, or too many.
    """
    if len(data) > MAX_BYTES:
        raise DocumentError(f"{name} is larger than {MAX_BYTES >> 20} MiB; complete a source file.")
    if b"\0" in data:
        raise DocumentError(f"{name} is binary (it holds NUL bytes); complete a text file, saved as UTF-8.")
    text = data.removeprefix(codecs.BOM_UTF8).decode("utf-8", "replace")
    newline = "\n"
    if "\r" in text:
        newline = _prevailing(text)
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    return Document(name, text, newline)


def _prevailing(text: str) -> str:
    pairs = text.count("\r\n")
    counts = {"\n": text.count("\n") - pairs, "\r\n": pairs, "\r": text.count("\r") - pairs}
    return max(counts, key=lambda end: counts[end])


def _number(digits: str | None) -> int | None:
    """A position so long that no file reaches it need not be exact; Python refuses to read thousands of digits."""
    return None if digits is None else int(digits.lstrip("0")[:18] or "0")


def _kind(mode: int) -> str:
    if stat.S_ISDIR(mode):
        return "a folder; name a file in it"
    if stat.S_ISFIFO(mode):
        return "a pipe; give `-` and redirect it to standard input"
    return "no regular file (a device or a socket); name a source file"
