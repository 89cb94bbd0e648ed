"""Hashes of model files, and a note beside each verified file so that a start need not read 500 MB again."""

import hashlib
import json
from collections.abc import Callable
from pathlib import Path

from assistant.errors import StorageError
from assistant.files import write_atomic

Progress = Callable[[str, int, int], None]
"""called with a stage's name, how much of it is done, and how much there is (bytes or tensors)"""

BLOCK = 1 << 22
"""bytes read at once"""


def silent(_stage: str, _done: int, _total: int) -> None:
    """Progress that nobody watches."""


def hash_file(path: Path, progress: Progress = silent) -> str:
    """The file's sha256, in hexadecimal; the stage is called `verify`."""
    digest, done, total = hashlib.sha256(), 0, path.stat().st_size
    with path.open("rb") as file:
        while block := file.read(BLOCK):
            digest.update(block)
            done += len(block)
            progress("verify", done, total)
    return digest.hexdigest()


def is_noted(path: Path, sha256: str) -> bool:
    """Whether `path` was found to have this hash and has kept its size and its time of change since."""
    try:
        note = json.loads(_note(path).read_text(encoding="utf-8"))
        return bool(note == _state(path, sha256))
    except (OSError, ValueError):
        return False


def note_verified(path: Path, sha256: str) -> None:
    """Remember that `path` has this hash; a read-only folder only means that it is read again next time."""
    try:
        write_atomic(_note(path), json.dumps(_state(path, sha256)).encode())
    except StorageError:
        return


def _note(path: Path) -> Path:
    return path.with_name(f"{path.name}.verified.json")


def _state(path: Path, sha256: str) -> dict[str, int | str]:
    stat = path.stat()
    return {"sha256": sha256, "size": stat.st_size, "mtime_ns": stat.st_mtime_ns}
