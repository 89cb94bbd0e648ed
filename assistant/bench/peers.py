"""Other programs that decode the same weights, with as many threads and the same prompts as token ids."""

import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from typing import TYPE_CHECKING, Any, TypeVar

import torch

from assistant.bench import llama_child
from assistant.bench.contenders import Run
from assistant.engine.types import Prompt
from assistant.errors import UsageError
from models.registry import ModelSource

if TYPE_CHECKING:
    from pathlib import Path

_LOOKUP_TOKENS = 10
_Answer = TypeVar("_Answer")


def load_transformers(source: ModelSource, precision: str, device: torch.device) -> Any:
    """A transformers model on the same files, dequantized where they are a GGUF."""
    from transformers import AutoModelForCausalLM

    gguf = source.kind == "gguf"
    model: Any = AutoModelForCausalLM.from_pretrained(
        source.path.parent if gguf else source.path,
        dtype=getattr(torch, precision),
        local_files_only=True,
        **({"gguf_file": source.path.name} if gguf else {}),
    )
    return model.to(device).eval()


class TransformersPeer:
    """`generate` of a transformers model, alone or with its own prompt lookup."""

    def __init__(self, label: str, model: Any, stop_ids: frozenset[int], *, lookup: bool) -> None:
        self.label = label
        self._model = model
        self._stop_ids = stop_ids
        self._more = {"prompt_lookup_num_tokens": _LOOKUP_TOKENS} if lookup else {}

    def run(self, prompt: Prompt, max_tokens: int) -> Run:
        ids = torch.tensor([prompt.ids], device=self._model.device)
        clock = _Clock()
        hook = self._model.register_forward_hook(clock.count)
        started = time.perf_counter()
        try:
            with torch.inference_mode():
                output = self._model.generate(
                    ids,
                    attention_mask=torch.ones_like(ids),
                    max_new_tokens=max_tokens,
                    do_sample=False,
                    num_beams=1,
                    temperature=None,
                    top_p=None,
                    top_k=None,
                    repetition_penalty=1.0,
                    eos_token_id=sorted(self._stop_ids),
                    pad_token_id=min(self._stop_ids, default=0),
                    **self._more,
                )
        finally:
            hook.remove()
        ended = time.perf_counter()
        tokens, stopped = _cut(output[0, ids.shape[1] :].tolist(), self._stop_ids)
        return Run(tokens, stopped, clock.first - started, ended - clock.first, forwards=clock.forwards - 1)


class _Clock:
    """Counts a module's forwards and notes when the first was over."""

    def __init__(self) -> None:
        self.forwards = 0
        self.first = 0.0

    def count(self, *_: object) -> None:
        self.forwards += 1
        if self.forwards == 1:
            self.first = time.perf_counter()


class LlamaPeer:
    """llama.cpp on the GGUF file itself, through llama-cpp-python, in a process of its own."""

    def __init__(self, label: str, gguf: "Path", stop_ids: frozenset[int], context: int) -> None:
        """Load the file with room for `context` tokens.

        Raises:
            UsageError: llama-cpp-python is not installed, or its process ended.
        """
        self.label = label
        self._stop_ids = stop_ids
        self._child = ProcessPoolExecutor(1, get_context("spawn"))
        try:
            self._ask(llama_child.load, str(gguf), context, torch.get_num_threads())
        except ImportError:
            raise UsageError(
                "the peer llama.cpp needs llama-cpp-python, which compiles: scripts/bench installs it, "
                "or install eagle-assist[bench]."
            ) from None

    def run(self, prompt: Prompt, max_tokens: int) -> Run:
        tokens, first, rest = self._ask(llama_child.complete, prompt.ids, self._stop_ids, max_tokens)
        kept, stopped = _cut(tokens, self._stop_ids)
        return Run(kept, stopped, first, rest, forwards=len(tokens) - 1)

    def _ask(self, work: Callable[..., _Answer], *args: object) -> _Answer:
        try:
            return self._child.submit(work, *args).result()
        except BrokenProcessPool:
            raise UsageError("the peer llama.cpp ended by itself: leave it out, or build it anew.") from None


def _cut(tokens: list[int], stop_ids: frozenset[int]) -> tuple[tuple[int, ...], bool]:
    for place, token in enumerate(tokens):
        if token in stop_ids:
            return tuple(tokens[:place]), True
    return tuple(tokens), False
