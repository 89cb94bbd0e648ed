"""Reading a verified draft tree: rows to draw, what became of each node, and what the head had expected."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from assistant.protocol import Tree


class Fate(StrEnum):
    """What verification said of a drafted token."""

    ACCEPTED = "accepted"
    REJECTED = "rejected"
    """it followed accepted tokens, and the target wrote another one"""
    UNREACHED = "unreached"
    """a token before it was rejected"""


@dataclass(frozen=True, slots=True)
class Node:
    """A drafted token as a row of the drawn tree."""

    index: int
    depth: int
    guide: str
    """the lines that lead to it, `│ ├─`"""
    text: str
    """in one line, see `visible`"""
    confidence: float
    """the drafter's probability of it after its parent, 0 to 1"""
    value: float
    """its path value: the product of the confidences from the root, 0 to 1"""
    origin: str
    fate: Fate


@dataclass(frozen=True, slots=True)
class Shape:
    """How large a tree is, its root left out."""

    nodes: int
    depth: int
    width: int
    """most nodes on one level"""


_ESCAPES = {"\n": "\\n", "\t": "\\t", "\r": "\\r", " ": "·"}


def visible(text: str) -> str:
    """A token's text in one line: spaces as dots, other white space and control characters as escapes."""
    return "".join(_ESCAPES.get(c) or (c if c.isprintable() else ascii(c)[1:-1]) for c in text)


def children(tree: Tree) -> tuple[tuple[int, ...], ...]:
    """Each node's children, the most confident first."""
    found: list[list[int]] = [[] for _ in tree.parents]
    for node, parent in enumerate(tree.parents):
        if node:
            found[parent].append(node)
    return tuple(tuple(sorted(row, key=lambda node: -tree.values[node])) for row in found)


def depths(tree: Tree) -> tuple[int, ...]:
    """Each node's distance from the root."""
    found = [0] * len(tree.parents)
    for node in range(1, len(tree.parents)):
        found[node] = found[tree.parents[node]] + 1
    return tuple(found)


def shape(tree: Tree) -> Shape:
    """The tree's size."""
    levels = depths(tree)[1:]
    deepest = max(levels, default=0)
    width = max((levels.count(level) for level in range(1, deepest + 1)), default=0)
    return Shape(len(levels), deepest, width)


def confidence(tree: Tree, node: int) -> float:
    """The drafter's probability of a node after its parent."""
    return math.exp(min(tree.values[node] - tree.values[tree.parents[node]], 0.0))


def expected(tree: Tree) -> float:
    """Tokens that the drafter expected of the step: the path values' sum, and the target's own token."""
    return 1.0 + sum(math.exp(min(value, 0.0)) for value in tree.values[1:])


def nodes(tree: Tree) -> tuple[Node, ...]:
    """The drafted nodes in the order in which they are drawn: depth first, the most confident first."""
    below, levels = children(tree), depths(tree)
    accepted = frozenset(tree.accepted)
    rows: list[Node] = []
    pending = [(node, "") for node in reversed(below[0])]
    while pending:
        node, lead = pending.pop()
        parent = tree.parents[node]
        last = below[parent][-1] == node
        rows.append(
            Node(
                index=node,
                depth=levels[node],
                guide=lead + ("└─" if last else "├─"),
                text=visible(tree.texts[node]),
                confidence=confidence(tree, node),
                value=math.exp(min(tree.values[node], 0.0)),
                origin=tree.origins[node],
                fate=_fate(node, parent, accepted),
            )
        )
        pending += [(child, lead + ("  " if last else "│ ")) for child in reversed(below[node])]
    return tuple(rows)


def _fate(node: int, parent: int, accepted: frozenset[int]) -> Fate:
    if node in accepted:
        return Fate.ACCEPTED
    return Fate.REJECTED if parent == 0 or parent in accepted else Fate.UNREACHED


def rejected_texts(tree: Tree) -> tuple[str, ...]:
    """The best path that was drafted beyond the accepted one, as texts; what the target did not write."""
    below = children(tree)
    node = tree.accepted[-1] if tree.accepted else 0
    texts = []
    while below[node]:
        node = below[node][0]
        texts.append(tree.texts[node])
    return tuple(texts)


def tried(tree: Tree) -> Iterator[tuple[int, bool]]:
    """Each depth that the accepted path reached with drafts below it, from 1, and whether one of those was accepted."""
    below = children(tree)
    for depth, node in enumerate((0, *tree.accepted)):
        if not below[node]:
            return
        yield depth + 1, depth < len(tree.accepted)


def judged(tree: Tree) -> Iterator[tuple[float, bool]]:
    """The confidence of each node whose parent was accepted, and whether it was accepted itself."""
    accepted = frozenset(tree.accepted)
    for node in range(1, len(tree.parents)):
        parent = tree.parents[node]
        if parent == 0 or parent in accepted:
            yield confidence(tree, node), node in accepted
