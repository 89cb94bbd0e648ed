"""Preallocated keys and values of one sequence: written at the tail, compacted in place, rewound to any prefix."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Protocol, Self

import torch
from torch import Tensor

from assistant.errors import ContextOverflowError

_FIRST_CAPACITY = 256


class CacheSpec(Protocol):
    """The part of a target's or a head's `spec` that a cache is made from."""

    @property
    def layers(self) -> int: ...
    @property
    def kv_heads(self) -> int: ...
    @property
    def head_dim(self) -> int: ...
    @property
    def max_positions(self) -> int: ...
    @property
    def dtype(self) -> torch.dtype: ...
    @property
    def device(self) -> torch.device: ...


class KVCache:
    """Rows of all layers in one buffer, (layers, 2, G, capacity, D); only the first `length` are valid.

    Growth doubles the buffer up to `limit` rows, the model's context.
    """

    def __init__(
        self,
        layers: int,
        kv_heads: int,
        head_dim: int,
        *,
        limit: int,
        dtype: torch.dtype = torch.float32,
        device: torch.device | str = "cpu",
        capacity: int = _FIRST_CAPACITY,
    ) -> None:
        self.limit = limit
        self._length = 0
        self._buffer = torch.zeros((layers, 2, kv_heads, min(capacity, limit), head_dim), dtype=dtype, device=device)

    @classmethod
    def of(cls, spec: "CacheSpec") -> Self:
        """An empty cache for a target or a draft head."""
        return cls(
            spec.layers,
            spec.kv_heads,
            spec.head_dim,
            limit=spec.max_positions,
            dtype=spec.dtype,
            device=spec.device,
        )

    @property
    def length(self) -> int:
        """Valid rows."""
        return self._length

    @property
    def capacity(self) -> int:
        """Rows that fit before the next growth."""
        return self._buffer.shape[3]

    @property
    def memory_bytes(self) -> int:
        """Size of the buffer."""
        return self._buffer.numel() * self._buffer.element_size()

    def write(self, layer: int, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """Put a layer's new rows, (G, n, D) each, at the tail; see `models.target.Cache.write`.

        Raises:
            ContextOverflowError: the rows do not fit in the model's context.
        """
        end = self._length + keys.shape[1]
        if end > self.capacity:
            self.reserve(end)
        seen = self._buffer[layer].narrow(2, 0, end).unbind(0)
        for rows, new in zip(seen, (keys, values), strict=True):
            rows.narrow(1, self._length, keys.shape[1]).copy_(new)
        return seen[0], seen[1]

    def advance(self, rows: int) -> None:
        """Count `rows` written rows as valid."""
        self._length += rows

    def reserve(self, rows: int) -> None:
        """Make room for `rows` rows in all.

        Raises:
            ContextOverflowError: that is more than the model's context.
        """
        if rows > self.limit:
            raise ContextOverflowError(
                f"the text needs {rows} positions and the model's context holds {self.limit}: "
                "ask for fewer tokens (--max-tokens) or shorten the prompt"
            )
        if rows <= self.capacity:
            return
        layers, two, kv_heads, _, head_dim = self._buffer.shape
        capacity = min(self.limit, max(rows, 2 * self.capacity))
        grown = self._buffer.new_zeros((layers, two, kv_heads, capacity, head_dim))
        # Rows past `length` may be a forward's in progress: layers before this one have already written theirs.
        grown[:, :, :, : self.capacity] = self._buffer
        self._buffer = grown

    def rewind(self, length: int) -> None:
        """Forget every row from `length` on."""
        assert 0 <= length <= self._length, "a cache is rewound to a prefix of itself"
        self._length = length

    def keep(self, base: int, rows: Sequence[int]) -> None:
        """Of the rows from `base` on keep those at base + rows[i], ascending, moved together in that order."""
        assert all(a < b for a, b in pairwise(rows)), "rows are kept in ascending order"
        assert not rows or base + rows[-1] < self._length, "only valid rows can be kept"
        length = base + len(rows)
        if list(rows) != list(range(len(rows))):
            # Reading everything before writing anything makes overlapping moves safe.
            index = torch.tensor(rows, device=self._buffer.device) + base
            self._buffer[:, :, :, base:length] = self._buffer.index_select(3, index)
        self._length = length
