"""Hugging Face weights to the blocks that the lean decoder runs, one layer at a time."""

from collections.abc import Iterator
from dataclasses import replace

import torch
import torch.nn.functional as F
from torch import Tensor

from models.attention import ExactAttention, FloatAttention, HeadShape, Rows
from models.decoder_config import DecoderConfig
from models.int8_kernels import pack_weight
from models.kernels.around import Around
from models.layers import Block, FloatLinear, causal, gated_silu_exact
from models.quant import Int8Linear, quantize_weight
from models.rope import RopeTable, inverse_frequencies
from models.smooth import best_scales, observe, smooth
from models.units import choose_units, unit_rows
from models.weights import LayerWeights, StateReader, read_layer


def float_blocks(
    reader: StateReader, config: DecoderConfig, dtype: torch.dtype, device: torch.device
) -> Iterator[Block]:
    """The layers with their weights in `dtype` on `device`."""
    for index in range(config.layers):
        yield float_block(
            read_layer(reader, config, f"model.layers.{index}."), head_shape(config), config.rms_norm_eps, dtype, device
        )


def float_block(weights: LayerWeights, shape: HeadShape, eps: float, dtype: torch.dtype, device: torch.device) -> Block:
    """One layer with its weights in `dtype` on `device`."""

    def put(tensor: Tensor | None) -> Tensor | None:
        return None if tensor is None else tensor.to(device, dtype)

    def linear(weight: Tensor, bias: Tensor | None, norm: Tensor | None = None) -> FloatLinear:
        return float_linear(weight, bias, norm, eps, dtype, device)

    return Block(
        qkv=linear(weights.qkv, weights.qkv_bias, weights.input_norm),
        attention=FloatAttention(shape, put(weights.q_norm), put(weights.k_norm), eps),
        o=linear(weights.o, weights.o_bias),
        gate_up=linear(weights.gate_up, weights.gate_up_bias, weights.post_norm),
        down=linear(weights.down, weights.down_bias),
    )


def float_linear(
    weight: Tensor, bias: Tensor | None, norm: Tensor | None, eps: float, dtype: torch.dtype, device: torch.device
) -> FloatLinear:
    """A projection with its tensors in `dtype` on `device`."""
    placed = [None if tensor is None else tensor.to(device, dtype) for tensor in (bias, norm)]
    return FloatLinear(weight.to(device, dtype), placed[0], placed[1], eps)


def int8_layers(
    reader: StateReader, config: DecoderConfig, embedding: Tensor, calibration: Tensor
) -> tuple[list[Block], Tensor]:
    """The layers with int8 linears, and the last one's float32 output on the calibration text, (N, H)."""
    shape = head_shape(config)
    x = F.embedding(calibration, embedding).float()
    n = x.shape[0]
    table = RopeTable.build(replace(config, max_positions=n), torch.float32, x.device)
    rows = Rows(table.cos, table.sin, _Scratch(), FloatAttention(shape).bias(causal(n, x.device), 0))
    factor = inverse_frequencies(config)[1]
    blocks = []
    for index in range(config.layers):
        weights = read_layer(reader, config, f"model.layers.{index}.")
        inputs, x = observe(weights, x, rows, shape, config.rms_norm_eps)
        blocks.append(int8_block(smooth(weights, inputs, shape), config, factor))
    return blocks, x


def int8_head(weight: Tensor, x: Tensor) -> Int8Linear:
    """The output head for normed rows like x, (N, H)."""
    scales = best_scales(x, weight)
    values, steps = quantize_weight(weight * scales)
    return Int8Linear(pack_weight(values, steps), Around(gain=1 / scales))


def int8_block(weights: LayerWeights, config: DecoderConfig, rope_factor: float) -> Block:
    """One smoothed layer, quantized."""
    shape, eps = head_shape(config), config.rms_norm_eps

    def linear(weight: Tensor, bias: Tensor | None, norm: Tensor | None = None) -> Int8Linear:
        return Int8Linear(pack_weight(*quantize_weight(weight)), Around(bias, norm, eps=eps))

    values, scales = quantize_weight(weights.qkv)
    rounded = replace(weights, qkv=values * scales[:, None])
    units = choose_units(rounded, shape, config.max_positions, rope_factor)
    divisors = unit_rows(units, weights, shape).float()
    qkv_bias = None if weights.qkv_bias is None else weights.qkv_bias / divisors
    q_norm = None if weights.q_norm is None else weights.q_norm / units.query
    k_norm = None if weights.k_norm is None else weights.k_norm / units.key
    return Block(
        qkv=Int8Linear(pack_weight(values, scales / divisors), Around(qkv_bias, weights.input_norm, eps=eps)),
        attention=ExactAttention(shape, units.score, q_norm, k_norm, eps),
        o=linear(weights.o * units.value, weights.o_bias),
        gate_up=linear(weights.gate_up, weights.gate_up_bias, weights.post_norm),
        down=linear(weights.down, weights.down_bias),
        activation=gated_silu_exact,
    )


def head_shape(config: DecoderConfig) -> HeadShape:
    """The config's heads."""
    return HeadShape(config.heads, config.kv_heads, config.head_dim)


class _Scratch:
    """A cache that holds one layer of one forward, for the calibration pass."""

    length = 0

    def write(self, layer: int, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:  # noqa: ARG002
        return keys, values

    def advance(self, rows: int) -> None:
        raise NotImplementedError
