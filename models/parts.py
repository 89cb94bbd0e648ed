"""Model files that the package registry carries in pieces: finding the pieces and joining them.

The packages are looked up through `importlib.metadata` and never imported.
"""

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import BinaryIO

from assistant.errors import ModelCorruptError, StorageError
from assistant.files import atomic_file, lock, remove_leftovers, require_space
from models.hashes import BLOCK, Progress, is_noted, note_verified, silent


@dataclass(frozen=True, slots=True)
class Part:
    """One package and the file in it that holds a piece of the model."""

    package: str
    version: str
    file: str
    """the path inside the package's installation, with forward slashes"""


def numbered(package: str, version: str, file: str, count: int) -> tuple[Part, ...]:
    """The parts 1 to `count` of packages whose names and files are numbered; `{n}` stands for the number."""
    return tuple(Part(package.format(n=n), version, file.format(n=n)) for n in range(1, count + 1))


def locate(parts: tuple[Part, ...]) -> tuple[list[Path], list[Part]]:
    """The files of those parts that are installed in the right version, in order, and the parts that are not."""
    found: list[Path] = []
    missing: list[Part] = []
    for part in parts:
        path = _file_of(part)
        if path is None:
            missing.append(part)
        else:
            found.append(path)
    return found, missing


def _file_of(part: Part) -> Path | None:
    try:
        distribution = metadata.distribution(part.package)
    except metadata.PackageNotFoundError:
        return None
    path = Path(str(distribution.locate_file(part.file)))
    return path if distribution.version == part.version and path.is_file() else None


def join(files: list[Path], target: Path, size: int, sha256: str, progress: Progress = silent) -> None:
    """Write the files one after another to `target`, and check their size and hash on the way.

    Safe beside other processes that do the same: one joins, the others wait and find the result. `target` appears whole
    or not at all.

    Raises:
        ModelCorruptError: the pieces do not make the file that the hash belongs to.
        StorageError: the folder is read-only or full.
    """
    with _alone(target):
        if target.is_file() and target.stat().st_size == size and is_noted(target, sha256):
            return
        remove_leftovers(target)
        require_space(target.parent, size)
        with atomic_file(target) as temporary:
            with temporary.open("wb") as out:
                written, digest = _copy(files, out, size, progress)
            if (written, digest) != (size, sha256):
                raise ModelCorruptError(
                    f"The installed parts of {target.name} are damaged ({written} of {size} bytes, or another sha256); "
                    "reinstall them with pip's --force-reinstall."
                )
        note_verified(target, sha256)


@contextmanager
def _alone(target: Path) -> Iterator[None]:
    guard = lock(target)
    try:
        guard.acquire()
    except OSError as error:
        raise StorageError(
            f"{target.parent} is read-only; point EAGLE_ASSIST_HOME at a folder that you can write to."
        ) from error
    try:
        yield
    finally:
        guard.release()


def _copy(files: list[Path], out: BinaryIO, size: int, progress: Progress) -> tuple[int, str]:
    digest, written = hashlib.sha256(), 0
    for path in files:
        with path.open("rb") as piece:
            while block := piece.read(BLOCK):
                out.write(block)
                digest.update(block)
                written += len(block)
                progress("join", written, size)
    return written, digest.hexdigest()
