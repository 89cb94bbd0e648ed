"""Which files of a workspace are nobody's source: what git ignores, what tools keep for themselves."""

from collections.abc import Iterable
from pathlib import PurePosixPath

import pathspec

TOOLS = frozenset(
    {
        *(".git", ".hg", ".svn", ".idea", ".vscode", ".tox", ".nox", ".venv", "venv", "__pycache__", "node_modules"),
        *(".mypy_cache", ".pytest_cache", ".ruff_cache", ".gradle", ".terraform", ".next", ".cache", "site-packages"),
        *("dist", "build", "target", "vendor", "third_party", ".eggs", "bower_components", "Pods", "DerivedData"),
    }
)
"""folders that hold what was fetched or made"""


class IgnoreRules:
    """The rules of a workspace: those of each folder's .gitignore hold below it, a deeper one's first."""

    def __init__(self, exclude: Iterable[str] = ()) -> None:
        self._exclude = pathspec.GitIgnoreSpec.from_lines(exclude)
        self._by_folder: dict[str, pathspec.GitIgnoreSpec] = {}

    def put(self, folder: str, lines: Iterable[str]) -> None:
        """The .gitignore of a folder ("" is the root); none where `lines` holds no rule."""
        spec = pathspec.GitIgnoreSpec.from_lines(lines)
        if len(spec):
            self._by_folder[folder] = spec
        else:
            self._by_folder.pop(folder, None)

    def ignores(self, path: str, *, folder: bool = False) -> bool:
        """Whether a path relative to the root is left out; of its parents only the names are looked at."""
        parts = path.split("/")
        if any(part in TOOLS for part in (parts if folder else parts[:-1])):
            return True
        name = f"{path}/" if folder else path
        if self._exclude.match_file(name):
            return True
        for parent in _parents(path):
            spec = self._by_folder.get(parent)
            if spec is None:
                continue
            verdict = spec.check_file(name[len(parent) + 1 :] if parent else name)
            if verdict.include is not None:
                return verdict.include
        return False


def _parents(path: str) -> Iterable[str]:
    for parent in PurePosixPath(path).parents:
        yield "" if str(parent) == "." else str(parent)
