"""llama.cpp in a process of its own, which `peers.LlamaPeer` starts.

It shares no threads with torch there, and a build that crashes on this processor takes no measurement with it.
"""

import time
from collections.abc import Sequence
from typing import Any

_loaded: list[Any] = []


def load(gguf: str, context: int, threads: int) -> None:
    """Load a file with room for `context` tokens.

    Raises:
        ImportError: llama-cpp-python is not installed.
    """
    from llama_cpp import Llama

    _loaded[:] = [Llama(gguf, n_ctx=context, n_threads=threads, n_threads_batch=threads, verbose=False)]


def complete(ids: Sequence[int], stop_ids: frozenset[int], max_tokens: int) -> tuple[list[int], float, float]:
    """Decode greedily with nothing kept from before: tokens with a stop token last, seconds to the first, the rest."""
    (llama,) = _loaded
    llama.reset()
    tokens: list[int] = []
    started = first = time.perf_counter()
    for token in llama.generate(ids, top_k=1, temp=0.0, repeat_penalty=1.0):
        tokens.append(int(token))
        if len(tokens) == 1:
            first = time.perf_counter()
        if token in stop_ids or len(tokens) == max_tokens:
            break
    return tokens, first - started, time.perf_counter() - first
