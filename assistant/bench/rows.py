"""One method's runs as the figures of its row: rates, tokens a step, how they lie over the tasks, exactness."""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

from assistant.bench.contenders import Run
from assistant.bench.exactness import Difference
from assistant.bench.specs import MethodSpec
from assistant.bench.stats import spread
from assistant.engine.types import StepResult
from assistant.metrics import summarize


def tree_options(spec: MethodSpec) -> dict[str, Any]:
    """What a row says of its tree: nothing of plain decoding's and other programs'. A family draws one line."""
    if spec.is_peer or spec.name == "plain":
        return {"family": spec.name}
    shape = spec.shape
    family = spec.name + ("" if shape.rerank else ", no reranking")
    family += "" if shape.rank == "value" else f", by {shape.rank}"
    names = ("nodes", "depth", "width", "threshold", "top_p", "rerank", "rank")
    return {"family": family, **{name: getattr(shape, name) for name in names}}


def method_row(
    label: str,
    runs: Sequence[Sequence[Run]],
    plain: Sequence[Sequence[Run]],
    differences: Sequence[Difference | None] | None,
) -> dict[str, Any]:
    """One method's figures. Rates count the tokens after the prefill's own; `total_` ones count the prefill too.

    A task's time is the median of its repeats; `speedup` is the rate over plain's, `speedup_by_task` how it lies.
    """
    ours, theirs = [_Times.of(task) for task in runs], [_Times.of(task) for task in plain]
    first = [task[0] for task in runs]
    known = [run.forwards for run in first if run.forwards is not None]
    forwards = sum(known) if len(known) == len(first) else None
    later, seconds = sum(run.later_tokens for run in first), sum(times.rest for times in ours)
    pairs = [
        (their.per_token / our.per_token) for our, their in zip(ours, theirs, strict=True) if our.rate and their.rate
    ]
    step_ms = [1000 * t.rest / run.forwards for t, run in zip(ours, first, strict=True) if run.forwards]
    return {
        "method": label,
        "tasks": len(first),
        "tokens": sum(len(run.tokens) for run in first),
        "tokens_per_second": _ratio(later, seconds),
        "tokens_per_step": _ratio(later, forwards),
        "speedup": _ratio(_rate(ours), _rate(theirs)),
        "identical": None if differences is None else sum(found is None for found in differences),
        "acceptance_by_depth": [],
        "ms_per_step": _ratio(1000 * seconds, forwards),
        "forwards": forwards,
        "prefill_ms": statistics.median(1000 * times.first for times in ours),
        "total_tokens_per_second": _ratio(sum(t.tokens for t in ours), sum(t.total for t in ours)),
        "total_speedup": _ratio(_total_rate(ours), _total_rate(theirs)),
        "speedup_by_task": _spread(pairs),
        "tokens_per_second_by_task": _spread([times.rate for times in ours if times.rate]),
        "tokens_per_step_by_task": _spread([run.later_tokens / run.forwards for run in first if run.forwards]),
        "ms_per_step_by_task": _spread(step_ms),
        **_drafting(first),
        **_exactness(differences),
    }


@dataclass(frozen=True, slots=True)
class _Times:
    """One task: medians over its repeats."""

    tokens: int
    later: int
    first: float
    rest: float

    @classmethod
    def of(cls, repeats: Sequence[Run]) -> "_Times":
        return cls(
            tokens=len(repeats[0].tokens),
            later=repeats[0].later_tokens,
            first=statistics.median(run.first_seconds for run in repeats),
            rest=statistics.median(run.rest_seconds for run in repeats),
        )

    @property
    def total(self) -> float:
        return self.first + self.rest

    @property
    def rate(self) -> float:
        return self.later / self.rest if self.rest > 0 else 0.0

    @property
    def per_token(self) -> float:
        return self.rest / self.later


def _rate(times: Sequence[_Times]) -> float | None:
    return _ratio(sum(t.later for t in times), sum(t.rest for t in times))


def _total_rate(times: Sequence[_Times]) -> float | None:
    return _ratio(sum(t.tokens for t in times), sum(t.total for t in times))


def _ratio(above: float | None, below: float | None) -> float | None:
    return above / below if above is not None and below else None


def _spread(values: Sequence[float]) -> dict[str, float] | None:
    return spread(values).to_json() if values else None


def _drafting(runs: Sequence[Run]) -> dict[str, Any]:
    """What this engine's steps tell; nothing of other programs."""
    steps = list(chain.from_iterable(run.steps for run in runs))
    if not steps:
        return {}
    summary = summarize(steps)
    forwards = sum(step.forwards for step in steps)
    return {
        "acceptance_by_depth": list(summary.acceptance_by_depth),
        "draft_acceptance": draft_acceptance(steps),
        "draft_ms_per_step": _ratio(summary.draft_ms, forwards),
        "verify_ms_per_step": _ratio(summary.verify_ms, forwards),
        "nodes_per_step": _ratio(sum(step.tree.drafted for step in steps), forwards),
        "origins": _origins(steps),
    }


def draft_acceptance(steps: Sequence[StepResult]) -> float | None:
    """Of the levels that were put to the target, the share where it took a draft; of a chain, the `a` of its formula.

    A step is asked at every level down to the first where no draft was taken, or to the accepted path's leaf.
    """
    taken = asked = 0
    for step in steps:
        last = step.accepted[-1] if step.accepted else 0
        taken += len(step.accepted)
        asked += len(step.accepted) + bool(step.tree.children[last])
    return _ratio(taken, asked)


def _origins(steps: Sequence[StepResult]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for origin in chain.from_iterable(step.origins for step in steps):
        counts[origin.value] = counts.get(origin.value, 0) + 1
    return dict(sorted(counts.items()))


def _exactness(differences: Sequence[Difference | None] | None) -> dict[str, Any]:
    if differences is None:
        return {}
    found = [difference for difference in differences if difference is not None]
    return {
        "differences": len(found),
        "ties_within_1e-4": sum(difference.is_tie for difference in found),
        "margins": [difference.margin for difference in found],
    }
