"""What the editor configured, checked key by key, over the user's and the project's files."""

import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from assistant import config
from assistant.config.keys import dotted
from assistant.config.layers import Rank
from assistant.errors import ConfigError
from assistant.protocol import SettingValues

SECTION = "eagle-assist"
"""what editors call our settings; it may wrap them"""
_WRAPPERS = (SECTION, "eagleAssist", "eagle_assist")
_FRESH_S = 2.0
"""configuration files are read again after this long"""
_DEPTH = 3


class EditorSettings:
    """Settings by document.

    Args:
        complain: told every problem, once each.
    """

    def __init__(self, complain: Callable[[str], None]) -> None:
        self.values: SettingValues = {}
        """the editor's own, by dotted key; only those that are valid"""
        self._complain = complain
        self._said: set[str] = set()
        self._cache: dict[tuple[str, str | None], tuple[float, config.Settings]] = {}

    def take(self, options: object) -> None:
        """Take what an editor sent in place of what it sent before; a setting that cannot be used is left out."""
        values: SettingValues = {}
        for name, value in _leaves(options):
            try:
                config.mapping_layer(Rank.CLIENT, {name: value}, "the editor's settings")
            except ConfigError as error:
                self._complain_of(error)
            else:
                values[name] = value
        self.values = values
        self._cache.clear()

    def of(self, path: str, language: str | None) -> config.Settings:
        """The settings of a document. Files that cannot be used count as absent."""
        key, now = (path, language), time.monotonic()
        found = self._cache.get(key)
        if found is None or now - found[0] > _FRESH_S:
            found = self._cache[key] = now, self._load(path).for_document(path, language)
        return found[1]

    def _load(self, path: str) -> config.Settings:
        document = Path(path) if Path(path).is_absolute() else None
        try:
            return config.load(document, client=self.values).settings
        except ConfigError as error:
            self._complain_of(error)
        except OSError:  # a path that no system call takes
            return config.Settings()
        from assistant.config.merge import merge

        return merge([config.mapping_layer(Rank.CLIENT, self.values, "the editor's settings")]).settings

    def complain(self, problem: str) -> None:
        """Tell a problem, unless it was told before."""
        if problem not in self._said:
            self._said.add(problem)
            self._complain(problem)

    def _complain_of(self, error: ConfigError) -> None:
        for problem in error.problems:
            self.complain(str(problem))


def _leaves(options: object) -> Iterator[tuple[str, Any]]:
    """Dotted keys and values of nested tables, flat keys, or both, wrapped in our name or not."""
    if not isinstance(options, Mapping):
        return
    for wrapper in _WRAPPERS:
        if isinstance(options.get(wrapper), Mapping):
            yield from _leaves(options[wrapper])
            return
    yield from _nested(options, ())


def _nested(table: Mapping[Any, Any], path: tuple[str, ...]) -> Iterator[tuple[str, Any]]:
    for name, value in table.items():
        if isinstance(value, Mapping) and len(path) < _DEPTH:
            yield from _nested(value, (*path, str(name)))
        elif value is not None:
            yield (str(name) if not path else dotted((*path, str(name)))), value
