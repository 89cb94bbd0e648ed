"""The configuration of any document, cached, and read again when a file changed.

Asking costs a `stat` for the user's file and for each folder upward until a project's file is found. A file that turned
bad stays in force as it was last good, and its problems are kept until it is mended; one that was never good counts
as absent.
"""

import os
import threading
import time
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from assistant.config import files
from assistant.config.layers import Layer, Rank, environment_layer, mapping_layer
from assistant.config.merge import Merged, gather, merge
from assistant.errors import ConfigError, Problem

_FOLDERS = 64
"""of documents that were asked for last, which are remembered"""
_FRESH_NS = 50_000_000
"""a file changed less than this ago may change again without a new time stamp"""

Stamp = tuple[int, ...] | None


@dataclass(frozen=True, slots=True)
class _File:
    """What was found at the last look."""

    stamp: Stamp
    """None: look again whatever `stat` says"""
    layer: Layer | None
    """of its last good state"""
    problems: tuple[Problem, ...] = ()


class ConfigStore:
    """Configurations by document; every method may be called from any thread.

    Raises:
        ConfigError: the environment or the command line is wrong; files never make it raise.
    """

    def __init__(
        self,
        *,
        environ: Mapping[str, str] | None = None,
        command_line: Mapping[str, object] | None = None,
        user_file: Path | None = None,
    ) -> None:
        self.user_file = (user_file or files.user_file()).absolute()
        self._environment, self._command_line = gather(
            [
                lambda: environment_layer(os.environ if environ is None else environ),
                lambda: mapping_layer(Rank.COMMAND_LINE, command_line or {}, "command line"),
            ]
        )
        self._files: dict[Path, _File] = {}
        self._folders: OrderedDict[Path | None, Path | None] = OrderedDict()
        self._lock = threading.RLock()
        self._merge = lru_cache(maxsize=_FOLDERS)(merge)

    def current(self, document: Path | None = None, client: Layer | None = None) -> Merged:
        """The configuration of a document (None: of none) under a client's settings, as its files are now."""
        folder = document.absolute().parent if document is not None else None
        with self._lock:
            found = self._of_folder(folder)
        return self._merged(found, client)

    def refresh(self, *, anew: bool) -> Mapping[Path | None, Merged]:
        """The configurations of the folders that were asked for last, and of none; `anew`: whatever `stat` says."""
        with self._lock:
            if anew:
                self._files = {path: _File(None, file.layer, file.problems) for path, file in self._files.items()}
            found = {folder: self._of_folder(folder) for folder in [None, *self._folders]}
            used = {self.user_file, *self._folders.values()}
            self._files = {path: file for path, file in self._files.items() if path in used}
        return {folder: self._merged(layers, None) for folder, layers in found.items()}

    @property
    def problems(self) -> tuple[Problem, ...]:
        """What is wrong with the files, as they were read last."""
        with self._lock:
            return tuple(problem for file in self._files.values() for problem in file.problems)

    @property
    def watched(self) -> frozenset[Path]:
        """The files whose changes matter: the user's, and the projects' of the folders that were asked for last."""
        with self._lock:
            return frozenset({self.user_file, *filter(None, self._folders.values())})

    def _merged(self, found: tuple[tuple[Path, Layer], ...], client: Layer | None) -> Merged:
        layers = [layer for _, layer in found] + [self._environment, *([client] if client else []), self._command_line]
        return self._merge(tuple(layers), tuple(path for path, _ in found))

    def _of_folder(self, folder: Path | None) -> tuple[tuple[Path, Layer], ...]:
        """The files that count for a folder, as they were last good."""
        project = None
        if folder is not None:
            project = next((path for path in files.candidates(folder) if _stamp(path) != ()), None)
            self._folders[folder] = project
            self._folders.move_to_end(folder)
            if len(self._folders) > _FOLDERS:
                self._folders.popitem(last=False)
        found = [
            (path, self._layer(path, rank))
            for path, rank in ((self.user_file, Rank.USER), (project, Rank.PROJECT))
            if path
        ]
        return tuple((path, layer) for path, layer in found if layer is not None)

    def _layer(self, path: Path, rank: Rank) -> Layer | None:
        stamp = _stamp(path)
        if stamp == ():
            self._files.pop(path, None)
            return None
        known = self._files.get(path)
        if known is None or stamp is None or known.stamp != stamp:
            try:
                known = _File(stamp, files.read_layer(path, rank))
            except ConfigError as error:
                known = _File(stamp, known.layer if known else None, error.problems)
            self._files[path] = known
        return known.layer


def _stamp(path: Path) -> Stamp:
    """What changes when a file does: () where nothing is, None where that cannot be told or it changed just now."""
    try:
        found = path.stat()
    except OSError:
        return None if files.present(path) else ()
    if time.time_ns() - found.st_mtime_ns < _FRESH_NS:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns
