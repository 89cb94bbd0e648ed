"""An index of one workspace: which file defines what. Made in a thread, kept up to date by watching, bounded in memory.

Readers take a finished table by reference and never wait: the thread makes changes on its own copy of what it touches
and puts it in place in one assignment.
"""

import logging
import os
import queue
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from sys import intern

from assistant.config.languages import language_of
from assistant.daemon.context.facts import Facts, definitions_of, imports_of, knows
from assistant.daemon.context.ignored import IgnoreRules
from assistant.daemon.context.sourcefile import read_source

_log = logging.getLogger(__name__)
_IGNORE_FILE = ".gitignore"
_END = ""
_BESIDE = 16
"""files of a folder that are remembered for what they say, not for what they define"""


@dataclass(frozen=True, slots=True)
class Bounds:
    """What an index may hold."""

    files: int = 100_000
    definitions: int = 2_000_000
    file_bytes: int = 512 << 10


class Index:
    """Facts of a workspace's files by path, and the paths that define a name.

    Args:
        root: the workspace's folder.
        allowed: whether a file, by its full path, may be read at all (secrets and exclusions may not).
        exclude: further rules, as in .gitignore.
        bounds: of memory; what does not fit is left out.
    """

    def __init__(
        self, root: Path, allowed: Callable[[str], bool], exclude: tuple[str, ...] = (), bounds: Bounds | None = None
    ) -> None:
        self.root = root
        self._allowed = allowed
        self._bounds = bounds or Bounds()
        self._rules = IgnoreRules(exclude)
        self._facts: dict[str, Facts] = {}
        self._definers: dict[str, tuple[str, ...]] = {}
        self._beside: dict[str, tuple[str, ...]] = {}
        self._definitions = 0
        self._changes: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._first: Callable[[], None] = lambda: None
        self._closed = threading.Event()
        self._complete = threading.Event()
        self._thread = threading.Thread(target=self._work, name="workspace-index", daemon=True)

    def start(self, first: Callable[[], None] = lambda: None) -> None:
        """Begin to read the workspace in the index's own thread, which does `first` before it."""
        self._first = first
        self._thread.start()

    def close(self) -> None:
        """End the thread; the index keeps what it has."""
        self._closed.set()
        self._changes.put(_END)
        if self._thread.is_alive():
            self._thread.join(timeout=5)

    @property
    def complete(self) -> bool:
        """Whether the workspace has been read once and no change is waiting."""
        return self._complete.is_set() and self._changes.empty()

    def __len__(self) -> int:
        return len(self._facts)

    def facts(self, path: str) -> Facts | None:
        """What is known of a file, by its path relative to the root."""
        return self._facts.get(path)

    def definers(self, name: str) -> tuple[str, ...]:
        """The files that define a name."""
        return self._definers.get(name, ())

    def beside(self, path: str) -> tuple[str, ...]:
        """Files in a file's folder whose definitions cannot be told; a few where there are many."""
        return self._beside.get(_folder(path), ())

    def changed(self, path: str) -> None:
        """A file or folder was made, changed, moved or deleted (relative to the root); looked at in the thread."""
        self._changes.put(path)

    def files(self) -> Iterator[str]:
        """The files that may be read, relative to the root, folder by folder; nothing is read of them."""
        return filter(self._may, self._walk(""))

    def text(self, path: str) -> str | None:
        """A file as it is now; None where it may not be read any more."""
        if not self._may(path):
            return None
        return read_source(self.root / path, self._bounds.file_bytes)

    def scan(self) -> None:
        """Read the whole workspace; what is gone is forgotten."""
        seen = set()
        for path in self._walk(""):
            if self._closed.is_set():
                return
            seen.add(path)
            self._look(path)
        for path in [path for path in self._facts if path not in seen]:
            self._forget(path)

    def update(self, path: str) -> None:
        """Look at one changed path again."""
        full = self.root / path
        if path.rpartition("/")[2] == _IGNORE_FILE:
            self._read_rules(_folder(path))
            self.scan()
        elif full.is_dir() and not full.is_symlink():
            for inner in self._walk(path):
                self._look(inner)
        elif path in self._facts or full.exists():
            self._look(path)
        else:
            for inner in [known for known in self._facts if known.startswith(f"{path}/")]:
                self._forget(inner)

    def _work(self) -> None:
        _lower_priority()
        try:
            self._first()
            self.scan()
        except OSError as error:
            _log.warning("the workspace cannot be indexed: %s", error.strerror)
        self._complete.set()
        while not self._closed.is_set():
            path = self._changes.get()
            if path != _END:
                try:
                    self.update(path)
                except OSError as error:
                    _log.warning("a change cannot be indexed: %s", error.strerror)

    def _walk(self, folder: str) -> Iterator[str]:
        """Files below a folder that no rule leaves out; the rules of each folder are read before its files."""
        waiting = [folder]
        while waiting:
            here = waiting.pop()
            self._read_rules(here)
            try:
                entries = sorted(os.scandir(self.root / here), key=lambda entry: entry.name)
            except OSError:
                continue
            for entry in entries:
                path = f"{here}/{entry.name}" if here else entry.name
                if entry.is_dir(follow_symlinks=False):
                    if not self._rules.ignores(path, folder=True):
                        waiting.append(path)
                elif entry.is_file(follow_symlinks=False):
                    yield path

    def _read_rules(self, folder: str) -> None:
        path = self.root / folder / _IGNORE_FILE
        try:
            lines = path.read_text(encoding="utf-8", errors="replace").splitlines() if path.is_file() else []
        except OSError:
            lines = []
        self._rules.put(folder, lines)

    def _may(self, path: str) -> bool:
        return self._allowed(str(self.root / path)) and not self._rules.ignores(path)

    def _look(self, path: str) -> None:
        language = language_of(path)
        known = self._facts.get(path)
        try:
            found = os.stat(self.root / path, follow_symlinks=False)  # noqa: PTH116 - a Path a file costs more than it
        except OSError:
            self._forget(path)
            return
        if known is not None and (known.size, known.modified) == (found.st_size, found.st_mtime_ns) and self._may(path):
            return
        text = self.text(path) if language is not None else None
        self._forget(path)
        if text is None or language is None or len(self._facts) >= self._bounds.files:
            return
        definitions = definitions_of(text, language)[: max(0, self._bounds.definitions - self._definitions)]
        imports = tuple(map(intern, imports_of(text)))
        self._facts[path] = Facts(path, found.st_size, found.st_mtime_ns, definitions, imports)
        self._definitions += len(definitions)
        for name in {intern(definition.name) for definition in definitions}:
            self._definers[name] = (*self._definers.get(name, ()), path)
        if not knows(language) and len(self.beside(path)) < _BESIDE:
            self._beside[_folder(path)] = (*self.beside(path), path)

    def _forget(self, path: str) -> None:
        gone = self._facts.pop(path, None)
        if gone is None:
            return
        self._definitions -= len(gone.definitions)
        for name in {definition.name for definition in gone.definitions}:
            left = tuple(other for other in self._definers[name] if other != path)
            if left:
                self._definers[name] = left
            else:
                del self._definers[name]
        if path in self.beside(path):
            self._beside[_folder(path)] = tuple(other for other in self.beside(path) if other != path)


def _folder(path: str) -> str:
    return path.rpartition("/")[0]


def _lower_priority() -> None:
    """On Linux a thread has a niceness of its own: completions go first."""
    if hasattr(os, "setpriority"):
        try:
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), 10)
        except OSError:
            return
