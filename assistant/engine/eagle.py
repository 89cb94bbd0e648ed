"""Drafting with an EAGLE head: features one step back and tokens one step ahead, grown into a tree."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from typing import ClassVar

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from assistant.engine.growth import Children, Expand, Growth
from assistant.engine.kv_cache import KVCache
from assistant.engine.tree import DraftTree, TreeShape, root_only
from assistant.engine.types import Prompt, Sampling
from models.draft_head import DraftHead

_CHUNK = 512

Builder = Callable[[int, Expand, TreeShape], DraftTree]
"""(root token, expand, shape) -> tree"""


class EagleDrafter:
    """Keeps the head's cache true to what the target computed, and grows trees from it.

    Row i of the head's cache holds the pair (token i + 1, feature i); see EAGLE, section 4.1. Rows of drafts hold the
    head's own guesses of features; they are dropped after every draft, and once the target has verified tokens their
    rows are computed again from true features. Leaving them in costs acceptance (8 to 15 % were seen elsewhere).
    """

    needs_features: ClassVar[bool] = True

    def __init__(self, head: DraftHead, build: Builder) -> None:
        self._head = head
        self._build = build
        self._cache = KVCache.of(head.spec)
        self._seen = 0
        self._last: Tensor | None = None
        self._waiting: list[tuple[list[int], Tensor]] = []

    @property
    def memory_bytes(self) -> int:
        """Size of the head's cache."""
        return self._cache.memory_bytes

    def begin(self, prompt: Prompt, reused: int) -> int:
        """Keep the rows that depend on kept tokens alone: row i depends on token i + 1, so there is one row less."""
        del prompt
        if self._cache.length < reused:
            self._flush()
        self._waiting.clear()
        self._cache.rewind(min(self._cache.length, reused))
        self._seen = reused
        self._last = None
        return self._cache.length

    def observe(self, ids: Sequence[int], features: Tensor) -> None:
        """Queue the pairs that these true rows complete; they run with the next draft, in one forward."""
        before = features[:-1] if self._last is None else torch.cat([self._last, features[:-1]])
        tokens = list(ids[len(ids) - len(before) :])
        # The pair of a draft's root stands in the cache already: it was true when the draft began.
        rows = self._cache.length + sum(len(queued) for queued, _ in self._waiting)
        known = rows - (self._seen + len(ids) - len(before) - 1)
        if len(tokens) > known:
            self._waiting.append((tokens[known:], before[known:]))
        self._seen += len(ids)
        self._last = features[-1:]

    def draft(self, root: int, shape: TreeShape, sampling: Sampling, rng: Random) -> DraftTree:  # noqa: ARG002
        """Grow a tree below `root` from the true feature before it."""
        assert self._last is not None, "a head drafts after at least one observed row"
        if not (shape.nodes and shape.depth):
            return root_only(root)
        self._waiting.append(([root], self._last))
        first = self._flush()
        assert first is not None
        true_rows = self._cache.length
        try:
            return self._build(root, _Expansion(self._head, self._cache, first, sampling, shape), shape)
        finally:
            self._cache.rewind(true_rows)

    def _flush(self) -> "_Scores | None":
        """Run every queued pair; what the last one predicts."""
        if not self._waiting:
            return None
        tokens = torch.tensor([t for ids, _ in self._waiting for t in ids], device=self._head.spec.device)
        features = torch.cat([f for _, f in self._waiting])
        self._waiting.clear()
        for start in range(0, len(tokens), _CHUNK):
            ids = tokens[start : start + _CHUNK]
            positions = torch.arange(len(ids), device=ids.device) + self._cache.length
            out = self._head.forward(ids, features[start : start + _CHUNK], positions, self._cache, last_only=True)
        return _Scores(out.features[-1:], out.logits)


@dataclass(frozen=True, slots=True)
class _Scores:
    features: Tensor
    """(n, H) the head's guesses of the target's features"""
    logits: Tensor
    """(n, k) over the draft vocabulary"""


class _Expansion:
    """`Expand` for a head: runs nodes as new rows that see their ancestors' rows and the true rows.

    Expanded nodes have places in the order in which they were asked for, the root's being 0.
    """

    def __init__(self, head: DraftHead, cache: KVCache, root: _Scores, sampling: Sampling, shape: TreeShape) -> None:
        self._head = head
        self._cache = cache
        self._temperature = sampling.temperature or 1.0
        self._width = shape.width
        self._calibration = head.calibrations.at(sampling.temperature) if shape.calibrated else None
        self._root = root
        self._base = cache.length
        self._places: dict[int, int] = {}
        self._features = root.features[:0]
        """(places, H)"""
        self._seen = torch.zeros((1, 0), dtype=torch.bool, device=head.spec.device)
        """(places, places - 1): which of the expanded nodes' rows, the root's left out, each of them sees"""

    def __call__(self, growth: Growth, nodes: Sequence[int]) -> list[Children]:
        """Children of each node by the head's probabilities, or by what those are worth where that was measured.

        The first call must ask for the root.
        """
        if list(nodes) != [0] and self._cache.length + len(nodes) > self._cache.limit:
            # Nodes of one level share a position but not a row, so the rows may end before the context does.
            return [Children((), ())] * len(nodes)
        scores = self._root if list(nodes) == [0] else self._forward(growth, nodes)
        self._places.update((node, place) for place, node in enumerate(nodes, start=len(self._features)))
        self._features = torch.cat((self._features, scores.features))
        log_probs = torch.log_softmax(scores.logits / self._temperature, dim=-1)
        top = log_probs.topk(min(self._width, log_probs.shape[-1]), dim=-1)
        # One reading for both; float64 holds either.
        tokens, values = torch.stack((self._head.to_target_ids(top.indices).double(), top.values.double())).tolist()
        worth = self._worth(growth, nodes, values)
        return [Children([int(t) for t in row], p) for row, p in zip(tokens, worth, strict=True)]

    def _worth(self, growth: Growth, nodes: Sequence[int], log_probs: list[list[float]]) -> list[list[float]]:
        """Log-probabilities of the nodes' children -> their log values, in the same order of siblings."""
        if self._calibration is None:
            return log_probs
        depths = [growth.depths[node] + 1 for node in nodes]
        return [
            self._calibration.log_values(depth, np.array(row)).tolist()
            for depth, row in zip(depths, log_probs, strict=True)
        ]

    def _forward(self, growth: Growth, nodes: Sequence[int]) -> _Scores:
        facts = [
            (growth.tokens[node], self._base + growth.depths[node] - 1, self._places[growth.parents[node]])
            for node in nodes
        ]
        ids, positions, parents = torch.tensor(facts, device=self._head.spec.device).unbind(1)
        mask = self._ancestor_mask(parents)
        out = self._head.forward(ids, self._features.index_select(0, parents), positions, self._cache, mask)
        return _Scores(out.features, out.logits)

    def _ancestor_mask(self, parents: Tensor) -> Tensor:
        """(n,) places of parents -> (n, r + n) bool over the r rows of nodes expanded before and the n new ones."""
        n = len(parents)
        itself = torch.eye(n, dtype=torch.bool, device=parents.device)
        mask = torch.cat((self._seen.index_select(0, parents), itself), 1)
        self._seen = torch.cat((F.pad(self._seen, (0, n)), mask))
        return mask
