"""Who competes: one interface over this engine's methods and other programs, and what one run of it yields."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from assistant.bench.specs import MethodSpec
from assistant.bench.tasks import Task
from assistant.engine.draft import Drafter
from assistant.engine.generate import generate
from assistant.engine.methods import make_drafter
from assistant.engine.session import Session
from assistant.engine.types import FinishReason, GenerateOptions, Prompt, Sampling, StepResult
from assistant.errors import UsageError
from models import fim
from models.draft_head import DraftHead
from models.target import Target
from models.tokenizer import Tokenizer


@dataclass(frozen=True, slots=True)
class Run:
    """One completion and what it took. Seconds are wall-clock, read by the caller of whoever decodes."""

    tokens: tuple[int, ...]
    stopped: bool
    """a stop token ended it, not the limit"""
    first_seconds: float
    """until the first token: the prefill"""
    rest_seconds: float
    """for all later tokens: drafting, verification and everything between"""
    forwards: int | None = None
    """of the target, after the prefill; None where another program does not tell"""
    steps: tuple[StepResult, ...] = ()
    """this engine's own account, the prefill's left out"""

    @property
    def later_tokens(self) -> int:
        """Tokens after the prefill's own; the stop token cost a forward like any other, so it counts."""
        return max(0, len(self.tokens) + self.stopped - 1)


class Contender(Protocol):
    """Completes prompts greedily."""

    label: str

    def run(self, prompt: Prompt, max_tokens: int) -> Run:
        """Complete a prompt with nothing kept from earlier ones."""
        ...


class EngineContender:
    """One of this engine's methods; greedy unless it is to draw."""

    def __init__(
        self,
        spec: MethodSpec,
        target: Target,
        tokenizer: Tokenizer,
        *,
        head: DraftHead | None = None,
        draft: Target | None = None,
        sampling: Sampling | None = None,
        session: Session | None = None,
    ) -> None:
        """A `session` that is given keeps rows from prompt to prompt; else each prompt has one of its own.

        Contenders of one method and head may share theirs.
        """
        self.label = spec.label
        self._session = session
        self._target = target
        self._tokenizer = tokenizer
        self._new_drafter: Callable[[], Drafter] = lambda: make_drafter(spec.name, target, head=head, draft=draft)
        self._options = GenerateOptions(tree=spec.shape, stop_ids=tokenizer.eos_ids, sampling=sampling or Sampling())
        self._new_drafter()  # what the method lacks is said before anything is measured

    def run(self, prompt: Prompt, max_tokens: int) -> Run:
        session = self._session or Session(self._target, self._new_drafter())
        tokenizer = self._tokenizer if prompt.forced else None
        started = time.perf_counter()
        steps = generate(session, prompt, replace(self._options, max_tokens=max_tokens), tokenizer)
        prefill = next(steps)
        first = time.perf_counter()
        rest = tuple(steps)
        ended = time.perf_counter()
        everything = (prefill, *rest)
        return Run(
            tokens=tuple(token for step in everything for token in step.tokens),
            stopped=everything[-1].finish is FinishReason.STOP,
            first_seconds=first - started,
            rest_seconds=ended - first,
            forwards=sum(step.forwards for step in rest),
            steps=rest,
        )


def prompts_of(tasks: Sequence[Task], tokenizer: Tokenizer) -> list[Prompt]:
    """Each task as token ids; one with a suffix is asked as fill-in-the-middle.

    Raises:
        UsageError: a task has a suffix and the model's family knows no fill-in-the-middle.
    """
    form = fim.detect(tokenizer)
    start = [] if tokenizer.bos_id is None else [tokenizer.bos_id]
    prompts = []
    for task in tasks:
        prefix, suffix = tokenizer.encode(task.prompt), tokenizer.encode(task.suffix)
        if task.suffix and form is None:
            raise UsageError(f"{task.name} has a suffix, and {tokenizer.name} knows no fill-in-the-middle prompts.")
        ids = form.build(prefix, suffix, tokenizer) if task.suffix and form is not None else [*start, *prefix]
        prompts.append(Prompt(ids=tuple(ids), prefix=tuple(prefix), suffix=tuple(suffix)))
    return prompts
