"""From all sources to one configuration, and where each of its values came from."""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from assistant.config import files, keys
from assistant.config.declaration import SECTIONS, Settings
from assistant.config.layers import Entry, Layer, Origin, Rank, default_layer, environment_layer, mapping_layer
from assistant.config.overrides import BASES, Override
from assistant.errors import ConfigError, Problem


@dataclass(frozen=True, slots=True)
class Merged:
    """A configuration and how it came about."""

    settings: Settings
    origins: Mapping[str, Origin]
    """dotted key -> where its value came from; every key of the declaration, and the overrides that were set"""
    files: tuple[Path, ...] = ()
    """the configuration files that were read"""


def load(
    document: Path | None = None,
    *,
    environ: Mapping[str, str] | None = None,
    client: Mapping[str, object] | None = None,
    command_line: Mapping[str, object] | None = None,
    user_file: Path | None = None,
) -> Merged:
    """The configuration for a document (None: for none in particular).

    Later sources win: defaults, the user's file, the nearest `.eagle-assist.toml` upward from the document, the
    environment (None: this process's), a client's settings, the command line. The last two map dotted keys to values;
    None among them sets nothing.

    Raises:
        ConfigError: something in any of the sources is wrong; it holds every problem of all of them.
    """
    user = user_file or files.user_file()
    project = files.project_file(document) if document is not None else None
    read = [(path, rank) for path, rank in ((user, Rank.USER), (project, Rank.PROJECT)) if path and files.present(path)]
    layers = gather(
        [
            *(partial(files.read_layer, path, rank) for path, rank in read),
            partial(environment_layer, os.environ if environ is None else environ),
            partial(mapping_layer, Rank.CLIENT, client or {}, "client"),
            partial(mapping_layer, Rank.COMMAND_LINE, command_line or {}, "command line"),
        ]
    )
    return merge(layers, tuple(path for path, _ in read))


def gather(sources: Iterable[Callable[[], Layer]]) -> list[Layer]:
    """The layers of all sources.

    Raises:
        ConfigError: one or more of them are wrong; it holds the problems of all.
    """
    layers: list[Layer] = []
    problems: list[Problem] = []
    for source in sources:
        try:
            layers.append(source())
        except ConfigError as error:
            problems += error.problems
    if problems:
        raise ConfigError(problems)
    return layers


def merge(layers: Sequence[Layer], read: tuple[Path, ...] = ()) -> Merged:
    """The defaults under `layers`, which stand in order of rank.

    Where a source above the files (environment, client, command line) sets a key, what lower ones set for a language or
    a glob in its stead no longer counts: what one asks for now is meant for the document at hand.
    """
    merged = {path: (entry, _DEFAULTS) for path, entry in _DEFAULTS.entries.items()}
    for layer in layers:
        for path, entry in layer.entries.items():
            if layer.rank > Rank.PROJECT:
                _forget_overrides(merged, path)
            below = merged.pop(path, None)  # so that an override comes after those of lower layers
            merged[path] = (_added(path, below[0], entry) if below else entry, layer)
    ordered = [*keys.KEYS, *(path for path in merged if path not in keys.KEYS)]
    return Merged(_settings(merged), {keys.dotted(path): merged[path][0].origin for path in ordered}, read)


_DEFAULTS = default_layer()
_Found = dict[keys.Path, tuple[Entry, Layer]]


def _forget_overrides(merged: _Found, path: keys.Path) -> None:
    for other in [other for other in merged if len(other) == 3 and BASES[other[2]] == path]:
        del merged[other]


def _added(path: keys.Path, below: Entry, entry: Entry) -> Entry:
    """An entry over the one below it: a project's list lengthens what it finds, everything else takes its place."""
    if entry.origin.rank is not Rank.PROJECT or keys.find(path).project != "add":
        return entry
    assert isinstance(below.value, tuple)
    assert isinstance(entry.value, tuple)
    return Entry(tuple(dict.fromkeys((*below.value, *entry.value))), entry.origin)


def _settings(merged: _Found) -> Settings:
    sections: dict[str, dict[str, Any]] = {name: {} for name in SECTIONS}
    overrides = []
    for path, (entry, layer) in merged.items():
        if len(path) == 2:
            sections[path[0]][path[1]] = entry.value
        else:
            overrides.append(Override(path[0], path[1], path[2], entry.value, layer.base))
    made: dict[str, Any] = {name: SECTIONS[name](**values) for name, values in sections.items()}
    return Settings(**made, overrides=tuple(overrides))
