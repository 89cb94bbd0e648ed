"""Folds the results of a completion's steps into the figures that people ask for."""

from collections.abc import Sequence
from dataclasses import dataclass

from assistant.engine.types import FinishReason, StepResult


@dataclass(frozen=True, slots=True)
class Summary:
    """One completion in figures."""

    token_ids: tuple[int, ...]
    text: str
    finish: FinishReason | None
    forwards: int
    """of the target, the prefill's left out"""
    tokens_per_step: float
    """tokens after the prefill's / those forwards; 0 when there were none"""
    acceptance_by_depth: tuple[float, ...]
    """of the steps whose path reached depth d and had a draft below it, the part in which that draft was accepted"""
    prompt_tokens: int
    reused: int
    prefill_ms: float
    draft_ms: float
    verify_ms: float

    @property
    def tokens(self) -> int:
        """Tokens written."""
        return len(self.token_ids)


def summarize(steps: Sequence[StepResult]) -> Summary:
    """Add up a completion's steps, the prefill's first."""
    written = sum(len(step.tokens) for step in steps if not step.prompt_tokens)
    forwards = sum(step.forwards for step in steps)
    return Summary(
        token_ids=tuple(token for step in steps for token in step.tokens),
        text="".join(step.text for step in steps),
        finish=steps[-1].finish if steps else None,
        forwards=forwards,
        tokens_per_step=written / forwards if forwards else 0.0,
        acceptance_by_depth=acceptance_by_depth(steps),
        prompt_tokens=sum(step.prompt_tokens for step in steps),
        reused=sum(step.reused for step in steps),
        prefill_ms=sum(step.prefill_ms for step in steps),
        draft_ms=sum(step.draft_ms for step in steps),
        verify_ms=sum(step.verify_ms for step in steps),
    )


def acceptance_by_depth(steps: Sequence[StepResult]) -> tuple[float, ...]:
    """Share of drafts accepted at each depth from 1, of the steps that came so far and had a draft there."""
    tried: list[int] = []
    taken: list[int] = []
    for step in steps:
        for depth, node in enumerate((0, *step.accepted)):
            if not step.tree.children[node]:
                break
            if depth == len(tried):
                tried.append(0)
                taken.append(0)
            tried[depth] += 1
            taken[depth] += depth < len(step.accepted)
    return tuple(a / t for a, t in zip(taken, tried, strict=True))
