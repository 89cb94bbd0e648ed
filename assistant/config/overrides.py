"""What is set for one language, or for files that a glob matches, and whom it concerns."""

from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path, PurePath
from typing import TYPE_CHECKING

import msgspec

from assistant.config.languages import language_of

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

Value = bool | int | float | str | tuple[str, ...]

BASES = {
    "enabled": ("editor", "enabled"),
    "max_tokens": ("completion", "max_tokens"),
    "multiline": ("completion", "multiline"),
    "min_confidence": ("completion", "min_confidence"),
    "method": ("model", "method"),
    "nodes": ("tree", "nodes"),
    "depth": ("tree", "depth"),
    "width": ("tree", "width"),
    "threshold": ("tree", "threshold"),
}
"""key of an override -> the section and key that it stands in for, whose type and bounds it has"""


class Override(msgspec.Struct, frozen=True):
    """One key for one language or one glob."""

    kind: str
    """languages or files"""
    selector: str
    """a language id, or a glob as in .gitignore"""
    key: str
    """one of `BASES`"""
    value: Value
    base: str = "/"
    """the folder that a glob with a slash is relative to: the project's, or the root for the user's own file"""

    @property
    def path(self) -> tuple[str, str, str]:
        """The parts of its key in a file."""
        return self.kind, self.selector, self.key

    def matches(self, path: str | None, language: str | None) -> bool:
        """Whether it concerns a document."""
        if self.kind == "languages":
            return self.selector == language
        return path is not None and matches_glob(self.selector, self.base, path)


def in_force(overrides: Iterable[Override], path: str | None, language: str | None) -> dict[tuple[str, str], Override]:
    """(section, key) -> what stands in for it in a document; globs win over languages, later ones over earlier ones."""
    language = language or (language_of(path) if path else None)
    ordered = sorted(overrides, key=lambda override: override.kind == "files")
    return {BASES[override.key]: override for override in ordered if override.matches(path, language)}


def matches_glob(glob: str, base: str, path: str) -> bool:
    """Whether a path lies below `base` and its relative form matches, as git would match it."""
    return matches_any((glob,), base, path)


def matches_any(globs: tuple[str, ...], base: str, path: str) -> bool:
    """The same for the lines of a .gitignore: the last one that matches decides, one that begins with ! takes away."""
    absolute = PurePath(path) if PurePath(path).is_absolute() else PurePath(Path.cwd(), path)
    try:
        relative = absolute.relative_to(base)
    except ValueError:
        return False
    return _spec(globs).match_file(relative.as_posix())


def check_globs(globs: tuple[str, ...]) -> None:
    """Raise ValueError, with a sentence, for a pattern that git would not understand."""
    for glob in globs:
        try:
            _spec((glob,))
        except ValueError as error:
            raise ValueError(f"{glob[:60]!a} is no pattern as .gitignore has them.") from error


@lru_cache(maxsize=256)
def _spec(globs: tuple[str, ...]) -> "GitIgnoreSpec":
    from pathspec import GitIgnoreSpec

    return GitIgnoreSpec.from_lines(globs)
