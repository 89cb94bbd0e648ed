"""In which precision a machine multiplies matrices fastest.

Processors without instructions for bfloat16 emulate it, hundreds of times slower than float32.
"""

import time

import torch

_SHAPE = (64, 512, 512)
_TRIES = 3


def quickest_precision(device: torch.device | str) -> str:
    """Either bfloat16 or float32: the one whose products take less time on this device; a tie is float32's."""
    times = {dtype: _seconds(torch.device(device), dtype) for dtype in (torch.float32, torch.bfloat16)}
    return "bfloat16" if times[torch.bfloat16] < times[torch.float32] else "float32"


def _seconds(device: torch.device, dtype: torch.dtype) -> float:
    """Of the quickest of a few products, the first one left out."""
    rows, inner, columns = _SHAPE
    left = torch.ones((rows, inner), dtype=dtype, device=device)
    right = torch.ones((inner, columns), dtype=dtype, device=device)
    times = []
    for _ in range(_TRIES + 1):
        begun = time.perf_counter()
        float((left @ right)[0, 0])  # reading a number waits for a GPU
        times.append(time.perf_counter() - begun)
    return min(times[1:])
