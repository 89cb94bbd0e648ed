"""What stands around a product of an int8 linear."""

from dataclasses import dataclass

from torch import Tensor


@dataclass(frozen=True, slots=True)
class Around:
    """What a linear does besides its product: y = weight · (gain * rmsnorm(x)) + bias, each where it is there."""

    bias: Tensor | None = None
    """(out,) float32"""
    norm: Tensor | None = None
    """(in,) float32: the norm's weight, divided by the scales moved into the linear"""
    gain: Tensor | None = None
    """(in,) float32: divides moved scales out of an input without a norm"""
    eps: float = 1e-6
