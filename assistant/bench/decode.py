"""Decoding compared: every task by every method in turn, so that a busy minute of the machine strikes all alike."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from assistant.bench.contenders import Contender, Run
from assistant.bench.exactness import Difference, first_difference
from assistant.bench.rows import method_row, tree_options
from assistant.bench.specs import MethodSpec
from assistant.engine.types import Prompt
from models.target import Target, TargetSpec

_WARM_UP_TOKENS = 8


def compare(
    contenders: Sequence[Contender],
    prompts: Sequence[Prompt],
    max_tokens: int,
    *,
    repeat: int = 1,
    progress: Callable[[int, int], None] = lambda *_: None,
) -> dict[str, list[list[Run]]]:
    """Run every contender on every prompt, `repeat` times, in an order that rotates from turn to turn.

    A short completion of the first prompt warms every contender up and is not counted.
    """
    for contender in contenders:
        contender.run(prompts[0], _WARM_UP_TOKENS)
    runs: dict[str, list[list[Run]]] = {contender.label: [[] for _ in prompts] for contender in contenders}
    turns = repeat * len(prompts)
    for turn in range(turns):
        task = turn % len(prompts)
        first = turn % len(contenders)
        for contender in (*contenders[first:], *contenders[:first]):
            runs[contender.label][task].append(contender.run(prompts[task], max_tokens))
        progress(turn + 1, turns)
    return runs


def document(rows: Sequence[Mapping[str, Any]], spec: TargetSpec, **asked: Any) -> dict[str, Any]:
    """The JSON document of `bench decode`: its rows, the model, and what was asked."""
    return {
        "rows": list(rows),
        "model": spec.name,
        "precision": spec.precision,
        "device": str(spec.device),
        "batch_exact": spec.batch_exact,
        "threads": torch.get_num_threads(),
        **asked,
    }


def method_rows(
    specs: Sequence[MethodSpec],
    runs: Mapping[str, Sequence[Sequence[Run]]],
    prompts: Sequence[Prompt],
    target: Target,
    stop_ids: frozenset[int],
) -> list[dict[str, Any]]:
    """The rows of `bench decode`, one a spec; `runs` are `compare`'s, and hold a plain method's."""
    plain = next(runs[spec.label] for spec in specs if spec.name == "plain")
    return [
        {
            **method_row(
                spec.label,
                runs[spec.label],
                plain,
                None if spec.is_peer else find_differences(target, prompts, plain, runs[spec.label], stop_ids),
            ),
            **tree_options(spec),
        }
        for spec in specs
    ]


def find_differences(
    target: Target,
    prompts: Sequence[Prompt],
    plain: Sequence[Sequence[Run]],
    other: Sequence[Sequence[Run]],
    stop_ids: frozenset[int],
) -> list[Difference | None]:
    """By task, the first difference of any repeat of `other` from plain's first run."""
    return [
        next(
            (
                found
                for run in theirs
                if (found := first_difference(target, prompt.ids, ours[0], run, stop_ids)) is not None
            ),
            None,
        )
        for prompt, ours, theirs in zip(prompts, plain, other, strict=True)
    ]
