"""Which definitions of other files help at a cursor: those of names that are used there, near ones first."""

import re
from collections import Counter
from dataclasses import dataclass
from typing import Protocol

from assistant.daemon.context.facts import Facts, definitions_of, imports_of

_NEAR = 4_000
"""characters around the cursor whose names count"""
_COMMON = 4
"""files that define a name beyond which it says nothing about any of them"""
_WORD = re.compile(r"[^\W\d]\w{2,}")
_IMPORTING = re.compile(
    r"^[ \t]*(?:import|from|use|#\s*include|const .*require)\b.*(?:[({]\n(?:[^)}]*))?", re.MULTILINE
)


class Lookup(Protocol):
    """The part of an index that ranking asks."""

    def facts(self, path: str) -> Facts | None: ...
    def definers(self, name: str) -> tuple[str, ...]: ...


@dataclass(frozen=True, slots=True)
class Ranked:
    """A file, the names that made it so useful, and how useful it is."""

    path: str
    names: tuple[str, ...]
    score: float


def rank(text: str, cursor: int, path: str, language: str, lookup: Lookup, most: int = 4) -> list[Ranked]:
    """The files that define names used near a cursor, the most useful first; at most `most`.

    A name counts more where fewer files define it, where the file that does is imported, and where it is in the same
    folder. Names that the document defines itself do not count.
    """
    used = Counter(_WORD.findall(text[max(0, cursor - _NEAR) : cursor + _NEAR // 4]))
    used.update(names_imported(text))
    own = {definition.name for definition in definitions_of(text, language)}
    imported = set(imports_of(text))
    scores: dict[str, dict[str, float]] = {}
    for name in used.keys() - own:
        definers = [other for other in lookup.definers(name) if other != path]
        if not definers or len(definers) > _COMMON:
            continue
        for other in definers:
            weight = (1.0 + (_stem(other) in imported)) * (1.0 + (_folder(other) == _folder(path)) / 2)
            scores.setdefault(other, {})[name] = weight * min(used[name], 3) / len(definers)
    ranked = [
        Ranked(other, tuple(sorted(names, key=lambda name: (-names[name], name))), sum(names.values()))
        for other, names in scores.items()
    ]
    return sorted(ranked, key=lambda one: (-one.score, one.path))[:most]


def names_imported(text: str) -> set[str]:
    """The words of a text's import statements."""
    return set(_WORD.findall("\n".join(_IMPORTING.findall(text))))


def _stem(path: str) -> str:
    name = path.rpartition("/")[2].partition(".")[0]
    return _folder(path).rpartition("/")[2] if name in {"__init__", "index", "mod"} else name


def _folder(path: str) -> str:
    return path.rpartition("/")[0]
