"""The int8 matrix products of x86 CPUs, by two kernels that give the same bits.

fbgemm runs on every x86 CPU with AVX2 and is the quicker one for a few rows. oneDNN's uses the matrix tiles (AMX) of
CPUs that have them, which multiply 16 rows in the time of one: there a draft tree costs hardly more than a plain step.

torch's packed quantized functions are deprecated; every use of them, and the silencing of their warning, is here.
"""

import functools
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol, Self

import torch
from torch import Tensor

_ZERO_POINT = 128


class PackedWeight(Protocol):
    """An int8 matrix in a kernel's own layout."""

    def __call__(self, rows: Tensor) -> Tensor:
        """(n, in) float32 whole numbers within ±127 -> (n, out) float32 exact integer products times scales."""

    def unpack(self) -> tuple[Tensor, Tensor]:
        """The values (out, in) and scales (out,) that were packed, copied."""


def pack_weight(values: Tensor, scales: Tensor) -> PackedWeight:
    """(out, in) int8 as `quant.quantize_weight` limits it, and (out,) float32 scales, for this CPU's best kernel."""
    kernel = OneDnnWeight if has_tiles() else FbgemmWeight
    return kernel.pack(values, scales)


@functools.cache
def has_tiles() -> bool:
    """Whether this CPU multiplies int8 matrices by tiles and torch may use them."""
    return bool(torch.cpu.get_capabilities().get("amx_int8")) and "onednn" in torch.backends.quantized.supported_engines


@dataclass(frozen=True, slots=True)
class FbgemmWeight:
    """Packed by fbgemm."""

    packed: Any
    """torch.classes.quantized.LinearPackedParamsBase"""

    @classmethod
    def pack(cls, values: Tensor, scales: Tensor) -> Self:
        with _fbgemm():
            zeros = torch.zeros(scales.shape, dtype=torch.int64)
            quantized = torch._make_per_channel_quantized_tensor(values, scales.double(), zeros, 0)  # noqa: SLF001
            return cls(torch.ops.quantized.linear_prepack(quantized, None))

    def unpack(self) -> tuple[Tensor, Tensor]:
        with _fbgemm():
            quantized = torch.ops.quantized.linear_unpack(self.packed)[0]
            return quantized.int_repr(), quantized.q_per_channel_scales().float()

    def __call__(self, rows: Tensor) -> Tensor:
        product: Tensor = torch.ops.quantized.linear_with_input_q_dq_qweight_dq_output_fp32(
            rows, 1.0, _ZERO_POINT, self.packed
        )
        return product


@dataclass(frozen=True, slots=True)
class OneDnnWeight:
    """Packed by oneDNN."""

    packed: Tensor
    """(in, out) in oneDNN's layout"""
    scales: Tensor
    zeros: Tensor
    """(out,) the zero points of the outputs, int32"""

    @classmethod
    def pack(cls, values: Tensor, scales: Tensor) -> Self:
        packed = torch.ops.onednn.qlinear_prepack(values.contiguous(), None)
        return cls(packed, scales.float(), torch.zeros(scales.shape, dtype=torch.int32))

    def unpack(self) -> tuple[Tensor, Tensor]:
        return self.packed.to_dense().t().contiguous(), self.scales.clone()

    def __call__(self, rows: Tensor) -> Tensor:
        product: Tensor = torch.ops.onednn.qlinear_pointwise(
            rows.to(torch.int8),
            1.0,  # the rows' scale and zero point
            0,
            self.packed,
            self.scales,
            self.zeros,
            None,  # no bias
            1.0,  # the outputs' scale and zero point, which float32 ones do not have
            0,
            torch.float32,
            "none",  # nothing is applied to the outputs
            [],
            "",
        )
        return product


@contextmanager
def _fbgemm() -> Iterator[None]:
    """Pack with fbgemm, whatever engine the process uses otherwise, without the deprecation warning."""
    before = torch.backends.quantized.engine
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*quantized tensor creation functions.*", category=UserWarning)
        torch.backends.quantized.engine = "fbgemm"
        try:
            yield
        finally:
            torch.backends.quantized.engine = before
