"""Whether a method's tokens are plain decoding's, and by how little they differ where they do.

Where the linears' results depend on the batch (float32, bfloat16), the two best logits can change places when they lie
within rounding of each other. So a difference is measured: at the first one, by how much did a fresh forward of the
common tokens prefer its best token to the less favoured of the two that were chosen? The tokens after it have another
context, and mean nothing.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from assistant.bench.contenders import Run
from assistant.engine.kv_cache import KVCache
from models.target import Target

TIE = 1e-4
"""in logits: two tokens closer than this may change places in float32"""


@dataclass(frozen=True, slots=True)
class Difference:
    """The first place where two completions of one prompt part."""

    position: int
    """tokens that they share before it"""
    margin: float | None
    """the best logit less that of the less favoured choice; None where an end at no stop token parted them"""

    @property
    def is_tie(self) -> bool:
        """Whether rounding alone explains it."""
        return self.margin is not None and self.margin <= TIE


def first_difference(
    target: Target, prompt: Sequence[int], plain: Run, other: Run, stop_ids: frozenset[int]
) -> Difference | None:
    """Where `other` leaves `plain`; None when both wrote the same tokens and ended alike."""
    if plain.tokens == other.tokens and plain.stopped == other.stopped:
        return None
    shared = 0
    for ours, theirs in zip(plain.tokens, other.tokens, strict=False):
        if ours != theirs:
            break
        shared += 1
    logits = _fresh_logits(target, [*prompt, *plain.tokens[:shared]])
    chosen = [_choice(run, shared, logits, stop_ids) for run in (plain, other)]
    if None in chosen:
        return Difference(shared, None)
    return Difference(shared, float(logits.max()) - min(logit for logit in chosen if logit is not None))


def _choice(run: Run, position: int, logits: torch.Tensor, stop_ids: frozenset[int]) -> float | None:
    """The logit of what a run chose at a position: its token there, or its most probable stop token."""
    if position < len(run.tokens):
        return float(logits[run.tokens[position]])
    if run.stopped and stop_ids:
        return float(logits[sorted(stop_ids)].max())
    return None


def _fresh_logits(target: Target, ids: Sequence[int]) -> torch.Tensor:
    """(V,) logits after `ids`, from an empty cache."""
    spec = target.spec
    row = torch.tensor(ids, device=spec.device)
    with torch.inference_mode():
        forward = target.forward(row, torch.arange(len(ids), device=spec.device), KVCache.of(spec), last_only=True)
    return forward.logits[-1].float().cpu()
