"""The compiled loops as functions of tensors."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import numba
import torch
from torch import Tensor

from models.kernels import loops, vectors
from models.kernels.around import Around

if TYPE_CHECKING:
    from models.attention import Normed


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

    def try_out(self) -> None:
        """Compile the two kernels that rest on the processor's instructions most, and see that they are right.

        Raises:
            ArithmeticError: one of them is not.
        """
        ones = torch.ones((self.panel,), dtype=torch.float32)
        weight = torch.ones((1, 1, self.panel, 4), dtype=torch.int8)
        corrections = torch.full((self.panel,), 4 * self.zero_point, dtype=torch.int32)
        sums = self.linear(torch.full((3, 4), 127.0), weight, corrections, ones, self.panel, Around())
        rows = torch.ones((1, 3, self.lanes))
        mixed = self.attend(torch.ones((1, 2, self.lanes)), 1.0, rows, rows, None)
        if not (bool((sums == 4 * 127).all()) and bool((mixed == 1).all())):
            raise ArithmeticError("what was compiled calculates wrongly")

    def linear(
        self,
        x: Tensor,
        weight: Tensor,
        corrections: Tensor,
        scales: Tensor,
        outputs: int,
        around: Around,
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
        self, qkv: Tensor, attention: "Normed", cos: Tensor, sin: Tensor, *, rounded: bool
    ) -> tuple[Tensor, Tensor, Tensor]:
        """(n, (heads + 2 kv_heads) · D) -> rotated queries (n, heads, D) and keys, plain values (kv_heads, n, D).

        Each comes as whole numbers if `rounded`.
        """
        n, shape = qkv.shape[0], attention.shape
        queries = torch.empty((n, shape.heads, shape.head_dim))
        keys, values = torch.empty((2, shape.kv_heads, n, shape.head_dim)).unbind()
        loops.turn(
            qkv.data_ptr(),
            n,
            shape.heads,
            shape.kv_heads,
            shape.head_dim,
            cos.data_ptr(),
            sin.data_ptr(),
            _address(attention.q_norm),
            _address(attention.k_norm),
            attention.eps,
            rounded,
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
