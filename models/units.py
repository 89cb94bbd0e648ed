"""Units in which an int8 layer's queries, keys and values are whole numbers of bounded size.

A query or key is a row of the projection times an input of norm at most sqrt(H) (that is what RMSNorm leaves), so its
size is bounded by the weights alone. Dividing by bound / 2^bits and rounding makes sums of products exact in float64
for every input; `models.attention.ExactAttention` rests on it. The units cost nothing: they are folded into scales and
biases.
"""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from models.attention import QUERY_BITS, HeadShape, value_bits
from models.int8_kernels import LIMIT
from models.weights import LayerWeights

_MARGIN = 1.01
_SMALLEST = 1e-6
"""keeps the units of projections that are all zero apart from zero"""


@dataclass(frozen=True, slots=True)
class Units:
    """Real sizes of 1 in each part of a layer's fused projection, and what a whole-number score is worth."""

    query: float
    key: float
    value: float
    score: float
    """query · key / sqrt(D): a power of two"""


def choose_units(weights: LayerWeights, shape: HeadShape, max_positions: int, rope_factor: float) -> Units:
    """The finest units that keep every query, key and value within its bits."""
    bounds = _bounds(weights)
    queries, keys = shape.heads * shape.head_dim, shape.kv_heads * shape.head_dim
    q, k, v = bounds.split((queries, keys, keys))
    q_bound = _turned(q, shape.head_dim) if weights.q_norm is None else _normed(weights.q_norm)
    k_bound = _turned(k, shape.head_dim) if weights.k_norm is None else _normed(weights.k_norm)
    query = _MARGIN * rope_factor * max(q_bound, _SMALLEST) / 2**QUERY_BITS
    key = _MARGIN * rope_factor * max(k_bound, _SMALLEST) / 2**QUERY_BITS
    score = 2.0 ** math.ceil(math.log2(query * key / math.sqrt(shape.head_dim)))
    key = score * math.sqrt(shape.head_dim) / query
    return Units(query, key, _MARGIN * max(float(v.max()), _SMALLEST) / 2 ** value_bits(max_positions), score)


def unit_rows(units: Units, weights: LayerWeights, shape: HeadShape) -> Tensor:
    """(rows of qkv,) what each output of the projection is divided by; 1 where a head norm carries the unit."""
    query = units.query if weights.q_norm is None else 1.0
    key = units.key if weights.k_norm is None else 1.0
    sizes = torch.tensor([shape.heads, shape.kv_heads, shape.kv_heads]) * shape.head_dim
    parts = torch.tensor([query, key, units.value], dtype=torch.float64)
    return torch.repeat_interleave(parts, sizes)


def _bounds(weights: LayerWeights) -> Tensor:
    """(rows,) the largest size of each output, the rounding of the input included."""
    assert weights.input_norm is not None, "only a normed input is bounded"
    reach = math.sqrt(weights.qkv.shape[1])
    exact: Tensor = torch.linalg.vector_norm((weights.qkv * weights.input_norm).double(), dim=1) * reach
    step = float(weights.input_norm.abs().max()) * reach / (2 * LIMIT)
    bounds = exact + weights.qkv.double().abs().sum(1) * step
    return bounds if weights.qkv_bias is None else bounds + weights.qkv_bias.double().abs()


def _turned(bounds: Tensor, head_dim: int) -> float:
    """A rotation mixes a pair: the pair's norm bounds both."""
    return float(bounds.view(-1, 2, head_dim // 2).norm(dim=1).max())


def _normed(weight: Tensor) -> float:
    return math.sqrt(weight.shape[0]) * float(weight.abs().max())
