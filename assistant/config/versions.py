"""Files of an older version of the declaration: renamed keys are read under their new names, newer files are named."""

from collections.abc import Mapping

from assistant.config.declaration import VERSION
from assistant.config.keys import Path, dotted, shown

RENAMED: Mapping[int, Mapping[Path, Path]] = {}
"""version -> what it renamed: the key before -> its path since; a path of () was dropped"""


def check_version(version: object, current: int = VERSION) -> int:
    """The version that a file was written for; a file that does not say is of this one.

    Raises:
        ValueError: it is no version, or one that this program does not know yet.
    """
    if version is None:
        return current
    if not isinstance(version, int) or isinstance(version, bool) or version < 1:
        raise ValueError(f"version must be a whole number from 1 to {current}, not {shown(version)}.")
    if version > current:
        raise ValueError(
            f"the file is of version {shown(version)} and this program knows up to {current}; update eagle-assist."
        )
    return version


def rename(
    path: Path, version: int, current: int = VERSION, renamed: Mapping[int, Mapping[Path, Path]] = RENAMED
) -> Path:
    """The present name of a key in a file of `version`.

    Raises:
        ValueError: the key was dropped since.
    """
    for later in range(version + 1, current + 1):
        moved = renamed.get(later, {}).get(path, path)
        if not moved:
            raise ValueError(f"{dotted(path)} means nothing since version {later}; remove it.")
        path = moved
    return path
