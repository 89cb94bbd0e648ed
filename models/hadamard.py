"""Spreading the few large numbers of a row over many, so that a row's largest number leaves room for the others.

The gated MLP's inner rows are heavy-tailed: one value of dozens of standard deviations sets the step in which all are
rounded. A Walsh-Hadamard transform over small groups of channels evens them out, and its inverse is folded into the
weights (QuaRot, Ashkboos et al. 2024, section 3). Sums and differences of two numbers round alike everywhere, so a
row's result stays independent of its batch.
"""

import torch
from torch import Tensor

from models import kernels

_LARGEST = 64


def spread_size(channels: int) -> int:
    """Channels of one group: the largest power of two up to 64 that divides `channels`."""
    return min(channels & -channels, _LARGEST)


def spread(rows: Tensor) -> Tensor:
    """(n, K) -> (n, K): the unnormalised transform over the groups {j, j + K/s, j + 2 K/s, ...} of s channels.

    Applied twice it multiplies by s. `rows` may be overwritten.
    """
    size = spread_size(rows.shape[1])
    if size == 1:
        return rows
    fused = kernels.find()
    if fused is not None and rows.dtype == torch.float32 and rows.is_contiguous() and rows.is_cpu:
        fused.spread(rows, size)
        return rows
    # Each pass pairs the first half with the second and lays sums and differences side by side (Pease 1968), so that
    # all read and write through the same views; after log2(s) of them every number is in its own place again.
    spare = torch.empty_like(rows)
    source, target = _ends(rows, size), _ends(spare, size)
    for _ in range(size.bit_length() - 1):
        torch.add(source[0], source[1], out=target[2])
        torch.sub(source[0], source[1], out=target[3])
        source, target = target, source
        rows, spare = spare, rows
    return rows


def _ends(rows: Tensor, size: int) -> tuple[Tensor, ...]:
    """What a pass reads, both halves, and where it writes sums and differences; (n, s/2, K/s) each."""
    n = rows.shape[0]
    return *rows.view(n, 2, size // 2, -1).unbind(1), *rows.view(n, size // 2, 2, -1).unbind(2)
