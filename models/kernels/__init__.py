"""Compiled inner loops of the int8 forward: whole lines of small operations in one call, for x86 CPUs with AVX2.

numba compiles them on first use, for the machine it runs on, and keeps the result. Where they cannot be had, torch's
own operations do the same work, and `find` says None. Each gives a row the same bits alone and in any batch.
"""

import functools
import logging
from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from models.kernels.fused import Fused

_log = logging.getLogger(__name__)


@functools.cache
def find() -> "Fused | None":
    """The kernels, compiled and tried out; None on another CPU, without numba, or where it does not work here."""
    if not torch.cpu.get_capabilities().get("avx2"):
        return None
    # Where numba shares its OpenMP library with torch, starting its threads sets torch's number of them too.
    threads = torch.get_num_threads()
    try:
        from models.kernels.fused import Fused

        found = Fused()
        found.try_out()
    except Exception as error:  # noqa: BLE001 - whatever is wrong with a compiler, torch's operations are there
        _log.warning("no compiled loops, torch's own are slower: %s: %s", type(error).__name__, error)
        return None
    finally:
        torch.set_num_threads(threads)
    return found
