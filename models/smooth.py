"""Moving activation outliers into the weights (SmoothQuant, Xiao et al. 2022, section 4) before a layer is quantized.

Scales go where they cost nothing at run time: into the norm before qkv and gate/up, into the value projection for the
output projection (shared by the query heads of a group), into the up projection for the down projection.
"""

from dataclasses import dataclass, replace

import torch
import torch.nn.functional as F  # noqa: N812 - torch's own convention
from torch import Tensor

from models.attention import FloatAttention, HeadShape, Rows
from models.layers import gated_silu
from models.weights import LayerWeights


@dataclass(frozen=True, slots=True)
class Inputs:
    """What a layer's four projections saw on the calibration text, (N, in) each."""

    qkv: Tensor
    o: Tensor
    gate_up: Tensor
    down: Tensor


def observe(weights: LayerWeights, x: Tensor, rows: Rows, shape: HeadShape, eps: float) -> tuple[Inputs, Tensor]:
    """Run one layer in float32 on (N, H) rows of one text: its projections' inputs, and its output (N, H)."""
    assert weights.input_norm is not None
    attention = FloatAttention(shape, weights.q_norm, weights.k_norm, eps)
    normed = F.rms_norm(x, weights.input_norm.shape, weights.input_norm, eps)
    mixed = attention(F.linear(normed, weights.qkv, weights.qkv_bias), rows, 0)
    x = x + F.linear(mixed, weights.o, weights.o_bias)
    post = F.rms_norm(x, weights.post_norm.shape, weights.post_norm, eps)
    inner = gated_silu(F.linear(post, weights.gate_up, weights.gate_up_bias))
    return Inputs(normed, mixed, post, inner), x + F.linear(inner, weights.down, weights.down_bias)


def smooth(weights: LayerWeights, inputs: Inputs, shape: HeadShape, alpha: float = 0.6) -> LayerWeights:
    """The same function with each projection's input channels of like size."""
    assert weights.input_norm is not None
    queries, keys = shape.heads * shape.head_dim, shape.kv_heads * shape.head_dim
    for_qkv = balance(inputs.qkv.abs().amax(0), weights.qkv.abs().amax(0), alpha)
    for_mlp = balance(inputs.gate_up.abs().amax(0), weights.gate_up.abs().amax(0), alpha)
    for_down = balance(inputs.down.abs().amax(0), weights.down.abs().amax(0), alpha)
    by_head = (shape.kv_heads, shape.group, shape.head_dim)
    value = balance(
        inputs.o.abs().amax(0).view(by_head).amax(1), weights.o.abs().amax(0).view(by_head).amax(1), alpha
    )
    for_o = value[:, None].expand(by_head).reshape(-1)
    rows = torch.cat((torch.ones(queries + keys), value.flatten()))
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
        down=weights.down * for_down,
    )


def balance(activations: Tensor, weights: Tensor, alpha: float) -> Tensor:
    """Per-channel divisors of the activations: max|x|^alpha / max|w|^(1 - alpha), around 1."""
    scales = activations.clamp_min(1e-5) ** alpha / weights.clamp_min(1e-5) ** (1 - alpha)
    return scales / scales.log().mean().exp()
