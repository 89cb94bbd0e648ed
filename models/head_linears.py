"""What draft heads are made of: float linears, or int8 ones for inputs that no norm or calibration has evened out."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from models.attention import Attention, CompiledAttention, FloatAttention, fused_for
from models.convert import float_block, float_linear, head_shape
from models.decoder_config import DecoderConfig
from models.hadamard import spread, spread_size
from models.int8_kernels import pack_weight
from models.kernels.around import Around
from models.layers import Block, Linear, gated_silu_exact
from models.quant import Int8Linear, quantize_weight
from models.weights import LayerWeights


@dataclass(frozen=True, slots=True)
class HeadBuilder:
    """Linears and layers of one precision on one device; int8 ones are arranged for unnormalised features."""

    shape: DecoderConfig
    precision: str
    dtype: torch.dtype
    device: torch.device

    def linear(self, weight: Tensor, bias: Tensor | None, norm: Tensor | None = None) -> Linear:
        """A projection, with the norm in front of it."""
        if self.precision == "int8":
            packed = pack_weight(*quantize_weight(weight.float()))
            return Int8Linear(packed, Around(bias, norm, eps=self.shape.rms_norm_eps))
        return float_linear(weight, bias, norm, self.shape.rms_norm_eps, self.dtype, self.device)

    def fusion(self, weight: Tensor, bias: Tensor | None) -> Callable[[Tensor], Tensor]:
        """The projection of concat(embedding, feature), (n, 2 H) -> (n, H)."""
        if self.precision != "int8":
            return self.linear(weight, bias)
        of_embedding, of_feature = weight.chunk(2, 1)
        return _Halves(self.linear(of_embedding.contiguous(), bias), self.evened(of_feature.contiguous(), None))

    def evened(self, weight: Tensor, bias: Tensor | None) -> Linear:
        """A projection of features or what grew from them: a few large channels would set an int8 row's step."""
        if self.precision != "int8":
            return self.linear(weight, bias)
        turned = spread(weight.float().clone()) / spread_size(weight.shape[1])
        return _Evened(self.linear(turned, bias))

    def block(self, weights: LayerWeights) -> Block:
        """One layer."""
        if self.precision != "int8":
            return float_block(weights, head_shape(self.shape), self.shape.rms_norm_eps, self.dtype, self.device)
        return Block(
            qkv=self.evened(weights.qkv, weights.qkv_bias)
            if weights.input_norm is None
            else self.linear(weights.qkv, weights.qkv_bias, weights.input_norm),
            attention=self._attention(weights),
            o=self.linear(weights.o, weights.o_bias),
            gate_up=self.linear(weights.gate_up, weights.gate_up_bias, weights.post_norm),
            down=self.linear(spread(weights.down.clone()) / spread_size(weights.down.shape[1]), weights.down_bias),
            activation=gated_silu_exact,
        )

    def _attention(self, weights: LayerWeights) -> Attention:
        shape, norms = head_shape(self.shape), (weights.q_norm, weights.k_norm, self.shape.rms_norm_eps)
        fused = fused_for(shape)
        return FloatAttention(shape, *norms) if fused is None else CompiledAttention(fused, shape, *norms)


@dataclass(frozen=True, slots=True)
class _Evened:
    """A linear behind `models.hadamard.spread`."""

    linear: Linear

    def __call__(self, x: Tensor) -> Tensor:
        return self.linear(spread(x.clone(memory_format=torch.contiguous_format)))

    def tensors(self) -> dict[str, Tensor]:
        return self.linear.tensors()


@dataclass(frozen=True, slots=True)
class _Halves:
    """A projection whose halves have int8 steps of their own: features are hundreds of times larger than embeddings."""

    of_embedding: Linear
    of_feature: Linear

    def __call__(self, x: Tensor) -> Tensor:
        embedding, feature = x.chunk(2, 1)
        return self.of_embedding(embedding).add_(self.of_feature(feature))
