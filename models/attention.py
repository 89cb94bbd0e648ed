"""Attention of new rows over a cache: torch's own kernel, or one whose results do not depend on the batch."""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import torch
import torch.nn.functional as F
from torch import Tensor

from models import kernels
from models.rope import rotate
from models.target import Cache

if TYPE_CHECKING:
    from models.kernels.fused import Fused


@dataclass(frozen=True, slots=True)
class HeadShape:
    """How one row of fused queries, keys and values is divided into heads."""

    heads: int
    kv_heads: int
    head_dim: int

    @property
    def group(self) -> int:
        """Query heads that share one key/value head."""
        return self.heads // self.kv_heads


@dataclass(frozen=True, slots=True)
class Rows:
    """What all layers of one forward share about its n new rows."""

    cos: Tensor
    sin: Tensor
    cache: Cache
    bias: Tensor | None
    """what `Attention.bias` made of the mask; None where every row sees everything"""


class Attention(Protocol):
    """One layer's attention, from fused projections to the output projection's input."""

    @property
    def shape(self) -> HeadShape: ...

    def bias(self, mask: Tensor, past: int) -> Tensor:
        """(n, m) bool over the last m of past + n rows -> what this attention adds to its scores, in all layers."""
        ...

    def __call__(self, qkv: Tensor, rows: Rows, layer: int) -> Tensor:
        """(n, (heads + 2 kv_heads) · D) -> (n, heads · D)."""
        ...

    def tensors(self) -> dict[str, Tensor]:
        """What a restore needs, by short names."""
        ...


@dataclass(frozen=True, slots=True)
class FloatAttention:
    """Scaled dot-product attention in the rows' dtype; a group's query heads are folded into rows, never repeated."""

    shape: HeadShape
    q_norm: Tensor | None = None
    """(D,)"""
    k_norm: Tensor | None = None
    eps: float = 1e-6

    def bias(self, mask: Tensor, past: int) -> Tensor:
        """(n, m) bool -> (group · n, past + n) bool."""
        n, m = mask.shape
        return F.pad(mask, (past + n - m, 0), value=True).repeat(self.shape.group, 1)

    def __call__(self, qkv: Tensor, rows: Rows, layer: int) -> Tensor:
        queries, keys, values = heads_of(qkv, self, rows)
        keys, values = rows.cache.write(layer, keys.transpose(0, 1), values.transpose(0, 1))
        folded = grouped(queries, self.shape).flatten(1, 2)
        out = F.scaled_dot_product_attention(folded[None], keys[None], values[None], rows.bias)
        return ungrouped(out[0], self.shape).flatten(1)

    def tensors(self) -> dict[str, Tensor]:
        return norms_of(self)


@dataclass(frozen=True, slots=True)
class CompiledAttention:
    """Scaled dot-product attention in float32 by the compiled kernel, for shapes that `fused_for` knows."""

    fused: "Fused"
    shape: HeadShape
    q_norm: Tensor | None = None
    """(D,)"""
    k_norm: Tensor | None = None
    eps: float = 1e-6

    def bias(self, mask: Tensor, past: int) -> Tensor:  # noqa: ARG002 - rows before the mask's are never hidden
        """(n, m) bool -> the same, contiguous."""
        return mask.contiguous()

    def __call__(self, qkv: Tensor, rows: Rows, layer: int) -> Tensor:
        return compiled(self.fused, self, qkv, rows, layer, self.shape.head_dim**-0.5)

    def tensors(self) -> dict[str, Tensor]:
        return norms_of(self)


def fused_for(shape: HeadShape) -> "Fused | None":
    """The compiled kernels, where there are some that take heads of this size."""
    fused = kernels.find()
    return fused if fused is not None and shape.head_dim % fused.lanes == 0 else None


def compiled(
    fused: "Fused", attention: "Normed", qkv: Tensor, rows: Rows, layer: int, scale: float, *, rounded: bool = False
) -> Tensor:
    """`Attention.__call__` by the compiled kernels, of whole numbers if `rounded`."""
    queries, keys, values = fused.turn(qkv, attention, rows.cos, rows.sin, rounded=rounded)
    keys, values = rows.cache.write(layer, keys, values)
    return fused.attend(queries, scale, keys, values, rows.bias)


class Normed(Protocol):
    """An attention with optional norms over each head's query and key."""

    @property
    def shape(self) -> HeadShape: ...
    @property
    def q_norm(self) -> Tensor | None: ...
    @property
    def k_norm(self) -> Tensor | None: ...
    @property
    def eps(self) -> float: ...


def norms_of(attention: Normed) -> dict[str, Tensor]:
    """The norms' weights that are there, by name."""
    named = {"q_norm": attention.q_norm, "k_norm": attention.k_norm}
    return {name: tensor for name, tensor in named.items() if tensor is not None}


def heads_of(qkv: Tensor, attention: Normed, rows: Rows) -> tuple[Tensor, Tensor, Tensor]:
    """Fused rows -> rotated queries (n, heads, D), rotated keys and plain values (n, kv_heads, D)."""
    turned, values = turned_of(qkv, attention, rows)
    return *turned.split((attention.shape.heads, attention.shape.kv_heads), 1), values


