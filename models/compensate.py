"""Rounding weights so that their errors cancel on the inputs that occur (GPTQ, Frantar et al. 2022, section 3)."""

import torch
from torch import Tensor

from models.quant import fit_pairs, weight_scales

_BLOCK = 64
"""channels that are rounded together; their error is made good by the channels after them"""
_SPAN = 1024
"""channels at most between which errors are made good: bounds the cost, which grows with the cube"""
_DAMPING = 0.05
_ROWS = 8192
"""outputs that are rounded together: bounds the memory"""


def quantize_for(weight: Tensor, x: Tensor) -> tuple[Tensor, Tensor]:
    """As `quantize_weight`, with the least error of the product on inputs like x.

    Args:
        weight: (out, in) float32.
        x: (N, in) inputs.

    Returns:
        (out, in) int8 values, whose neighbours keep the pair limit, and (out,) scales.
    """
    scales = weight_scales(weight)
    values = torch.empty(weight.shape, dtype=torch.int8)
    span = _span(weight.shape[1])
    for start in range(0, weight.shape[1], span):
        part = slice(start, start + span)
        factor = _factor(x[:, part])
        for first in range(0, weight.shape[0], _ROWS):
            rows = slice(first, first + _ROWS)
            values[rows, part] = _round(weight[rows, part].clone(), scales[rows, None], factor)
    return values, scales


def _round(weight: Tensor, scales: Tensor, factor: Tensor) -> Tensor:
    """(rows, channels) -> whole numbers, block after block; `weight` is used up."""
    values = torch.empty_like(weight)
    for start in range(0, weight.shape[1], _BLOCK):
        block, rest = slice(start, start + _BLOCK), slice(start + _BLOCK, None)
        values[:, block] = fit_pairs((weight[:, block] / scales).round_())
        error = weight[:, block] - values[:, block] * scales
        shares = torch.linalg.solve_triangular(factor[block, block], error, upper=True, left=False)
        weight[:, rest] -= shares @ factor[block, rest]
    return values


def _factor(x: Tensor) -> Tensor:
    """The upper Cholesky factor of the inverse of the inputs' damped second moments, (channels, channels)."""
    moments = x.T @ x / x.shape[0]
    moments.diagonal().add_(_DAMPING * moments.diagonal().mean() + 1e-12)
    inverse = torch.cholesky_inverse(torch.linalg.cholesky(moments))
    factor: Tensor = torch.linalg.cholesky(inverse, upper=True)
    return factor


def _span(channels: int) -> int:
    """The largest even part of at most _SPAN channels into which all divide; an odd number stays whole."""
    parts = (channels // n for n in range(1, channels + 1) if channels % n == 0)
    return next((size for size in parts if size <= _SPAN and size % 2 == 0), channels)
