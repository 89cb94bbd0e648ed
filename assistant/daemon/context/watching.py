"""Tells an index what changed in its workspace."""

import logging
import os
from pathlib import Path

from watchdog.events import FileSystemEvent, FileSystemEventHandler
from watchdog.observers import Observer
from watchdog.observers.api import BaseObserver

from assistant.daemon.context.index import Index

_log = logging.getLogger(__name__)
_IGNORED = frozenset({"opened", "closed", "closed_no_write"})


class Watch(FileSystemEventHandler):
    """Watches one workspace until it is closed; where the system refuses, the index stays as it is."""

    def __init__(self, index: Index) -> None:
        self._index = index
        self._observer: BaseObserver = Observer()
        self._observer.daemon = True
        try:
            self._observer.schedule(self, str(index.root), recursive=True)
            self._observer.start()
        except OSError as error:
            _log.warning("a workspace is not watched for changes: %s", error.strerror)

    def on_any_event(self, event: FileSystemEvent) -> None:
        """Pass on every change of a name or of a content."""
        if event.event_type in _IGNORED or (event.is_directory and event.event_type == "modified"):
            return
        for path in {event.src_path, event.dest_path} - {""}:
            inner = os.path.relpath(os.fsdecode(path), self._index.root)
            if not inner.startswith(".."):
                self._index.changed(Path(inner).as_posix())

    def close(self) -> None:
        """Watch no more."""
        if self._observer.is_alive():
            self._observer.stop()
            self._observer.join(timeout=5)
