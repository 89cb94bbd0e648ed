"""What the engine asks of a target model, and what a model asks of a key/value cache.

Shapes use n = new rows in this forward, T = rows already in the cache, V = vocabulary, H = hidden size,
G = key/value heads, D = head dimension. One cache holds one sequence; there is no batch dimension, because the rows of
a speculative step are the nodes of one tree.
"""

from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor


@dataclass(frozen=True, slots=True)
class TargetSpec:
    """The facts about a target that caches, draft heads and reports need."""

    name: str
    vocab_size: int
    hidden_size: int
    layers: int
    kv_heads: int
    head_dim: int
    max_positions: int
    precision: str
    """float32, bfloat16, float16 or int8"""
    dtype: torch.dtype
    """of features and of the rows that its cache holds"""
    device: torch.device
    batch_exact: bool
    """whether a row's result is bit-equal whatever other rows share its forward"""


@dataclass(frozen=True, slots=True)
class Forward:
    """One forward's result."""

    logits: Tensor
    """(n, V), or (1, V) when only the last row was asked for; float32"""
    features: Tensor
    """(n, H): the target's output after its final norm, which EAGLE's draft head takes"""


class Cache(Protocol):
    """Keys and values of one sequence, as a model sees them."""

    @property
    def length(self) -> int:
        """T, the rows that are valid before this forward."""
        ...

    def write(self, layer: int, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """Put a layer's new rows, (G, n, D) each, at the tail; return all rows so far as views, (G, T + n, D) each.

        `length` does not move until `advance`, so that every layer of one forward writes to the same place.
        """
        ...

    def advance(self, rows: int) -> None:
        """Count `rows` new rows as valid; a model calls it once, after its last layer."""
        ...


class Target(Protocol):
    """A causal language model that scores arbitrary trees of new rows."""

    @property
    def spec(self) -> TargetSpec: ...

    def forward(
        self, ids: Tensor, positions: Tensor, cache: Cache, mask: Tensor | None = None, *, last_only: bool = False
    ) -> Forward:
        """Run n new rows and leave their keys and values at the cache's tail.

        Args:
            ids: (n,) int64 token ids.
            positions: (n,) int64 rotary positions; nodes of one tree level share theirs.
            cache: holds T rows; every new row sees all of them, but for those that `mask` speaks of.
            mask: (n, m) bool with n <= m <= T + n: what each new row (first axis) sees of the last m rows (second
                axis), that is of the cache's last m - n rows and then of the n new rows; each row sees itself. Rows
                before those m are seen by all. A target verifies with m = n; a head that grows a tree level by level
                keeps the earlier levels in its cache and asks with m > n. None is the causal mask.
            last_only: compute logits of the last row alone.

        Raises:
            ContextOverflowError: the rows do not fit in the model's context (raised by the cache).
        """
        ...

    def embed(self, ids: Tensor) -> Tensor:
        """(n,) ids -> (n, H) input embeddings in float32 on CPU precisions, else in the target's dtype."""
        ...

    def head_rows(self, ids: Tensor) -> Tensor:
        """(k,) ids -> (k, H): those rows of the output head, dequantized, for a draft vocabulary."""
        ...
