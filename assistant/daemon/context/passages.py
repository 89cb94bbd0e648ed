"""What of another file is shown to the model: the lines that say how its names are used, never a whole body."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from assistant.daemon.context.facts import Definition, definitions_of

_MEMBERS = 12
"""lines of the members of one class"""
_SIGNATURE = 6
"""lines that a signature may go over"""


@dataclass(frozen=True, slots=True)
class Passage:
    """Lines of a file."""

    path: str
    text: str


def outline(path: str, text: str, language: str, names: Iterable[str]) -> Passage | None:
    """The signatures of definitions and, of those that hold others, of their members; None where none is found."""
    lines = text.split("\n")
    definitions = definitions_of(text, language)
    wanted = set(names)
    shown: dict[int, None] = {}
    for index, definition in enumerate(definitions):
        if definition.name not in wanted:
            continue
        for line in _signature(lines, definition.line):
            shown[line] = None
        for member in _members(definitions[index + 1 :], definition):
            for line in _signature(lines, member.line):
                shown[line] = None
    if not shown:
        return None
    return Passage(path, "\n".join(lines[line] for line in sorted(shown)))


def _signature(lines: Sequence[str], first: int) -> range:
    """The line of a definition and those over which its brackets stay open."""
    depth = 0
    for line in range(first, min(first + _SIGNATURE, len(lines))):
        depth += sum(lines[line].count(char) for char in "([") - sum(lines[line].count(char) for char in ")]")
        if depth <= 0:
            return range(first, line + 1)
    return range(first, first + 1)


def _members(following: Sequence[Definition], owner: Definition) -> list[Definition]:
    inner: list[Definition] = []
    for definition in following:
        if definition.indent <= owner.indent or len(inner) == _MEMBERS:
            break
        if not inner or definition.indent <= inner[0].indent:
            inner.append(definition)
    return inner


def fit(passages: Sequence[Passage], size_of: Callable[[str], int], budget: int) -> tuple[Passage, ...]:
    """The first passages that fit in a budget of tokens; the last one is cut at a line's end."""
    kept: list[Passage] = []
    for passage in passages:
        lines = passage.text.split("\n")
        while lines and size_of(passage.path + "\n".join(lines)) > budget:
            lines.pop()
        if not lines:
            break
        kept.append(Passage(passage.path, "\n".join(lines)))
        budget -= size_of(passage.path + kept[-1].text) + 4
    return tuple(kept)
