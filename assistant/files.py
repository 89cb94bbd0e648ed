"""Writing files so that a reader never sees half of one, and a full or read-only disk is one clear sentence."""

import errno
import glob
import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import BaseFileLock, FileLock

from assistant.errors import StorageError
from assistant.paths import HOME_VARIABLE

_RANDOM_BYTES = 4
_REMEDY = f"point {HOME_VARIABLE} at a folder that you can write to"


@contextmanager
def storage_errors(path: Path) -> Iterator[None]:
    """Translate an OSError of writing at `path` into a StorageError that names the remedy."""
    try:
        yield
    except OSError as error:
        raise StorageError(_sentence(path, error)) from error


def _sentence(path: Path, error: OSError) -> str:
    if error.errno in {errno.ENOSPC, errno.EDQUOT}:
        return f"{path} cannot be written: the disk is full; free some space or {_REMEDY}."
    if error.errno in {errno.EROFS, errno.EACCES, errno.EPERM}:
        return f"{path} cannot be written: the folder is read-only; {_REMEDY}."
    return f"{path} cannot be written: {error.strerror or error}; {_REMEDY}."


def ensure_dir(folder: Path) -> Path:
    """Create `folder` and its parents where they are missing, and return it.

    Raises:
        StorageError: it cannot be created.
    """
    with storage_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
    return folder


@contextmanager
def atomic_file(path: Path) -> Iterator[Path]:
    """Give a temporary name in `path`'s folder; when the block ends well its file, synced, takes `path`'s place.

    Raises:
        StorageError: the folder is read-only or full.
    """
    ensure_dir(path.parent)
    with storage_errors(path):
        temporary = _temporary(path)
        temporary.touch(exist_ok=False)
        try:
            yield temporary
            _sync(temporary)
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)


@contextmanager
def atomic_folder(path: Path) -> Iterator[Path]:
    """Give a temporary folder beside `path`; when the block ends well it takes `path`'s place, whole or not at all.

    Where another process put a folder there in the meantime, that one stays.

    Raises:
        StorageError: the parent folder is read-only or full.
    """
    ensure_dir(path.parent)
    with storage_errors(path):
        temporary = _temporary(path)
        temporary.mkdir()
        try:
            yield temporary
            for file in temporary.iterdir():
                _sync(file)
            if not path.exists():
                temporary.replace(path)
        finally:
            shutil.rmtree(temporary, ignore_errors=True)


def write_atomic(path: Path, data: bytes) -> None:
    """Put `data` at `path`: readers see the old file or the new one, never a part.

    Raises:
        StorageError: the folder is read-only or full.
    """
    with atomic_file(path) as temporary:
        temporary.write_bytes(data)


def require_space(folder: Path, size: int) -> None:
    """Check that `folder`'s disk has room for `size` bytes before a long write starts.

    Raises:
        StorageError: it has not.
    """
    with storage_errors(folder):
        free = shutil.disk_usage(folder).free
    if free < size:
        raise StorageError(
            f"{folder} has {free / 1e6:.1f} MB free and {size / 1e6:.1f} MB are needed; "
            f"free some space or point {HOME_VARIABLE} at another disk."
        )


def lock(path: Path) -> BaseFileLock:
    """A lock between processes, named after the file or folder that it guards.

    Raises:
        StorageError: its folder cannot be created. (Acquiring it in a read-only folder raises OSError.)
    """
    ensure_dir(path.parent)
    return FileLock(path.with_name(f".{path.name}.lock"))


def remove_leftovers(path: Path) -> None:
    """Remove what writers of `path` that were killed left beside it; only while holding `lock(path)`."""
    for leftover in path.parent.glob(f".{glob.escape(path.name)}.{'?' * 2 * _RANDOM_BYTES}.tmp"):
        if leftover.is_dir():
            shutil.rmtree(leftover, ignore_errors=True)
        else:
            leftover.unlink(missing_ok=True)


def _temporary(path: Path) -> Path:
    # Not from `tempfile`, whose files only their owner can read: a cache may be made by one user for all.
    return path.with_name(f".{path.name}.{secrets.token_hex(_RANDOM_BYTES)}.tmp")


def _sync(path: Path) -> None:
    with path.open("rb+") as file:
        os.fsync(file.fileno())