def turned_of(qkv: Tensor, attention: Normed, rows: Rows) -> tuple[Tensor, Tensor]:
    """Fused rows -> rotated queries and keys (n, heads + kv_heads, D), plain values (n, kv_heads, D)."""
    shape = attention.shape
    queries, keys, both = shape.heads, shape.kv_heads, shape.heads + shape.kv_heads
    split = qkv.view(qkv.shape[0], -1, shape.head_dim)
    turned, values = split[:, :both], split[:, both:]
    if attention.q_norm is not None and attention.k_norm is not None:
        parts = zip(turned.split((queries, keys), 1), (attention.q_norm, attention.k_norm), strict=True)
        turned = torch.cat([F.rms_norm(part, norm.shape, norm, attention.eps) for part, norm in parts], 1)
    return rotate(turned, rows.cos, rows.sin), values


def grouped(queries: Tensor, shape: HeadShape) -> Tensor:
    """(n, heads, D) -> (kv_heads, group, n, D), a view."""
    return queries.view(-1, shape.kv_heads, shape.group, shape.head_dim).permute(1, 2, 0, 3)


def ungrouped(out: Tensor, shape: HeadShape) -> Tensor:
    """(kv_heads, group · n, D) -> (n, kv_heads, group, D), a view."""
    return out.view(shape.kv_heads, shape.group, -1, shape.head_dim).permute(2, 0, 1, 3)


QUERY_BITS = 22
WEIGHT_BITS = 20
_DOUBLE_BITS = 53
_WHOLE, _FEW = 8, 16
"""float64 products of 7 rows take a third longer than those of 8: no more than so many are filled up to a multiple"""


def value_bits(max_positions: int) -> int:
    """Bits left for a value when `max_positions` products with weights of WEIGHT_BITS are to add up exactly."""
    return min(QUERY_BITS, _DOUBLE_BITS - WEIGHT_BITS - math.ceil(math.log2(max_positions)))


@dataclass(frozen=True, slots=True)
class ExactAttention:
    """Attention whose rows are bit-equal whatever shares their batch and wherever the cache keeps their ancestors.

    The compiled kernel (`models.kernels`) adds up each row's products in an order of its own. torch's matrix products
    promise none, so there queries, keys and values are whole numbers (their projections carry the units, see
    `models.units`) of at most QUERY_BITS, QUERY_BITS and `value_bits` bits, and softmax weights are rounded to
    multiples of 2^-WEIGHT_BITS. All sums of products then stay below 2^53: they are exact in float64, so that neither
    their order, nor masked zeros between them, nor the matrix kernel chosen for a shape can change a bit. What remains
    is element by element.
    """

    shape: HeadShape
    scale: float
    """power of two that turns a whole-number score into a logarithm"""
    q_norm: Tensor | None = None
    """(D,), in the units of queries; for keys likewise"""
    k_norm: Tensor | None = None
    eps: float = 1e-6

    def bias(self, mask: Tensor, past: int) -> Tensor:  # noqa: ARG002 - rows before the mask's are never hidden
        """(n, m) bool -> the same, contiguous, for the compiled kernel; (n, m) float64, 0 or -inf, for torch."""
        if fused_for(self.shape) is not None:
            return mask.contiguous()
        return torch.zeros(mask.shape, dtype=torch.float64).masked_fill_(~mask, -math.inf)

    def __call__(self, qkv: Tensor, rows: Rows, layer: int) -> Tensor:
        shape, n = self.shape, qkv.shape[0]
        fused = fused_for(shape)
        if fused is not None:
            return compiled(fused, self, qkv, rows, layer, self.scale, rounded=True)
        turned, values = turned_of(qkv, self, rows)
        queries, keys = turned.round_().split((shape.heads, shape.kv_heads), 1)
        keys, values = rows.cache.write(layer, keys.transpose(0, 1), values.round().transpose(0, 1))
        scores = torch.bmm(self._folded(queries), keys.double().mT)
        if rows.bias is not None:
            new = scores[:, : shape.group * n, -rows.bias.shape[1] :]
            new.unflatten(1, (shape.group, n)).add_(rows.bias)
        peak = scores.amax(-1, keepdim=True).sub_(WEIGHT_BITS * math.log(2))
        weights = scores.sub_(peak).exp_().round_()
        out = torch.bmm(weights, values.double()).div_(weights.sum(-1, keepdim=True))
        mixed = ungrouped(out[:, : shape.group * n], shape)
        return mixed.to(torch.float32, memory_format=torch.contiguous_format).flatten(1)

    def _folded(self, queries: Tensor) -> Tensor:
        """(n, heads, D) -> (kv_heads, group · n, D) float64, scaled; rows of zeros fill up a few."""
        shape, n = self.shape, queries.shape[0]
        size = shape.group * n
        filled = size if size > _FEW else -(-size // _WHOLE) * _WHOLE
        folded = queries.new_zeros((shape.kv_heads, filled, shape.head_dim), dtype=torch.float64)
        folded[:, :size].unflatten(1, (shape.group, n)).copy_(grouped(queries, shape))
        return folded.mul_(self.scale)

    def tensors(self) -> dict[str, Tensor]:
        return {"scale": torch.tensor(self.scale, dtype=torch.float64), **norms_of(self)}
