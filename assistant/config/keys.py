"""The declaration seen key by key: what a dotted key means, whether a value fits it, and what was probably meant."""

import difflib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, get_args, get_origin

import msgspec
import tomli

from assistant.config.declaration import SECTIONS
from assistant.config.overrides import BASES, Value, check_globs

Path = tuple[str, ...]
"""the parts of a key: (section, name), or three of them in an override"""
DEEPEST = 16
"""parts of a path that are looked at; no key has so many"""
OVERRIDING = ("languages", "files")
"""the tables whose tables repeat some keys, for a language or a glob"""
PART = r'(?:"(?:\\.|[^"\\\n])*"|\'[^\'\n]*\'|[A-Za-z0-9_-]+)'
"""one part of a key, as TOML writes it"""
DOTTED = re.compile(rf"{PART}(?:[ \t]*\.[ \t]*{PART})*")
_BARE = re.compile(r"[A-Za-z0-9_-]+")
_PART = re.compile(PART)
_LANGUAGE = re.compile(r"[a-z0-9][a-z0-9+#_.-]{0,63}")
_SHOWN = 60
"""characters of a user's key or value that a sentence repeats"""


@dataclass(frozen=True)
class Key:
    """One key of the declaration."""

    section: str
    name: str
    annotation: Any
    """its type, as `Annotated` with `Meta`"""
    default: Value

    @property
    def dotted(self) -> str:
        """As it is written: `section.name`."""
        return f"{self.section}.{self.name}"

    @cached_property
    def meta(self) -> msgspec.Meta:
        """Its bounds and meaning."""
        found = get_args(self.annotation)[1]
        assert isinstance(found, msgspec.Meta)
        return found

    @property
    def project(self) -> str | None:
        """What a project's file may not do with it: see `declaration`."""
        return (self.meta.extra or {}).get("project")

    def convert(self, value: object, *, text: bool = False) -> Value:
        """The value as the key's type; `text` reads numbers and switches from strings.

        Raises:
            ValueError: it has another type, or lies outside the bounds; the message says what is expected.
        """
        try:
            if text and isinstance(value, str) and self.is_list:
                value = [part.strip() for part in value.split(",") if part.strip()]
            found: Value = msgspec.convert(value, self.annotation, strict=not text)
        except (msgspec.ValidationError, OverflowError) as error:
            raise ValueError(f"{self.dotted} must be {self.expected}, not {shown(value)}.") from error
        if isinstance(found, tuple):
            check_globs(found)
        return found

    @property
    def is_list(self) -> bool:
        """Whether it holds several strings."""
        return get_origin(self.kind) is tuple

    @property
    def kind(self) -> Any:
        """Its type without bounds: bool, int, float, str, a Literal or a tuple of str."""
        return get_args(self.annotation)[0]

    @cached_property
    def choices(self) -> tuple[str, ...]:
        """The values of a key with a few of them."""
        return get_args(self.kind) if get_origin(self.kind) is Literal else ()

    @cached_property
    def range(self) -> str:
        """The bounds of a number or the choices, in words; "" for other keys."""
        if self.choices:
            return ", ".join(self.choices)
        if self.kind not in {int, float}:
            return ""
        return (
            f"{self.meta.ge} to {self.meta.le}"
            if self.meta.ge is not None
            else f"above {self.meta.gt}, to {self.meta.le}"
        )

    @cached_property
    def expected(self) -> str:
        """What fits, in words."""
        if self.choices:
            return f"one of {self.range}"
        if self.is_list:
            return "a list of at most 1000 strings, none of them empty or longer than 1024 characters"
        if self.kind is bool:
            return "true or false"
        if self.kind is not str:
            return f"a {'whole ' if self.kind is int else ''}number, {self.range}"
        if self.meta.pattern is not None:
            return f"as said here: {self.meta.description}".rstrip(".")
        least = f"{self.meta.min_length} to " if self.meta.min_length else "at most "
        return f"a string of {least}{self.meta.max_length} characters"


def _declared() -> dict[Path, Key]:
    return {
        (section, field.name): Key(section, field.name, field.type, field.default)
        for section, fields in SECTIONS.items()
        for field in msgspec.structs.fields(fields)
    }


