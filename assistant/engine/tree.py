"""The draft tree as plain data, its mask and positions, and the shape that its builders aim at.

Node 0 is the root: the last token that is already certain. Every other node is a draft whose parent stands before it.
A node's confidence is the drafter's probability of its token given its parent; its path value is the product of the
confidences from the root (EAGLE-2, section 4.1), kept as a float32 logarithm: in half precision a sure child would tie
with its parent and the tree could lose its connection.
"""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Literal

from assistant.errors import TopologyError

if TYPE_CHECKING:  # a program that only draws trees which a daemon sent loads neither
    import numpy as np
    from numpy.typing import NDArray
    from torch import Tensor


@dataclass(frozen=True, slots=True)
class TreeShape:
    """Bounds on a draft tree; which of them bind is the builder's affair."""

    nodes: int = 8
    """most draft nodes to verify, the root not counted"""
    depth: int = 6
    """most draft tokens on one path"""
    width: int = 8
    """most nodes expanded in one call of the draft head, and most children of a node"""
    threshold: float = 0.0
    """a node whose path value lies below this is neither expanded nor verified (0 switches it off)"""
    top_p: float = 1.0
    """as many children of a node as cover this probability (1 switches it off)"""
    margin: float = math.inf
    """a child whose path value lies more than this below its parent's, as logarithms, only gets a slot left over"""
    rerank: bool = True
    """choose the verified nodes among all scored ones (EAGLE-2, section 4.2), not just among the expanded ones"""
    rank: Literal["value", "confidence"] = "value"
    """what nodes are ranked by; confidence alone is there for the ablation"""
    calibrated: bool = True
    """take path values from the head's calibration where it has one for the target, precision and temperature"""


@dataclass(frozen=True, slots=True)
class Plan:
    """What a policy expected of a tree when it chose it."""

    tokens: float
    """of the step, the target's own one included"""
    ms: float
    """of the step, by stored costs"""
    levels: int
    """that the draft head was asked for"""
    trust: float
    """the factor on the head's confidences that this text had taught"""
    reason: str
    """why it is no larger, for people"""


@dataclass(frozen=True)
class DraftTree:
    """m nodes in topological order, checked once when made.

    Raises:
        TopologyError: the arrays differ in length, node 0 is not the only root, a parent does not stand before its
            child, or a path value is not finite, above 0 (a probability above 1) or above its parent's.
    """

    tokens: tuple[int, ...]
    parents: tuple[int, ...]
    """-1 for the root, else an earlier node"""
    log_values: tuple[float, ...]
    """natural logarithm of the path value, float32; 0 for the root"""
    origins: tuple[str, ...]
    """who drafted the node: values of `Origin`; "" for the root"""
    draft_probs: "Tensor | None" = None
    """(m, V) float: row i is the distribution that node i was SAMPLED from; None where candidates are deterministic"""
    plan: Plan | None = None
    """why it is this tree; None where its bounds say that"""

    def __post_init__(self) -> None:
        size = len(self.tokens)
        if not size == len(self.parents) == len(self.log_values) == len(self.origins):
            raise TopologyError(
                f"a tree of {size} tokens has {len(self.parents)} parents, {len(self.log_values)} values"
            )
        if size == 0 or self.parents[0] != -1:
            raise TopologyError("a tree begins with its root, whose parent is -1")
        for node, (parent, value) in enumerate(zip(self.parents, self.log_values, strict=True)):
            _check_node(node, parent, value, self.log_values)
        if self.draft_probs is not None and self.draft_probs.shape[0] != size:
            raise TopologyError(f"a tree of {size} nodes has {self.draft_probs.shape[0]} draft distributions")

    def __len__(self) -> int:
        return len(self.tokens)

    @cached_property
    def depths(self) -> tuple[int, ...]:
        """Distance of each node from the root."""
        depths = [0]
        for parent in self.parents[1:]:
            depths.append(depths[parent] + 1)
        return tuple(depths)

    @cached_property
    def children(self) -> tuple[tuple[int, ...], ...]:
        """The children of each node, most probable first (ties by index)."""
        found: list[list[int]] = [[] for _ in self.tokens]
        for node, parent in enumerate(self.parents[1:], start=1):
            found[parent].append(node)
        return tuple(tuple(sorted(nodes, key=lambda n: (-self.log_values[n], n))) for nodes in found)

    @property
    def drafted(self) -> int:
        """Draft nodes, the root not counted."""
        return len(self) - 1

    @property
    def depth(self) -> int:
        """Length of the longest path of drafts."""
        return max(self.depths)

    @property
    def width(self) -> int:
        """Most nodes on one level."""
        return max(Counter(self.depths).values())

    def confidence(self, node: int) -> float:
        """The drafter's probability of a node's token given its parent (1 for the root)."""
        parent = self.parents[node]
        return 1.0 if parent < 0 else math.exp(self.log_values[node] - self.log_values[parent])

    def value(self, node: int) -> float:
        """A node's path value, a probability."""
        return math.exp(self.log_values[node])

    def mask(self) -> "NDArray[np.bool_]":
        """(m, m) bool: row i is True at i and at its ancestors, the closure that verification needs."""
        import numpy as np

        mask = np.eye(len(self), dtype=np.bool_)
        for node, parent in enumerate(self.parents[1:], start=1):
            mask[node] |= mask[parent]
        return mask

    def path(self, node: int) -> tuple[int, ...]:
        """Node indices from the root's child down to `node`; empty for the root."""
        nodes: list[int] = []
        while node > 0:
            nodes.append(node)
            node = self.parents[node]
        return tuple(reversed(nodes))


def root_only(token: int) -> DraftTree:
    """The tree of a plain step: nothing drafted."""
    return DraftTree((token,), (-1,), (0.0,), ("",))


def chain(root: int, tokens: Sequence[int], log_values: Sequence[float], origin: str) -> DraftTree:
    """One path of drafts below the root."""
    size = len(tokens)
    return DraftTree((root, *tokens), tuple(range(-1, size)), (0.0, *log_values), ("", *[origin] * size))


def _check_node(node: int, parent: int, value: float, values: Sequence[float]) -> None:
    if node > 0 and not 0 <= parent < node:
        raise TopologyError(f"node {node} names {parent} as its parent, which is not an earlier node")
    if not math.isfinite(value) or value > 0.0:
        raise TopologyError(f"node {node} has the path value exp({value}), which is not a probability")
    if node > 0 and value > values[parent]:
        raise TopologyError(f"node {node} has a path value above its parent's ({value} > {values[parent]})")
