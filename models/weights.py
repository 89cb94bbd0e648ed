"""Hugging Face tensor names to one layer's fused float32 weights, every shape checked."""

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from assistant.errors import ModelCorruptError
from models.decoder_config import DecoderConfig


@dataclass(frozen=True, slots=True)
class LayerWeights:
    """One layer in float32: queries, keys and values fused, gate and up fused."""

    qkv: Tensor
    """((heads + 2 kv_heads) · D, H)"""
    o: Tensor
    """(H, heads · D)"""
    gate_up: Tensor
    """(2 I, H)"""
    down: Tensor
    """(H, I)"""
    input_norm: Tensor | None
    """(H,); None where a draft head's layer takes its input as it is"""
    post_norm: Tensor
    """(H,)"""
    qkv_bias: Tensor | None = None
    o_bias: Tensor | None = None
    gate_up_bias: Tensor | None = None
    down_bias: Tensor | None = None
    q_norm: Tensor | None = None
    """(D,)"""
    k_norm: Tensor | None = None
    """(D,)"""


class StateReader:
    """Tensors of a state by name, checked and in float32; `error` is what a misfit raises."""

    def __init__(self, state: Mapping[str, Tensor], error: type[Exception] = ModelCorruptError) -> None:
        self._state = state
        self._error = error

    def get(self, name: str, shape: tuple[int, ...]) -> Tensor:
        """The tensor, or the error naming it with the found and the wanted shape."""
        found = self.find(name, shape)
        if found is None:
            raise self._error(f"tensor {name} is missing; wanted shape {shape}")
        return found

    def find(self, name: str, shape: tuple[int, ...]) -> Tensor | None:
        """The tensor, or None where the state lacks it."""
        tensor = self._state.get(name)
        if tensor is None:
            return None
        if tuple(tensor.shape) != shape:
            raise self._error(f"tensor {name} has shape {tuple(tensor.shape)}; wanted {shape}")
        return tensor.detach().float()

    def fused(self, prefix: str, names: tuple[str, ...], sizes: tuple[int, ...], inputs: int) -> Tensor:
        """Weights of several projections of one input, stacked."""
        return torch.cat([self.get(f"{prefix}{n}.weight", (s, inputs)) for n, s in zip(names, sizes, strict=True)])

    def fused_bias(self, prefix: str, names: tuple[str, ...], sizes: tuple[int, ...]) -> Tensor | None:
        """Their biases, zeros for those without; None where none has one."""
        found = [self.find(f"{prefix}{n}.bias", (s,)) for n, s in zip(names, sizes, strict=True)]
        if all(bias is None for bias in found):
            return None
        return torch.cat([torch.zeros(s) if b is None else b for b, s in zip(found, sizes, strict=True)])


def read_layer(reader: StateReader, config: DecoderConfig, prefix: str) -> LayerWeights:
    """The layer at `prefix` ("model.layers.3."); biases and q/k norms are taken where the state has them."""
    hidden, inner, width = config.hidden_size, config.intermediate_size, config.head_dim
    queries, keys = config.heads * width, config.kv_heads * width
    qkv, qkv_sizes = ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"), (queries, keys, keys)
    gate_up, gate_up_sizes = ("mlp.gate_proj", "mlp.up_proj"), (inner, inner)
    return LayerWeights(
        qkv=reader.fused(prefix, qkv, qkv_sizes, hidden),
        o=reader.get(f"{prefix}self_attn.o_proj.weight", (hidden, queries)),
        gate_up=reader.fused(prefix, gate_up, gate_up_sizes, hidden),
        down=reader.get(f"{prefix}mlp.down_proj.weight", (hidden, inner)),
        input_norm=reader.find(f"{prefix}input_layernorm.weight", (hidden,)),
        post_norm=reader.get(f"{prefix}post_attention_layernorm.weight", (hidden,)),
        qkv_bias=reader.fused_bias(prefix, qkv, qkv_sizes),
        o_bias=reader.find(f"{prefix}self_attn.o_proj.bias", (hidden,)),
        gate_up_bias=reader.fused_bias(prefix, gate_up, gate_up_sizes),
        down_bias=reader.find(f"{prefix}mlp.down_proj.bias", (hidden,)),
        q_norm=reader.find(f"{prefix}self_attn.q_norm.weight", (width,)),
        k_norm=reader.find(f"{prefix}self_attn.k_norm.weight", (width,)),
    )
