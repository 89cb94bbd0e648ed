"""Any target as a writer of training texts: one sequence after another, through the forward that all targets have."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from models.target import Cache, Target
from models.training.batched import Written, written


class SequentialWriter:
    """Slow, and right for every `Target`; `models.training.batched.BatchedDecoder` does the same for lean decoders."""

    def __init__(self, target: Target, new_cache: Callable[[], Cache]) -> None:
        self._target = target
        self._new_cache = new_cache

    def features(self, sequences: Sequence[Sequence[int]]) -> list[Tensor]:
        """Features, (len, H) float16 each, of texts that are given."""
        return [self._run(ids, 0, self._new_cache())[0].half() for ids in sequences]

    def write(
        self,
        prompts: Sequence[Sequence[int]],
        limit: int,
        stop_ids: frozenset[int],
        *,
        temperature: float = 0.0,
        generator: torch.Generator | None = None,
    ) -> list[Written]:
        """Continue every prompt by up to `limit` tokens, greedily or at a temperature."""
        return [self._write(prompt, limit, stop_ids, temperature, generator) for prompt in prompts]

    def _write(
        self,
        prompt: Sequence[int],
        limit: int,
        stop_ids: frozenset[int],
        temperature: float,
        generator: torch.Generator | None,
    ) -> Written:
        cache = self._new_cache()
        ids, parts = list(prompt), []
        fresh: Sequence[int] = prompt
        for _ in range(limit):
            features, logits = self._run(fresh, len(ids) - len(fresh), cache)
            parts.append(features.half())
            ids.append(_choose(logits, temperature, generator))
            fresh = ids[-1:]
            if ids[-1] in stop_ids:
                break
        return written(ids, len(prompt), parts)

    def _run(self, ids: Sequence[int], start: int, cache: Cache) -> tuple[Tensor, Tensor]:
        device = self._target.spec.device
        positions = torch.arange(start, start + len(ids), device=device)
        forward = self._target.forward(torch.tensor(list(ids), device=device), positions, cache, last_only=True)
        return forward.features, forward.logits[-1]


def _choose(logits: Tensor, temperature: float, generator: torch.Generator | None) -> int:
    if temperature <= 0.0:
        return int(logits.argmax())
    return int(torch.multinomial((logits / temperature).softmax(-1), 1, generator=generator))
