"""A configuration that follows its files: what is saved applies at once, and what is wrong is reported.

The system's notices (watchdog) only say when to look; what changed is found by reading. So it does not matter how an
editor saves, a lost notice costs seconds, and where there are no notices (inotify's watches are used up, a network
file system, a symbolic link's target) looking every so often is enough.
"""

import logging
import os
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

from watchdog.events import FileSystemEvent, FileSystemEventHandler
from watchdog.observers import Observer
from watchdog.observers.api import ObservedWatch

from assistant.config.files import PROJECT_NAME
from assistant.config.layers import Layer
from assistant.config.merge import Merged
from assistant.config.store import ConfigStore
from assistant.errors import Problem

_LOG = logging.getLogger(__name__)
_QUIET_S = 0.05
"""a save is over when nothing happened for this long"""
_SAVE_S = 1.0
"""but this long is waited at most"""
_LOOK_S = 3.0
"""without a notice"""
_POLL_S = 1.0
"""the same where there are none"""
_CHANGES = {"created", "modified", "moved", "deleted", "closed"}


class ConfigWatcher:
    """Configurations by document, and two callbacks, both on a thread of its own; a context manager.

    `on_change` is called after a change of any configuration that was asked for (or of the one for no document):
    ask `current` again. `on_problems` is called with all that is wrong with the files whenever that changes; with
    nothing once everything is mended. They return soon and do not raise.

    Raises:
        ConfigError: the environment or the command line is wrong.
    """

    def __init__(
        self,
        *,
        on_change: Callable[[], None] | None = None,
        on_problems: Callable[[tuple[Problem, ...]], None] | None = None,
        environ: Mapping[str, str] | None = None,
        command_line: Mapping[str, object] | None = None,
        user_file: Path | None = None,
    ) -> None:
        self._store = ConfigStore(environ=environ, command_line=command_line, user_file=user_file)
        self._on_change = on_change
        self._on_problems = on_problems
        self._told: Mapping[Path | None, Merged] = {}
        self._told_problems: tuple[Problem, ...] = ()
        self._wake = threading.Event()
        self._closing = threading.Event()
        self._notices = _Notices(self._wake)
        self._thread = threading.Thread(target=self._run, name="configuration", daemon=True)

    def current(self, document: Path | None = None, client: Layer | None = None) -> Merged:
        """The configuration of a document under a client's settings (`mapping_layer`), as its files are now."""
        return self._store.current(document, client)

    @property
    def problems(self) -> tuple[Problem, ...]:
        """What is wrong with the files now."""
        return self._store.problems

    @property
    def polling(self) -> bool:
        """Whether the system gives no notices, so that a change takes a second to be seen."""
        return self._notices.missing

    def start(self) -> Self:
        """Begin to watch; problems that there are already are reported first."""
        self._told = self._store.refresh(anew=False)
        self._notices.follow(self._store.watched)
        self._wake.set()
        self._thread.start()
        return self

    def close(self) -> None:
        """End; no callback comes after it."""
        self._closing.set()
        self._wake.set()
        if self._thread.is_alive() and threading.current_thread() is not self._thread:
            self._thread.join()
        self._notices.close()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _run(self) -> None:
        noticed = True
        while not self._closing.is_set():
            self._look(anew=noticed)
            self._notices.follow(self._store.watched)
            noticed = self._wake.wait(_POLL_S if self.polling else _LOOK_S)
            if noticed:
                self._settle()

    def _settle(self) -> None:
        """Wait until a burst of notices is over, so that one save is one change."""
        for _ in range(round(_SAVE_S / _QUIET_S)):
            self._wake.clear()
            if self._closing.is_set() or not self._wake.wait(_QUIET_S):
                return

    def _look(self, *, anew: bool) -> None:
        found = self._store.refresh(anew=anew)
        changed = any(merged != self._told.get(folder, merged) for folder, merged in found.items())
        self._told = found
        problems = self._store.problems
        news = problems != self._told_problems
        self._told_problems = problems
        if news and self._on_problems is not None:
            self._on_problems(problems)
        if changed and self._on_change is not None:
            self._on_change()


class _Notices(FileSystemEventHandler):
    """Sets an event when something happens to one of the files that it follows."""

    def __init__(self, wake: threading.Event) -> None:
        self.missing = False
        self._wake = wake
        self._names: frozenset[str] = frozenset()
        self._watches: dict[Path, tuple[int, ObservedWatch]] = {}
        self._observer = Observer()

    def on_any_event(self, event: FileSystemEvent) -> None:
        """Called by watchdog, on its thread. Opening a file is an event too, and reading must not lead to reading."""
        names = {Path(str(path)).name for path in (event.src_path, event.dest_path)}
        if event.event_type in _CHANGES and names & self._names:
            self._wake.set()

    def follow(self, paths: frozenset[Path]) -> None:
        """Watch the folders of these files, and those of what they link to."""
        targets = {Path(os.path.realpath(path)) for path in paths}
        self._names = frozenset({PROJECT_NAME, *(path.name for path in paths | targets)})
        folders = {path.parent for path in paths | targets}
        wanted = {folder: inode for folder in folders if (inode := _inode(folder)) is not None}
        try:
            if not self._observer.is_alive() and wanted:
                self._observer.start()
            for folder, (inode, watch) in list(self._watches.items()):
                if wanted.get(folder) != inode:
                    del self._watches[folder]
                    self._observer.unschedule(watch)
            for folder in wanted.keys() - self._watches.keys():
                self._watches[folder] = (wanted[folder], self._observer.schedule(self, str(folder)))
            self.missing = False
        except (OSError, KeyError) as error:
            if not self.missing:
                _LOG.info("no notices of saved configuration files (%s): looking every second instead", error)
            self.missing = True

    def close(self) -> None:
        """End."""
        if self._observer.is_alive():
            self._observer.stop()
            self._observer.join()


def _inode(folder: Path) -> int | None:
    """What a folder that was removed and made again has anew; None where there is none."""
    try:
        return folder.stat().st_ino
    except OSError:
        return None
