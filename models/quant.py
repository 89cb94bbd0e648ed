"""int8 linears for x86 CPUs, exact whatever the batch.

A row is divided by its own absolute maximum and rounded to whole numbers within ±127; so are weights, per output, with
one rule more: two that stand side by side (channels 2k and 2k + 1) reach 128 together at most. Products add up in
integers, so that a row's result cannot depend on the rows beside it. The rule keeps CPUs without VNNI right: they add
such pairs of products in 16 bits, and 255 · 128 < 2^15, while a plain limit of ±63 would cost half of the precision.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

import torch
import torch.nn.functional as F
from torch import Tensor

from assistant.errors import UsageError
from models.int8_kernels import LIMIT, PackedWeight, pack_weight
from models.kernels.around import Around

PAIR_LIMIT = 128
_ALONE = Around()
_TINY = 1e-30
_ROWS = 8192
"""outputs that are rounded together: bounds the memory that a large head takes"""


def require_int8(device: torch.device | str) -> None:
    """Raise UsageError where the int8 linears cannot run."""
    if torch.device(device).type != "cpu":
        raise UsageError(f"int8 runs on the CPU only, not on {device}: choose bfloat16 or float32 there")
    if "fbgemm" not in torch.backends.quantized.supported_engines:
        raise UsageError("int8 needs an x86 CPU with AVX2 (torch's fbgemm): choose float32 or bfloat16")


@dataclass(frozen=True, slots=True)
class Int8Linear:
    """y = weight · (gain * rmsnorm(x)) + bias with int8 products; norm, gain and bias are optional."""

    weight: PackedWeight
    around: Around = _ALONE

    def __call__(self, x: Tensor) -> Tensor:
        return self.weight.linear(x, self.around)

    def dequantized(self, ids: Tensor) -> Tensor:
        """(k,) outputs -> (k, in) float32 rows of the weight, as an unscaled input meets them."""
        values, scales = self.weight.unpack()
        rows = values[ids].float() * scales[ids, None]
        return rows if self.around.gain is None else rows * self.around.gain

    def tensors(self) -> dict[str, Tensor]:
        values, scales = self.weight.unpack()
        around = self.around
        named = {"values": values, "scales": scales, "bias": around.bias, "norm": around.norm, "gain": around.gain}
        return {name: tensor for name, tensor in named.items() if tensor is not None}

    @classmethod
    def restore(cls, tensors: Mapping[str, Tensor], eps: float) -> Self:
        weight = pack_weight(tensors["values"], tensors["scales"])
        return cls(weight, Around(tensors.get("bias"), tensors.get("norm"), tensors.get("gain"), eps))


def quantize_weight(weight: Tensor) -> tuple[Tensor, Tensor]:
    """(out, in) float32 -> int8 values and (out,) scales; neighbours (2k, 2k + 1) reach PAIR_LIMIT together at most."""
    parts = [_quantize_rows(rows) for rows in weight.split(_ROWS)]
    values, scales = zip(*parts, strict=True)
    return torch.cat(values), torch.cat(scales)


def _quantize_rows(weight: Tensor) -> tuple[Tensor, Tensor]:
    sizes = F.pad(weight.abs(), (0, weight.shape[1] % 2)).unflatten(1, (-1, 2))
    scales = torch.maximum(sizes.sum(2).amax(1) / PAIR_LIMIT, sizes.amax((1, 2)) / LIMIT).clamp_min_(_TINY)
    values = (weight / scales[:, None]).round_()
    # Two halves that are both rounded up pass the pair's limit by one.
    odd = values[:, 1::2]
    even = values[:, : 2 * odd.shape[1] : 2]
    even -= (even.abs() + odd.abs() > PAIR_LIMIT) * even.sign()
    return values.to(torch.int8), scales
