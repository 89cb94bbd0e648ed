"""The daemon's log: rotated, and empty of everything that a user wrote.

Our own lines name requests by number, clients by name, and counts and times. What a library logs is reduced to where
it did so, and an exception to its type and the places that it passed: arguments and messages may quote code.
"""

import logging
from logging.handlers import RotatingFileHandler
from pathlib import Path

from assistant.faults import record as places
from assistant.files import ensure_dir, storage_errors

MAX_BYTES = 1 << 20
BACKUPS = 3
FILE = "daemon.log"
OWN = "assistant"


class Discreet(logging.Formatter):
    """Formats records without what may hold a user's text."""

    def format(self, record: logging.LogRecord) -> str:
        """One line, and where an exception passed."""
        own = record.name.partition(".")[0] == OWN
        message = record.getMessage() if own else f"{record.module}:{record.lineno}"
        lines = [f"{self.formatTime(record)} {record.levelname} {record.name}: {message}"]
        if record.exc_info and record.exc_info[1] is not None:
            lines.append(places(record.exc_info[1]).rstrip())
        return "\n".join(lines)


def write_to(folder: Path, level: int = logging.INFO) -> Path:
    """Send every record of this process to a rotated log in `folder`, and return the file.

    Raises:
        StorageError: the folder cannot be written to.
    """
    path = ensure_dir(folder) / FILE
    with storage_errors(path):
        path.touch(mode=0o600)
        handler = RotatingFileHandler(path, maxBytes=MAX_BYTES, backupCount=BACKUPS, encoding="utf-8")
    handler.setFormatter(Discreet())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING)
    logging.getLogger(OWN).setLevel(level)
    logging.captureWarnings(capture=True)
    logging.raiseExceptions = False  # a full disk must not end a completion
    return path
