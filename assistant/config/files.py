"""A configuration file: found, read and checked whole, every problem with its line and column."""

import codecs
import os
import re
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tomli

from assistant.config import keys, project
from assistant.config.layers import Entry, Layer, Origin, Rank
from assistant.config.places import line_and_column, places
from assistant.config.versions import check_version, rename
from assistant.errors import ConfigError, Problem
from assistant.paths import config_dir

USER_NAME = "config.toml"
PROJECT_NAME = ".eagle-assist.toml"
MAX_BYTES = 256 << 10
"""a larger file is no configuration"""
MAX_PROBLEMS = 100
"""of one file; the rest is counted, not looked at"""


def user_file() -> Path:
    """Where the user's own configuration lies, whether it exists or not."""
    return config_dir() / USER_NAME


def candidates(folder: Path) -> Iterator[Path]:
    """Where a project's file may lie for documents of an absolute folder, the nearest first."""
    for parent in (folder, *folder.parents):
        yield parent / PROJECT_NAME


def project_file(document: Path) -> Path | None:
    """The nearest project file upward from a document; anything of that name counts, even if it cannot be read."""
    return next(filter(present, candidates(document.absolute().parent)), None)


def present(path: Path) -> bool:
    """Whether anything lies there, be it readable or not."""
    return os.path.lexists(path)


def read_layer(path: Path, rank: Rank) -> Layer:
    """What a configuration file sets.

    Raises:
        ConfigError: it cannot be read, is no TOML, or sets what it may not; all problems of the file.
    """
    return text_layer(path, read_text(path), rank)


def text_layer(path: Path, text: str, rank: Rank) -> Layer:
    """What a text sets that is to stand in the file `path`: for editors, before they save it.

    Raises:
        ConfigError: it is no TOML, or sets what it may not; all problems of the text.
    """
    values = _parse(path, text)
    return _Checker(path, rank, text, places(text)).layer(values)


def read_text(path: Path) -> str:
    """A configuration file's text, with line feeds as line ends.

    Raises:
        ConfigError: it cannot be read, is too large or no UTF-8.
    """
    try:
        # A pipe would block and a device has no end: look before opening.
        if not stat.S_ISREG(path.stat().st_mode):
            raise _refusal(path, "is no regular file; put a TOML file in its place or remove it.")
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise _refusal(path, f"cannot be read: {error.strerror or 'no valid path'}.") from error
    if len(data) > MAX_BYTES:
        raise _refusal(path, f"is larger than {MAX_BYTES >> 10} KiB, so it is no configuration.")
    data = data.removeprefix(codecs.BOM_UTF8)
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        before = data[: error.start].decode()
        place = line_and_column(before, len(before))
        raise _refusal(path, f"byte 0x{data[error.start]:02x} is no UTF-8; save the file as UTF-8.", *place) from error
    return text.replace("\r\n", "\n")


def _parse(path: Path, text: str) -> dict[str, Any]:
    try:
        return tomli.loads(text)
    except tomli.TOMLDecodeError as error:
        # A string that ends in a backslash is said to be wrong behind the end of the text.
        place = line_and_column(text, min(error.pos, len(text)))
        raise _refusal(path, f"no valid TOML: {_lowered(error.msg)}.", *place) from error
    except RecursionError as error:
        raise _refusal(path, "brackets or keys are nested too deeply.", *_deepest(text)) from error
    except ValueError as error:  # Python reads no number of thousands of digits
        match = re.search(r"[0-9_]{4000,}", text)
        place = line_and_column(text, match.start() if match else 0)
        raise _refusal(path, "a number has too many digits.", *place) from error


def _lowered(message: str) -> str:
    return message[:1].lower() + message[1:].rstrip(".")


def _deepest(text: str) -> tuple[int, int]:
    """Where the longest run of opening brackets or dotted parts begins: good enough to find it in an editor."""
    runs = re.finditer(r"(?:[\[{][^\]}\n]{0,80}?){20,}|(?:[\w\"'-]+\s*\.\s*){100,}", text)
    longest = max(runs, key=lambda run: len(run[0]), default=None)
    return line_and_column(text, longest.start() if longest else 0)


def _refusal(path: Path, sentence: str, line: int = 1, column: int = 1) -> ConfigError:
    return ConfigError([Problem(str(path), line, column, sentence)])


@dataclass(frozen=True, slots=True)
class _Checker:
    """One file's keys and values against the declaration."""

    path: Path
    rank: Rank
    text: str
    places: Mapping[keys.Path, int]

    def layer(self, values: Mapping[str, Any]) -> Layer:
        problems: list[Problem] = []
        version = self._version(values, problems)
        entries: dict[keys.Path, Entry] = {}
        leaves = [leaf for leaf in _leaves(values) if leaf[0] != ("version",)]
        for number, (written, value) in enumerate(leaves):
            line, column = self._place(written)
            try:
                path = rename(written, version)
                entries[path] = Entry(self._value(path, value), Origin(self.rank, str(self.path), line, column))
            except ValueError as error:
                problems.append(Problem(str(self.path), line, column, str(error)))
            if len(problems) == MAX_PROBLEMS:  # looking for the nearest key takes a while
                rest = f"{len(leaves) - number - 1} more values were not looked at, after so many problems."
                problems.append(Problem(str(self.path), line, column, rest))
                break
        if problems:
            raise ConfigError(sorted(problems, key=lambda problem: (problem.line or 0, problem.column or 0)))
        return Layer(self.rank, entries, str(self.path.parent) if self.rank is Rank.PROJECT else "/")

    def _version(self, values: Mapping[str, Any], problems: list[Problem]) -> int:
        try:
            return check_version(values.get("version"))
        except ValueError as error:
            problems.append(Problem(str(self.path), *self._place(("version",)), str(error)))
            return 0

    def _value(self, path: keys.Path, value: object) -> Any:
        key = keys.find(path)
        found = key.convert(value)
        if self.rank is Rank.PROJECT:
            project.check(key, found)
        return project.anchored(key, found, self.path.parent)

    def _place(self, path: keys.Path) -> tuple[int, int]:
        while path and path not in self.places:
            path = path[:-1]
        return line_and_column(self.text, self.places.get(path, 0))


def _leaves(values: Mapping[str, Any]) -> Iterator[tuple[keys.Path, Any]]:
    """Every value with its path, and every table that is empty and no section, or lies too deep for a key."""
    stack: list[tuple[keys.Path, Any]] = [((name,), value) for name, value in reversed(list(values.items()))]
    while stack:
        path, value = stack.pop()
        if isinstance(value, dict) and (value or keys.is_table(path)) and len(path) < keys.DEEPEST:
            stack += [((*path, name), inner) for name, inner in reversed(value.items())]
        else:
            yield path, value
