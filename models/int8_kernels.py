"""The int8 matrix products of x86 CPUs, by three kernels that give the same bits.

Our own (`models.kernels`) reads weights as fast as memory gives them, for a dozen rows hardly slower than for one.
oneDNN's uses the matrix tiles (AMX) of CPUs that have them, which multiply 16 rows in the time of one. fbgemm's runs
on every x86 CPU with AVX2, where nothing can be compiled.

torch's packed quantized functions are deprecated; every use of them, and the silencing of their warning, is here.
"""

import functools
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, Self

import torch
import torch.nn.functional as F
from torch import Tensor

from models import kernels
from models.kernels.around import Around

if TYPE_CHECKING:
    from models.kernels.fused import Fused

LIMIT = 127
"""of the whole numbers that rows and weights are rounded to"""
_ZERO_POINT = 128
_TINY = 1e-30


class PackedWeight(Protocol):
    """An int8 matrix in a kernel's own layout."""

    def linear(self, x: Tensor, around: Around) -> Tensor:
        """(n, in) float32 -> (n, out) float32: rows rounded to whole numbers, exact integer products, rescaled."""

    def unpack(self) -> tuple[Tensor, Tensor]:
        """The values (out, in) and scales (out,) that were packed, copied."""


def pack_weight(values: Tensor, scales: Tensor) -> PackedWeight:
    """(out, in) int8 as `quant.quantize_weight` limits it, and (out,) float32 scales, for this CPU's best kernel."""
    if has_tiles():
        return OneDnnWeight.pack(values, scales)
    return FbgemmWeight.pack(values, scales) if kernels.find() is None else CompiledWeight.pack(values, scales)


def round_rows(x: Tensor) -> tuple[Tensor, Tensor]:
    """(n, in) -> whole numbers within ±127, and each row's step (n, 1)."""
    sizes = x.abs()
    steps = sizes.amax(1, keepdim=True).clamp_min_(_TINY).mul_(1 / LIMIT)
    return torch.div(x, steps, out=sizes).round_(), steps


def _by_torch(product: Callable[[Tensor], Tensor], x: Tensor, around: Around) -> Tensor:
    """A linear of which a kernel has the product alone: (n, in) whole numbers -> (n, out) products times scales."""
    if around.norm is not None:
        x = F.rms_norm(x, around.norm.shape, around.norm, around.eps)
    if around.gain is not None:
        x = x * around.gain
    rows, steps = round_rows(x)
    y = product(rows).mul_(steps)
    return y if around.bias is None else y.add_(around.bias)


@functools.cache
def has_tiles() -> bool:
    """Whether this CPU multiplies int8 matrices by tiles and torch may use them."""
    return bool(torch.cpu.get_capabilities().get("amx_int8")) and "onednn" in torch.backends.quantized.supported_engines


@dataclass(frozen=True, slots=True)
class CompiledWeight:
    """In panels of outputs, each with groups of four channels side by side: (panels, groups, outputs, 4) int8."""

    kernel: "Fused"
    panels: Tensor
    corrections: Tensor
    """what the rows' zero point adds to each output, int32; as many as the panels have outputs, like the scales"""
    scales: Tensor
    shape: torch.Size
    """(out, in)"""

    @classmethod
    def pack(cls, values: Tensor, scales: Tensor) -> Self:
        kernel = kernels.find()
        assert kernel is not None, "packed where there are kernels"
        outputs, channels = values.shape
        values = F.pad(values, (0, -channels % 4, 0, -outputs % kernel.panel))
        panels = values.view(-1, kernel.panel, values.shape[1] // 4, 4).transpose(1, 2).contiguous()
        corrections = values.sum(1, dtype=torch.int32).mul_(kernel.zero_point)
        padded = F.pad(scales.float(), (0, -outputs % kernel.panel))
        return cls(kernel, panels, corrections, padded, torch.Size((outputs, channels)))

    def unpack(self) -> tuple[Tensor, Tensor]:
        outputs, channels = self.shape
        values = self.panels.transpose(1, 2).reshape(self.scales.shape[0], -1)
        return values[:outputs, :channels].contiguous(), self.scales[:outputs].clone()

    def linear(self, x: Tensor, around: Around) -> Tensor:
        return self.kernel.linear(x, self.panels, self.corrections, self.scales, self.shape[0], around)


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

    def linear(self, x: Tensor, around: Around) -> Tensor:
        return _by_torch(self._product, x, around)

    def _product(self, rows: Tensor) -> Tensor:
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

    def linear(self, x: Tensor, around: Around) -> Tensor:
        return _by_torch(self._product, x, around)

    def _product(self, rows: Tensor) -> Tensor:
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
