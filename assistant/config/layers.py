"""One source of settings each: a mapping of keys to checked values, and where each stands."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import IntEnum

from assistant.config.keys import KEYS, Path, dotted, find, split
from assistant.config.overrides import Value
from assistant.errors import ConfigError, Problem
from assistant.paths import HOME_VARIABLE

PREFIX = "EAGLE_ASSIST_"
NESTING = "__"


class Rank(IntEnum):
    """Whose word counts more: a later one's."""

    DEFAULT = 0
    USER = 1
    PROJECT = 2
    ENVIRONMENT = 3
    CLIENT = 4
    COMMAND_LINE = 5


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a value came from."""

    rank: Rank
    place: str = "default"
    """a file, a variable, a client's name, `command line` or `default`"""
    line: int | None = None
    column: int | None = None

    def __str__(self) -> str:
        """`FILE:LINE`, or the place alone."""
        return self.place if self.line is None else f"{self.place}:{self.line}"


@dataclass(frozen=True, slots=True)
class Entry:
    """One value and its origin."""

    value: Value
    origin: Origin


@dataclass(frozen=True, slots=True, eq=False)
class Layer:
    """What one source sets. Equal to itself alone, so that it is a key of caches."""

    rank: Rank
    entries: Mapping[Path, Entry]
    base: str = "/"
    """the folder that globs are relative to"""


def environment_layer(environ: Mapping[str, str]) -> Layer:
    """The settings of environment variables: `EAGLE_ASSIST_TREE__NODES=16` is `tree.nodes`, lists have commas.

    Every variable that begins with EAGLE_ASSIST_ and holds two underscores in a row is a setting. An empty one counts
    as not set.

    Raises:
        ConfigError: such a variable is no setting, or its value does not fit.
    """
    entries: dict[Path, Entry] = {}
    problems: list[Problem] = []
    for name in sorted(environ):
        if not name.startswith(PREFIX) or name == HOME_VARIABLE or not environ[name].strip():
            continue
        try:
            path = _variable_path(name)
            if path is not None:
                entries[path] = Entry(
                    find(path).convert(environ[name].strip(), text=True), Origin(Rank.ENVIRONMENT, name)
                )
        except ValueError as error:
            problems.append(Problem(name, None, None, str(error)))
    return _finished(Layer(Rank.ENVIRONMENT, entries), problems)


def mapping_layer(rank: Rank, settings: Mapping[str, object], place: str) -> Layer:
    """The settings of a mapping of dotted keys: a client's, or the command line's. A value of None sets nothing.

    Raises:
        ConfigError: a key is unknown, or a value does not fit.
    """
    entries: dict[Path, Entry] = {}
    problems: list[Problem] = []
    for name, value in settings.items():
        if value is None:
            continue
        try:
            path = split(name)
            entries[path] = Entry(find(path).convert(value), Origin(rank, place))
        except ValueError as error:
            problems.append(Problem(place, None, None, str(error)))
    return _finished(Layer(rank, entries), problems)


def default_layer() -> Layer:
    """What holds where nobody says otherwise."""
    return Layer(Rank.DEFAULT, {path: Entry(key.default, Origin(Rank.DEFAULT)) for path, key in KEYS.items()})


def _variable_path(name: str) -> Path | None:
    """The key of a variable; None where the variable is none of the settings'."""
    rest = name.removeprefix(PREFIX)
    if NESTING in rest:
        return tuple(part.lower() for part in rest.split(NESTING))
    meant = [path for path in KEYS if "_".join(path).upper() == rest]
    if meant:
        raise ValueError(
            f"{name} sets nothing; two underscores stand for the dot of {dotted(meant[0])}: "
            f"write {PREFIX}{NESTING.join(meant[0]).upper()}."
        )
    return None


def _finished(layer: Layer, problems: Iterable[Problem]) -> Layer:
    found = tuple(problems)
    if found:
        raise ConfigError(found)
    return layer