KEYS = _declared()
"""(section, name) -> key, in the order of the file"""


def find(path: Path) -> Key:
    """The key at a path: its own, or the one that an override stands in for.

    Raises:
        ValueError: there is none; the message names the nearest one.
    """
    if path in KEYS:
        return KEYS[path]
    if len(path) == 3 and path[0] in OVERRIDING:
        if path[0] == "languages" and not _LANGUAGE.fullmatch(path[1]):
            raise ValueError(f"{shown(path[1])} is no language id: they are in lower case, like python or cpp.")
        if path[0] == "files":
            check_globs(path[1:2])
        if path[2] in BASES:
            return KEYS[BASES[path[2]]]
    if len(path) < 3 and path[0] in OVERRIDING:
        what = "[languages.python]" if path[0] == "languages" else '[files."*.md"]'
        raise ValueError(f"{dotted(path)} needs a table such as {what}.")
    if len(path) == 1 and path[0] in SECTIONS:
        raise ValueError(f"{path[0]} is a table; write [{path[0]}] and its keys below.")
    guess = nearest(path)
    hint = f"did you mean {guess}?" if guess else "`eagle-assist config example` lists them all."
    raise ValueError(f"there is no key {dotted(path)}; {hint}")


def is_table(path: Path) -> bool:
    """Whether an empty table may stand there."""
    return (len(path) == 1 and path[0] in {*SECTIONS, *OVERRIDING}) or (len(path) == 2 and path[0] in OVERRIDING)


def nearest(path: Path) -> str | None:
    """The valid key that was probably meant: one spelt almost so, the same name elsewhere, or the most similar."""
    if path[0] in OVERRIDING and len(path) > 2:
        close = difflib.get_close_matches(path[2][:_SHOWN], BASES, 1)
        return dotted((*path[:2], close[0])) if close else None
    declared = [key.dotted for key in KEYS.values()]
    by_name = {key.name: key.dotted for key in reversed(KEYS.values())}
    for known, wanted, cutoff in (
        ([*declared, *SECTIONS, *OVERRIDING], dotted(path), 0.85),
        (by_name, path[-1][:_SHOWN], 1.0),
        (declared, dotted(path), 0.6),
        (by_name, path[-1][:_SHOWN], 0.6),
    ):
        for close_one in difflib.get_close_matches(wanted, known, 1, cutoff):
            return by_name.get(close_one, close_one)
    return None


def dotted(path: Sequence[str]) -> str:
    """A path as TOML writes it, cut where it is far too long."""
    parts = [part if _BARE.fullmatch(part) else quoted(part) for part in path]
    text = ".".join(parts)
    return text if len(text) <= 2 * _SHOWN else f"{text[: 2 * _SHOWN]}..."


def split(key: str) -> Path:
    """The path of a dotted key.

    Raises:
        ValueError: it is none.
    """
    if not DOTTED.fullmatch(key):
        raise ValueError(f"{shown(key)} is no key: write section.name.")
    return tuple(_plain(part) for part in _PART.findall(key))


def shown(value: object) -> str:
    """A user's value as a sentence may repeat it: short, on one line."""
    if isinstance(value, dict):
        return "a table"
    if isinstance(value, list) and len(value) > 4:
        return f"a list of {len(value)}"
    text = {True: "true", False: "false"}.get(value, "") if isinstance(value, bool) else ascii_line(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


def ascii_line(value: object) -> str:
    """The value on one printable line."""
    if isinstance(value, str):
        return quoted(value[: 2 * _SHOWN])
    if isinstance(value, int) and abs(value) >= 10**_SHOWN:
        return "a number of very many digits"
    return ascii(value)


def quoted(text: str) -> str:
    """A string as TOML writes it, on one line."""
    body = "".join(c if c.isprintable() and c not in '"\\' else _escape(c) for c in text)
    return f'"{body}"'


def _escape(char: str) -> str:
    return f"\\{char}" if char in '"\\' else f"\\u{ord(char):04x}" if ord(char) < 0x10000 else f"\\U{ord(char):08x}"


def _plain(part: str) -> str:
    return part if _BARE.fullmatch(part) else next(iter(tomli.loads(f"{part} = 0")))
