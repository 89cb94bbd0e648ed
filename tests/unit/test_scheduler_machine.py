"""Whatever is asked, superseded, cancelled, edited, freed or unloaded in whatever order: every request ends exactly
once, and what it was given are plain decoding's tokens for its prompt."""

from functools import cache
from typing import Any
from unittest.mock import patch

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from assistant.config import Settings
from assistant.config.declaration import Daemon
from assistant.daemon.jobs import Job
from assistant.daemon.run import Run
from assistant.engine.generate import generate
from assistant.engine.types import GenerateOptions, Prompt
from assistant.errors import BusyError
from tests.support.rooms import CODE, Answer, Room, tiny_engine

DOCUMENTS = ("a.py", "b.py", "c.py")
TOKENS = 10
LIMIT = 2


@cache
def plain(prompt: Prompt) -> tuple[int, ...]:
    """What the target alone writes."""
    engine = tiny_engine()
    options = GenerateOptions(max_tokens=TOKENS, stop_ids=engine.tokenizer.eos_ids)
    return tuple(
        token for step in generate(engine.session("plain"), prompt, options, engine.tokenizer) for token in step.tokens
    )


class Requests(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.room = Room(settings=Settings(daemon=Daemon(max_queue=LIMIT, documents=2)), chunk=16)
        self.texts = {path: (CODE, len(CODE) // 2) for path in DOCUMENTS}
        self.answers: list[Answer] = []
        self.prompts: dict[str, Prompt] = {}
        self.watch()

    def watch(self) -> None:
        """Note the prompt of every run."""
        begin = self.room.scheduler._turns._begin

        def noting(job: Job) -> None:
            open_run = Run.__init__

            def opening(run: Run, *arguments: Any) -> None:
                open_run(run, *arguments)
                self.prompts[job.id] = run.prompt

            with patch.object(Run, "__init__", opening):
                begin(job)

        self.room.scheduler._turns._begin = noting  # type: ignore[method-assign]
        hand_over = self.room.scheduler._turns._hand_over

        def noting_heirs(job: Job) -> Job | None:
            heir = hand_over(job)
            if heir is not None:
                self.prompts[heir.id] = self.prompts[job.id]
            return heir

        self.room.scheduler._turns._hand_over = noting_heirs  # type: ignore[method-assign]

    @rule(
        path=st.sampled_from(DOCUMENTS),
        method=st.sampled_from(["eagle2", "plain", "hybrid"]),
        priority=st.sampled_from(["interactive", "interactive", "prefetch"]),
        typed=st.booleans(),
        deadline=st.sampled_from([None, None, 3.0]),
    )
    def ask(self, *, path: str, method: str, priority: str, typed: bool, deadline: float | None) -> None:
        text, cursor = self.texts[path]
        try:
            answer = self.room.ask(
                text,
                cursor,
                path=path,
                method=method,
                priority=priority,
                typed=typed,
                tokens=TOKENS,
                version=1,
                deadline_ms=deadline,
            )
        except BusyError:
            return
        self.answers.append(answer)

    @rule(path=st.sampled_from(DOCUMENTS), piece=st.sampled_from(["r", "(", "self", "\n", " "]))
    def key(self, path: str, piece: str) -> None:
        text, cursor = self.texts[path]
        self.texts[path] = (text[:cursor] + piece + text[cursor:], cursor + len(piece))

    @rule(path=st.sampled_from(DOCUMENTS), data=st.data())
    def edit(self, path: str, data: st.DataObject) -> None:
        text, _ = self.texts[path]
        start = data.draw(st.integers(0, len(text)))
        text = text[:start] + "x\n" + text[data.draw(st.integers(start, min(len(text), start + 9))) :]
        self.texts[path] = (text, data.draw(st.integers(0, len(text))))

    @rule(which=st.integers(0, 5))
    def cancel(self, which: int) -> None:
        if which < len(self.answers):
            self.room.scheduler.cancel(self.answers[-1 - which].id)

    @rule(path=st.sampled_from([*DOCUMENTS, None]))
    def forget(self, path: str | None) -> None:
        self.room.scheduler.forget("c1", path)

    @rule(what=st.sampled_from(["unload", "trim", "load", "model"]))
    def house_keeping(self, what: str) -> None:
        if what == "model":
            self.room.scheduler.load("another")
        else:
            getattr(self.room.scheduler, what)()

    @rule(count=st.integers(1, 12))
    def turns(self, count: int) -> None:
        for _ in range(count):
            self.room.clock.now += 0.0005
            self.room.scheduler.turn()

    @invariant()
    def bounds_hold(self) -> None:
        board = self.room.scheduler._desk.board
        for interactive in (True, False):
            documents = [job.document for job in board if job.interactive == interactive and not job.withdrawn]
            assert len(documents) == len(set(documents)) <= LIMIT
        pool = self.room.scheduler._workshop._pool
        if pool is not None:
            assert len(pool) <= max(2, sum(kept.leased for kept in pool._kept))

    def teardown(self) -> None:
        self.room.settle()
        for answer in self.answers:
            assert answer.ended
            done = answer.done
            if done.source == "typed" or not answer.tokens:
                continue
            expected = plain(self.prompts[answer.id])
            assert answer.tokens == expected[: len(answer.tokens)]
            if done.finish in {"stop", "length"}:
                assert len(answer.tokens) == len(expected)


TestRequests = Requests.TestCase
TestRequests.settings = settings(max_examples=20, stateful_step_count=30, deadline=None)
