"""A draft tree while it grows: candidates scored by a drafter, and the choice of those worth verifying."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from assistant.engine.tree import DraftTree, TreeShape
from assistant.engine.types import Origin


@dataclass(frozen=True, slots=True)
class Children:
    """What a drafter proposes below one node: tokens and float32 log-probabilities, most probable first."""

    tokens: Sequence[int]
    log_probs: Sequence[float]


Expand = Callable[["Growth", Sequence[int]], Sequence[Children]]
"""Runs the drafter on several nodes at once, in the order given; the one thing in a builder that is not pure."""

_HOPELESS = -1e30
"""log-probabilities below this stand for 0: no path of them overflows float32, and no such child is worth a node"""


class Growth:
    """All candidates so far in the order in which they were scored, so that parents precede their children.

    `keys` are what nodes are ranked by: path values, or for the ablation the lowest confidence on the path, which like
    the path value never exceeds its parent's.
    """

    def __init__(self, root: int, rank: Literal["value", "confidence"] = "value") -> None:
        self.tokens = [root]
        self.parents = [-1]
        self.depths = [0]
        self.log_values = [0.0]
        self.origins = [""]
        self.keys = [0.0]
        self.spare = [False]
        """nodes that only get a slot that nobody else wants, and are never expanded"""
        self._rank = rank

    def __len__(self) -> int:
        return len(self.tokens)

    def add(self, parent: int, token: int, log_prob: float, origin: str, *, spare: bool = False) -> int:
        """Score one more candidate; returns its index."""
        # A probability rounded to above 1 would lift a child over its parent.
        log_prob = float(np.float32(min(log_prob, 0.0)))
        self.tokens.append(token)
        self.parents.append(parent)
        self.depths.append(self.depths[parent] + 1)
        self.log_values.append(float(np.float32(self.log_values[parent] + log_prob)))
        self.origins.append(origin)
        self.keys.append(self._key(len(self) - 1, log_prob))
        self.spare.append(spare)
        return len(self) - 1

    def grow(self, nodes: Sequence[int], expand: Expand, shape: TreeShape) -> list[int]:
        """Expand nodes in one call of the drafter; returns the new candidates."""
        added: list[int] = []
        for node, children in zip(nodes, expand(self, nodes), strict=True):
            for token, log_prob in within(children, shape):
                added.append(self.add(node, token, log_prob, Origin.HEAD, spare=log_prob < -shape.margin))
        return added

    def best(self, nodes: Sequence[int], count: int) -> list[int]:
        """The `count` nodes of highest rank; ties go to the lower index, which is never the child's."""
        return sorted(nodes, key=lambda n: (self.spare[n], -self.keys[n], n))[:count]

    def select(self, nodes: Sequence[int]) -> DraftTree:
        """The tree of these candidates and the root; every candidate's parent must be among them."""
        kept = [0, *sorted(nodes)]
        place = {old: new for new, old in enumerate(kept)}
        return DraftTree(
            tuple(self.tokens[n] for n in kept),
            tuple(place[self.parents[n]] if n else -1 for n in kept),
            tuple(self.log_values[n] for n in kept),
            tuple(self.origins[n] for n in kept),
        )

    def graft(self, tokens: Sequence[int], log_probs: Sequence[float], origin: str) -> list[int]:
        """Lay a chain of candidates from the root; returns its nodes.

        Where a child with the token stands already the two are one: it gets the higher of the two values, no higher
        than its parent's, and what grows below it rises with it.
        """
        node = 0
        laid: list[int] = []
        for token, log_prob in zip(tokens, log_probs, strict=True):
            twin = next((n for n in range(1, len(self)) if self.parents[n] == node and self.tokens[n] == token), None)
            if twin is None:
                node = self.add(node, token, log_prob, origin)
            else:
                self._raise(twin, float(np.float32(self.log_values[node] + min(log_prob, 0.0))))
                # It may get children now, and no parent may be chosen after its child.
                self.spare[twin] = False
                node = twin
            laid.append(node)
        return laid

    def _raise(self, node: int, log_value: float) -> None:
        if log_value <= self.log_values[node]:
            return
        steps = {n: self.log_values[n] - self.log_values[self.parents[n]] for n in range(node + 1, len(self))}
        self.log_values[node] = log_value
        self.keys[node] = self._key(node, log_value - self.log_values[self.parents[node]])
        risen = {node}
        for n, step in steps.items():
            if self.parents[n] in risen:
                risen.add(n)
                self.log_values[n] = float(np.float32(self.log_values[self.parents[n]] + step))
                self.keys[n] = self._key(n, step)

    def _key(self, node: int, log_prob: float) -> float:
        if self._rank == "value":
            return self.log_values[node]
        return min(self.keys[self.parents[node]], log_prob)


def within(children: Children, shape: TreeShape) -> list[tuple[int, float]]:
    """A node's children as the shape bounds them: `width` at most, and as many as cover `top_p` of the probability.

    Children of probability 0, or of none (NaN), are left out.
    """
    pairs = [pair for pair in zip(children.tokens, children.log_probs, strict=True) if pair[1] > _HOPELESS]
    pairs = pairs[: shape.width]
    if shape.top_p >= 1.0 or not pairs:
        return pairs
    covered = np.cumsum(np.exp([log_prob for _, log_prob in pairs]))
    # The child that crosses the line is the last one needed.
    return pairs[: int(np.searchsorted(covered, shape.top_p)) + 1]
