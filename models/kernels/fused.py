"""The compiled loops as functions of tensors."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import numba
import torch
from torch import Tensor

from models.kernels import loops, vectors

if TYPE_CHECKING:
    from models.int8_kernels import Around


class Fused:
    """The kernels of this machine. Tensors are float32 on the CPU, unless said otherwise."""

    lanes = vectors.LANES
    """channels of a head must be a multiple of it"""
    panel = vectors.PANEL
    zero_point = loops.ZERO_POINT

    def __init__(self) -> None:
        # One space for all, and numba's simplest way of sharing work among threads bears no two callers.
        self._one_at_a_time = threading.Lock()
        self._space = torch.empty(0, dtype=torch.uint8)

    def linear(
        self,
        x: Tensor,
        weight: Tensor,
        corrections: Tensor,
        scales: Tensor,
        outputs: int,
        around: "Around",
    ) -> Tensor:
        """(n, in) -> (n, out): see `models.quant.Int8Linear` and, for the weight's layout, `loops.linear`."""
        x = x.contiguous()
        n, channels = x.shape
        out = torch.empty((n, outputs))
        with self._threads() as threads:
            loops.linear(
                x.data_ptr(),
                n,
                channels,
                _address(around.norm),
                _address(around.gain),
                around.eps,
                weight.data_ptr(),
                corrections.data_ptr(),
                scales.data_ptr(),
                _address(around.bias),
                outputs,
                out.data_ptr(),
                self._room(loops.linear_space(n, channels, threads)),
                threads,
            )
        return out

    def turn(
        self,
        qkv: Tensor,
        heads: int,
        kv_heads: int,
        cos: Tensor,
        sin: Tensor,
        q_norm: Tensor | None,
        k_norm: Tensor | None,
        eps: float,
    ) -> tuple[Tensor, Tensor, Tensor]:
        """(n, (heads + 2 kv_heads) · D) -> rounded and rotated queries (n, heads, D) and keys, values (kv_heads, n, D)."""
        n = qkv.shape[0]
        channels = qkv.shape[1] // (heads + 2 * kv_heads)
        queries = torch.empty((n, heads, channels))
        keys, values = torch.empty((2, kv_heads, n, channels)).unbind()
        loops.turn(
            qkv.data_ptr(),
            n,
            heads,
            kv_heads,
            channels,
            cos.data_ptr(),
            sin.data_ptr(),
            _address(q_norm),
            _address(k_norm),
            eps,
            queries.data_ptr(),
            keys.data_ptr(),
            values.data_ptr(),
        )
        return queries, keys, values

    def attend(self, queries: Tensor, scale: float, keys: Tensor, values: Tensor, mask: Tensor | None) -> Tensor:
        """Queries (n, heads, D) over keys and values (kv_heads, T, D) -> (n, heads · D).

        `mask` is (n, m) bool, contiguous, over the last m rows; None where every row sees everything.
        """
        n, heads, channels = queries.shape
        kv_heads, total, _ = keys.shape
        out = torch.empty((n, heads * channels))
        with self._threads() as threads:
            loops.attend(
                queries.data_ptr(),
                n,
                heads,
                kv_heads,
                channels,
                scale,
                keys.data_ptr(),
                4 * keys.stride(0),
                values.data_ptr(),
                4 * values.stride(0),
                total,
                _address(mask),
                0 if mask is None else mask.shape[1],
                out.data_ptr(),
                self._room(loops.attend_space(channels, total, threads)),
                threads,
            )
        return out

    def gated_silu(self, gate_up: Tensor, size: int) -> Tensor:
        """(n, 2I) -> (n, I): silu(gate) * up, spread over groups of `size` (see `models.hadamard`)."""
        n, inner = gate_up.shape[0], gate_up.shape[1] // 2
        out = torch.empty((n, inner))
        with self._threads() as threads:
            loops.gated_silu(gate_up.data_ptr(), n, inner, size, out.data_ptr(), threads)
        return out

    def spread(self, rows: Tensor, size: int) -> None:
        """`models.hadamard.spread` of contiguous rows, in place."""
        loops.spread(rows.data_ptr(), *rows.shape, size)

    @contextmanager
    def _threads(self) -> Iterator[int]:
        threads = min(torch.get_num_threads(), numba.config.NUMBA_NUM_THREADS)
        with self._one_at_a_time:
            if numba.get_num_threads() != threads:  # each caller's thread has a number of its own
                numba.set_num_threads(threads)
            yield threads

    def _room(self, size: int) -> int:
        if self._space.numel() < size:
            self._space = torch.empty(size, dtype=torch.uint8)
        return self._space.data_ptr()


def _address(tensor: Tensor | None) -> int:
    return 0 if tensor is None else tensor.data_ptr()
