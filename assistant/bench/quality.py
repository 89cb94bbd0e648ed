"""What a precision costs in quality: how many of the programs that the model writes pass their tests."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from assistant.bench.agreement import agreement
from assistant.bench.contenders import prompts_of
from assistant.bench.sandbox import Outcome, run_programs
from assistant.bench.stats import wilson
from assistant.bench.tasks import Task
from assistant.engine.generate import generate
from assistant.engine.methods import make_drafter
from assistant.engine.session import Session
from assistant.engine.tree import TreeShape
from assistant.engine.types import GenerateOptions
from models.draft_head import DraftHead
from models.loading import LoadedModel
from models.target import Target
from models.tokenizer import Tokenizer


@dataclass(frozen=True, slots=True)
class Generator:
    """How completions are written while quality is measured; every method writes what plain decoding would."""

    method: str = "plain"
    shape: TreeShape = field(default_factory=TreeShape)
    max_tokens: int = 256


def compare_precisions(
    models: Sequence[LoadedModel],
    heads: Sequence[DraftHead | None],
    tasks: Sequence[Task],
    windows: Sequence[Sequence[int]],
    generator: Generator,
    counter: Callable[[str], Callable[[int, int], None]] = lambda _: lambda *_: None,
) -> dict[str, Any]:
    """The JSON document of `bench quality`: pass@1 of each model, and the agreement of all with the last."""
    *others, reference = models
    agreed = [agreement(model.target, reference.target, windows, counter("windows")) for model in others]
    rows = [
        pass_at_1(
            model.target,
            model.tokenizer,
            tasks,
            generator,
            head=head,
            progress=counter(f"tasks in {model.target.spec.precision}"),
        )
        for model, head in zip(models, heads, strict=True)
    ]
    return {"rows": rows, "agreement": agreed, "model": reference.target.spec.name}


def pass_at_1(
    target: Target,
    tokenizer: Tokenizer,
    tasks: Sequence[Task],
    generator: Generator,
    *,
    head: DraftHead | None = None,
    progress: Callable[[int, int], None] = lambda *_: None,
) -> dict[str, Any]:
    """Complete every task greedily, run its check, and count: one row of `bench quality`."""
    started = time.perf_counter()
    programs, tokens = [], 0
    for done, (task, prompt) in enumerate(zip(tasks, prompts_of(tasks, tokenizer), strict=True), start=1):
        options = GenerateOptions(
            max_tokens=generator.max_tokens, tree=generator.shape, stop_ids=tokenizer.eos_ids, stop_strings=task.stops
        )
        session = Session(target, make_drafter(generator.method, target, head=head))
        steps = list(generate(session, prompt, options, tokenizer))
        tokens += sum(len(step.tokens) for step in steps)
        programs.append(task.program("".join(step.text for step in steps)))
        progress(done, len(tasks))
    seconds = time.perf_counter() - started
    outcomes = run_programs(programs)
    passed = [task.name for task, outcome in zip(tasks, outcomes, strict=True) if outcome is Outcome.PASSED]
    return {
        "precision": target.spec.precision,
        "tasks": len(tasks),
        "passed": len(passed),
        "pass_at_1": len(passed) / len(tasks),
        "pass_at_1_interval": list(wilson(len(passed), len(tasks))),
        "method": generator.method,
        "max_tokens": generator.max_tokens,
        "tokens": tokens,
        "seconds": seconds,
        "outcomes": {outcome.value: outcomes.count(outcome) for outcome in Outcome},
        "passed_tasks": passed,
    }
