"""Spreading the few large numbers of a row over many, so that a row's largest number leaves room for the others.

The gated MLP's inner rows are heavy-tailed: one value of dozens of standard deviations sets the step in which all are
rounded. A Walsh-Hadamard transform over small groups of channels evens them out, and its inverse is folded into the
weights (QuaRot, Ashkboos et al. 2024, section 3). Sums and differences of two numbers round alike everywhere, so a
row's result stays independent of its batch.
"""

import torch
from torch import Tensor

_LARGEST = 64


def spread_size(channels: int) -> int:
    """Channels of one group: the largest power of two up to 64 that divides `channels`."""
    return min(channels & -channels, _LARGEST)


def spread(rows: Tensor) -> Tensor:
    """(n, K) -> (n, K): the unnormalised transform over the groups {j, j + K/s, j + 2 K/s, ...} of s channels.

    Applied twice it multiplies by s. `rows` may be overwritten.
    """
    n, channels = rows.shape
    size = spread_size(channels)
    spare = torch.empty_like(rows)
    groups = 1
    while groups < size:
        source, result = rows.view(n, groups, 2, -1), spare.view(n, groups, 2, -1)
        torch.add(source[:, :, 0], source[:, :, 1], out=result[:, :, 0])
        torch.sub(source[:, :, 0], source[:, :, 1], out=result[:, :, 1])
        rows, spare = spare, rows
        groups *= 2
    return rows
