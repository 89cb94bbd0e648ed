"""Moving activation outliers into the weights (SmoothQuant, Xiao et al. 2022, section 4) before a layer is quantized.

Scales go where they cost nothing at run time: into the norm before qkv and gate/up, into the value projection for the
output projection (shared by the query heads of a group), into the up projection for the down projection. How far a
projection goes (the paper's alpha) is searched for each, by the error of its quantized output on the calibration text.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
import torch.nn.functional as F
from torch import Tensor

from models.attention import FloatAttention, HeadShape, Rows
from models.hadamard import spread, spread_size
from models.int8_kernels import round_rows
from models.layers import gated_silu
from models.quant import quantize_weight
from models.weights import LayerWeights

ALPHAS = (0.3, 0.45, 0.55, 0.65, 0.75)
_SAMPLE = 192
"""rows of the calibration text on which alphas are compared, and by how many outputs"""
_OUTPUTS = 1024
_SMALLEST = 1e-5


@dataclass(frozen=True, slots=True)
class Inputs:
    """What a layer's four projections saw on the calibration text, (N, in) each."""

    qkv: Tensor
    o: Tensor
    gate_up: Tensor
    down: Tensor


def observe(weights: LayerWeights, x: Tensor, rows: Rows, shape: HeadShape, eps: float) -> tuple[Inputs, Tensor]:
    """Run one layer in float32 on (N, H) rows of one text: its projections' inputs, and its output (N, H)."""
    assert weights.input_norm is not None, "a target's layers all have an input norm"
    attention = FloatAttention(shape, weights.q_norm, weights.k_norm, eps)
    normed = F.rms_norm(x, weights.input_norm.shape, weights.input_norm, eps)
    mixed = attention(F.linear(normed, weights.qkv, weights.qkv_bias), rows, 0)
    x = x + F.linear(mixed, weights.o, weights.o_bias)
    post = F.rms_norm(x, weights.post_norm.shape, weights.post_norm, eps)
    inner = gated_silu(F.linear(post, weights.gate_up, weights.gate_up_bias))
    return Inputs(normed, mixed, post, inner), x + F.linear(inner, weights.down, weights.down_bias)


def smooth(weights: LayerWeights, inputs: Inputs, shape: HeadShape) -> LayerWeights:
    """The same function with each projection's input channels of like size, ready to be quantized.

    The result's down projection takes its input through `models.hadamard.spread`.
    """
    assert weights.input_norm is not None, "a target's layers all have an input norm"
    for_qkv = best_scales(inputs.qkv, weights.qkv)
    for_mlp = best_scales(inputs.gate_up, weights.gate_up)
    for_down = best_scales(inputs.down, weights.down, transform=spread)
    by_head = (shape.kv_heads, shape.group, shape.head_dim)
    for_o = best_scales(inputs.o, weights.o, shared=by_head)
    values = for_o.view(by_head)[:, 0].flatten()
    rows = torch.cat((torch.ones(weights.qkv.shape[0] - values.shape[0]), values))
    inner = torch.cat((torch.ones_like(for_down), for_down))
    return replace(
        weights,
        input_norm=weights.input_norm / for_qkv,
        qkv=weights.qkv * for_qkv / rows[:, None],
        qkv_bias=None if weights.qkv_bias is None else weights.qkv_bias / rows,
        o=weights.o * for_o,
        post_norm=weights.post_norm / for_mlp,
        gate_up=weights.gate_up * for_mlp / inner[:, None],
        gate_up_bias=None if weights.gate_up_bias is None else weights.gate_up_bias / inner,
        down=spread(weights.down * for_down) / spread_size(for_down.shape[0]),
    )


def best_scales(
    x: Tensor,
    weight: Tensor,
    *,
    shared: tuple[int, int, int] | None = None,
    transform: Callable[[Tensor], Tensor] | None = None,
) -> Tensor:
    """(in,) divisors of the input, of the alpha whose quantized output is nearest to the exact one.

    Args:
        x: (N, in) inputs of the calibration text.
        weight: (out, in).
        shared: (kv_heads, group, D): channels that differ in the middle index alone share a scale.
        transform: what both the input and the weight pass through before they are rounded.
    """
    peaks = _peaks(x, shared), _peaks(weight, shared)
    sample = x[:: max(1, x.shape[0] // _SAMPLE)]
    weight = weight[:: max(1, weight.shape[0] // _OUTPUTS)]
    exact = sample @ weight.T
    sizes = exact.square().sum(1).clamp_min(_SMALLEST**2)
    best, least = torch.ones(x.shape[1]), float("inf")
    for alpha in ALPHAS:
        scales = balance(*peaks, alpha)
        rows, turned = sample / scales, weight * scales
        if transform is not None:
            rows, turned = transform(rows), transform(turned) / spread_size(rows.shape[1])
        whole, steps = round_rows(rows)
        values, factors = quantize_weight(turned)
        got = (whole @ values.float().T).mul_(steps).mul_(factors)
        # Relative to each row: the few giant rows of attention sinks would decide alone otherwise.
        error = float((got.sub_(exact).square_().sum(1) / sizes).mean())
        if error < least:
            best, least = scales, error
    return best


def balance(activations: Tensor, weights: Tensor, alpha: float) -> Tensor:
    """(in,) divisors max|x|^alpha / max|w|^(1 - alpha) from each channel's largest sizes, around 1."""
    scales = activations**alpha / weights ** (1 - alpha)
    return scales / scales.log().mean().exp()


def _peaks(rows: Tensor, shared: tuple[int, int, int] | None) -> Tensor:
    """(in,) each channel's largest size, of all that share a scale."""
    sizes = rows.abs().amax(0).clamp_min_(_SMALLEST)
    if shared is None:
        return sizes
    return sizes.view(shared).amax(1, keepdim=True).expand(shared).reshape(-1)
