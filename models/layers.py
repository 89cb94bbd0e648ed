"""One transformer layer of the Llama family, whatever the precision of its linears and of its attention."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol, Self

import torch
import torch.nn.functional as F
from torch import Tensor

from models import kernels
from models.attention import Attention, Rows
from models.hadamard import spread, spread_size


class Linear(Protocol):
    """A projection, with the norm in front of it where the layer has one there."""

    def __call__(self, x: Tensor) -> Tensor:
        """(n, in) -> (n, out)."""
        ...

    def tensors(self) -> dict[str, Tensor]:
        """What a restore needs, by short names."""
        ...


@dataclass(frozen=True, slots=True)
class FloatLinear:
    """y = weight · rmsnorm(x) + bias, in the weight's dtype; without `norm` x is taken as it is."""

    weight: Tensor
    """(out, in)"""
    bias: Tensor | None = None
    """(out,)"""
    norm: Tensor | None = None
    """(in,) the norm's weight"""
    eps: float = 1e-6

    def __call__(self, x: Tensor) -> Tensor:
        if self.norm is not None:
            x = F.rms_norm(x, self.norm.shape, self.norm, self.eps)
        return F.linear(x, self.weight, self.bias)

    def tensors(self) -> dict[str, Tensor]:
        named = {"weight": self.weight, "bias": self.bias, "norm": self.norm}
        return {name: tensor for name, tensor in named.items() if tensor is not None}

    @classmethod
    def restore(cls, tensors: Mapping[str, Tensor], eps: float) -> Self:
        return cls(tensors["weight"], tensors.get("bias"), tensors.get("norm"), eps)


def gated_silu(gate_up: Tensor) -> Tensor:
    """(n, 2I) -> (n, I): silu(gate) * up."""
    gate, up = gate_up.chunk(2, -1)
    return F.silu(gate).mul_(up)


def gated_silu_exact(gate_up: Tensor) -> Tensor:
    """The same, spread for an int8 down projection, from operations that give each element the same bits anywhere.

    torch's silu takes another exponential for the elements left over after whole vectors, and where those lie depends
    on how threads share the work; `exp` alone has one for all.
    """
    fused = kernels.find()
    if fused is not None:
        return fused.gated_silu(gate_up, spread_size(gate_up.shape[1] // 2))
    gate, up = gate_up.chunk(2, -1)
    denominator = gate.neg().exp_().add_(1.0)
    return spread((gate * up).div_(denominator))


@dataclass(frozen=True, slots=True)
class Block:
    """Pre-norm attention and gated MLP, each added to the residual stream."""

    qkv: Linear
    attention: Attention
    o: Linear
    gate_up: Linear
    down: Linear
    activation: Callable[[Tensor], Tensor] = gated_silu

    def __call__(self, x: Tensor, rows: Rows, layer: int) -> Tensor:
        """(n, H) -> (n, H), in place; writes the rows' keys and values at `layer` of the cache."""
        x += self.o(self.attention(self.qkv(x), rows, layer))
        x += self.down(self.activation(self.gate_up(x)))
        return x

    def linears(self) -> dict[str, Linear]:
        """The four projections by name."""
        return {"qkv": self.qkv, "o": self.o, "gate_up": self.gate_up, "down": self.down}


def causal(n: int, device: torch.device) -> Tensor:
    """(n, n) bool: each new row sees itself and those before it."""
    return torch.ones((n, n), dtype=torch.bool, device=device).tril_()
