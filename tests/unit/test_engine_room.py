"""The room around the steps: loading and freeing the model, a full GPU, faults, trees under load, what is shown."""

import logging
import threading
import weakref
from itertools import pairwise
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from assistant import protocol
from assistant.config import Settings
from assistant.config.declaration import Completion, Model
from assistant.daemon.budget import ration, under_load
from assistant.daemon.engine_room import Text
from assistant.daemon.host import Choice, Engine, Host
from assistant.daemon.scheduler import Scheduler
from assistant.daemon.text import Policy
from assistant.engine.methods import bounds_of
from assistant.engine.session import Session
from assistant.engine.tree import TreeShape
from assistant.errors import ModelNotFoundError
from models.hashes import Progress
from tests.support.rooms import CODE, Answer, Room, alone, tiny_engine, tiny_host

HOLE = CODE.index("    return self")


class Loads:
    """A loader that notes what it was asked for, and fails where it is told to."""

    def __init__(self, *errors: Exception | None) -> None:
        self.asked: list[Choice] = []
        self._errors = list(errors)

    def __call__(self, choice: Choice, progress: Progress) -> Engine:
        self.asked.append(choice)
        progress("load", 0, 2)
        error = self._errors.pop(0) if self._errors else None
        if error is not None:
            raise error
        progress("load", 2, 2)
        return tiny_engine()


class TestLoading:
    def test_it_begins_with_the_first_request_and_is_seen_by_all_who_wait(self) -> None:
        loads = Loads()
        room = Room(Host(Choice("tiny"), loads))
        assert room.scheduler.status().state == "unloaded"
        answers = [room.ask(CODE, HOLE, path=path) for path in ("a.py", "b.py")]
        room.turns(1)
        for answer in answers:
            assert any(isinstance(event, protocol.Progress) for event in answer.events)
        room.settle()
        status = room.scheduler.status()
        assert (status.state, status.loaded, len(loads.asked)) == ("ready", True, 1)

    def test_it_can_be_asked_for(self) -> None:
        room = Room()
        room.scheduler.load()
        room.settle()
        assert room.scheduler.status().loaded

    def test_unloading_waits_for_what_runs_and_frees_everything(self) -> None:
        room = Room()
        answer = room.ask(CODE, HOLE)
        room.settle(lambda: len(answer.steps) == 2)
        kept = weakref.ref(room.scheduler._workshop._pool._kept[0].session)  # type: ignore[union-attr]
        engine = weakref.ref(room.host.ensure(lambda *_: None))
        room.scheduler.unload()
        room.settle()
        assert answer.tokens == alone(CODE, HOLE, 12)
        status = room.scheduler.status()
        assert (status.loaded, status.state, status.cache_bytes) == (False, "unloaded", 0)
        assert kept() is None, "unloading collects what it leaves behind"
        assert engine() is None
        assert room.ask(CODE, HOLE + 1).done_after(room).tokens == alone(CODE, HOLE + 1, 12)

    def test_a_request_that_comes_before_it_is_freed_keeps_it(self) -> None:
        loads = Loads()
        room = Room(Host(Choice("tiny"), loads))
        room.ask(CODE, HOLE).done_after(room)
        room.scheduler.unload()
        room.scheduler.load()
        room.settle()
        assert room.scheduler.status().loaded
        assert len(loads.asked) == 1

    def test_another_model_waits_for_what_runs_and_comes_before_what_waits(self) -> None:
        loads = Loads()
        room = Room(Host(Choice("tiny"), loads))
        running = room.ask(CODE, HOLE)
        room.settle(lambda: len(running.steps) == 2)
        room.scheduler.load("other")
        waiting = room.ask(CODE, HOLE, path="b.py")
        room.settle()
        assert [choice.name for choice in loads.asked] == ["tiny", "other"]
        assert running.tokens == waiting.tokens
        assert room.scheduler.status().model == "other"

    def test_a_configuration_with_another_model_loads_that(self) -> None:
        loads = Loads()
        room = Room(Host(Choice("tiny"), loads))
        room.scheduler.configure(Settings(model=Model(name="m", precision="float32")))
        room.ask(CODE, HOLE).done_after(room)
        assert loads.asked == [Choice("m", precision="float32")]

    def test_a_model_that_is_missing_fails_the_request_with_its_sentence(self) -> None:
        room = Room(Host(Choice("tiny"), Loads(ModelNotFoundError("there is no model tiny"))))
        answer = room.ask(CODE, HOLE)
        room.settle()
        assert (answer.failed.code, answer.failed.message) == ("model_not_found", "there is no model tiny")
        status = room.scheduler.status()
        assert (status.state, status.message) == ("degraded", "there is no model tiny")
        assert room.ask(CODE, HOLE).done_after(room).tokens
        assert room.scheduler.status().state == "ready"

    def test_a_request_can_be_withdrawn_while_it_loads(self) -> None:
        asked: list[Answer] = []
        room: Room

        def loader(choice: Choice, progress: Progress) -> Engine:
            del choice
            room.scheduler.cancel(asked[0].id)
            room.clock.now = 1.0
            progress("load", 1, 2)
            assert asked[0].ended
            assert asked[1].ended
            return tiny_engine()

        room = Room(Host(Choice("tiny"), loader))
        asked.append(room.ask(CODE, HOLE))
        asked.append(room.ask(CODE, HOLE, path="b.py", deadline_ms=10.0))
        room.settle()
        assert [answer.done.finish for answer in asked] == ["cancelled", "deadline"]


class TestFullGpu:
    def run(self, monkeypatch: pytest.MonkeyPatch, *, failures: int, at: int = 0) -> tuple[Room, Answer, Loads]:
        """A request during which sessions fail `failures` times, each after `at` commits."""
        loads = Loads()
        room = Room(Host(Choice("tiny", device="cuda"), loads))
        room.ask(CODE, HOLE, path="idle.py").done_after(room)
        commit, left, done = Session.commit, [failures], [0]

        def failing(self: Session, *arguments: Any) -> None:
            done[0] += 1
            if left[0] and done[0] > at:
                left[0] -= 1
                raise torch.cuda.OutOfMemoryError("CUDA out of memory")
            commit(self, *arguments)

        monkeypatch.setattr(Session, "commit", failing)
        monkeypatch.setattr(Host, "on_cpu", property(lambda _: len(loads.asked) > 1))
        answer = room.ask(CODE, HOLE)
        room.settle()
        return room, answer, loads

    def test_caches_are_dropped_first(self, monkeypatch: pytest.MonkeyPatch) -> None:
        room, answer, loads = self.run(monkeypatch, failures=1)
        assert answer.tokens == alone(CODE, HOLE, 12)
        assert len(loads.asked) == 1
        assert len(room.scheduler._workshop._pool) == 1  # type: ignore[arg-type]
        assert room.scheduler.status().state == "ready"

    def test_then_it_goes_on_on_the_cpu_and_says_so(self, monkeypatch: pytest.MonkeyPatch) -> None:
        room, answer, loads = self.run(monkeypatch, failures=2)
        assert answer.tokens == alone(CODE, HOLE, 12)
        assert [choice.device for choice in loads.asked] == ["cuda", "cpu"]
        status = room.scheduler.status()
        assert status.state == "degraded"
        assert "CPU" in status.message

    def test_a_completion_that_was_shown_in_part_is_not_begun_anew(self, monkeypatch: pytest.MonkeyPatch) -> None:
        room, answer, _ = self.run(monkeypatch, failures=1, at=4)
        assert answer.steps
        assert answer.failed.code == "out_of_memory"
        assert room.ask(CODE, HOLE, path="b.py").done_after(room).tokens == alone(CODE, HOLE, 12)

    def test_a_model_that_does_not_fit_is_loaded_on_the_cpu(self) -> None:
        loads = Loads(torch.cuda.OutOfMemoryError("CUDA out of memory"))
        room = Room(Host(Choice("tiny", precision="bfloat16", device="cuda:0"), loads))
        assert room.ask(CODE, HOLE).done_after(room).tokens == alone(CODE, HOLE, 12)
        assert loads.asked[1] == Choice("tiny", device="cpu", precision="auto")
        assert room.scheduler.status().state == "degraded"
        room.scheduler.load("tiny")
        room.settle()
        assert room.scheduler.status().state == "ready"


def test_a_fault_ends_its_request_alone_and_the_log_holds_no_code(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    room = Room()
    secret = "password_of_the_user = 1\n"
    commit = Session.commit
    fuse = [True]

    def failing(self: Session, *arguments: Any) -> None:
        if fuse:
            fuse.clear()
            raise RuntimeError(f"cannot handle {secret}")
        commit(self, *arguments)

    monkeypatch.setattr(Session, "commit", failing)
    with caplog.at_level(logging.DEBUG):
        first, second = room.ask(secret, path="a.py"), room.ask(CODE, HOLE, path="b.py")
        room.settle()
    assert first.failed.code == "internal"
    assert second.tokens == alone(CODE, HOLE, 12)
    assert "RuntimeError" in caplog.text
    assert "password" not in caplog.text + first.failed.message


def test_a_method_that_cannot_be_had_is_the_users_mistake() -> None:
    engine = tiny_engine()
    engine.head = None
    room = Room(tiny_host(engine))
    answer = room.ask(CODE, HOLE, method="eagle2")
    room.settle()
    assert answer.failed.code == "usage"
    assert "head" in answer.failed.message


class TestUnderLoad:
    @given(nodes=st.integers(1, 64), depth=st.integers(1, 8), width=st.integers(1, 16))
    def test_trees_shrink_with_the_queue_and_never_grow(self, nodes: int, depth: int, width: int) -> None:
        shape = TreeShape(nodes=nodes, depth=depth, width=width)
        shapes = [under_load(shape, queue) for queue in range(12)]
        assert shapes[0] == shape
        for before, after in pairwise(shapes):
            assert (after.nodes, after.depth, after.width) <= (before.nodes, before.depth, before.width)
            assert after.depth <= max(after.nodes, 0) or after == shape

    def test_what_was_asked_for_stays_where_nobody_waits_or_nothing_adapts(self) -> None:
        shape = TreeShape()
        assert ration(shape, 0) == (shape, protocol.Choice(nodes=8, depth=6, width=8))
        assert ration(shape, 2, adaptive=False)[0] == shape
        chosen, choice = ration(shape, 2)
        assert (chosen.nodes, choice.queue, choice.reason) == (4, 2, "2 requests wait")

    def test_steps_tell_what_was_chosen(self) -> None:
        room = Room()
        first = room.ask(CODE, HOLE, path="a.py", tokens=20)
        second = room.ask(CODE, HOLE + 4, path="b.py", tokens=20)
        room.settle()
        choices = [step.choice for step in first.steps[1:] if step.choice]
        assert any(choice.queue == 1 and choice.nodes < bounds_of("auto").nodes for choice in choices)
        assert first.tokens == alone(CODE, HOLE, 20)
        assert second.tokens == alone(CODE, HOLE + 4, 20)


class TestShowing:
    @pytest.mark.parametrize("cursor", [HOLE, HOLE + 10, len(CODE), 30, 60])
    def test_what_the_policy_lets_pass_is_shown_and_why_it_ended_is_said(self, cursor: int) -> None:
        room = Room()
        done = (answer := room.ask(CODE, cursor, tokens=24, policy=True)).done_after(room)
        assert answer.done_text == done.text
        assert done.finish in {"stop", "length", "filtered"}
        assert (done.text == "") == (done.finish == "filtered")
        assert done.reason
        following = Policy.begin(CODE, cursor, "python").take(done.text, final=True)
        assert following.text == done.text, "what the policy let pass, it lets pass again"

    def test_what_is_not_sure_enough_is_not_shown(self) -> None:
        unsure = Settings(completion=Completion(min_confidence=0.99))
        room = Room()
        done = room.ask(CODE, HOLE, policy=True, settings=unsure).done_after(room)
        assert (done.text, done.finish) == ("", "filtered")
        assert 0 < done.confidence < 0.99


class TestWatching:
    def test_every_step_and_end_is_seen_until_one_leaves(self) -> None:
        room = Room()
        seen: list[protocol.FeedEvent] = []
        leave = room.scheduler.observe(seen.append)
        answer = room.ask(CODE, HOLE)
        room.settle()
        steps = [event for event in seen if isinstance(event, protocol.Observed)]
        assert [event.step for event in steps] == answer.steps
        assert (steps[0].before, steps[0].after) == (CODE[:HOLE], CODE[HOLE:])
        assert not any(event.before for event in steps[1:])
        assert isinstance(seen[-1], protocol.Settled)
        assert seen[-1].outcome == answer.done.finish
        room.scheduler.feedback(protocol.Feedback(request=answer.id, outcome="accepted", characters=3))
        assert (seen[-1].outcome, seen[-1].characters) == ("accepted", 3)
        count = len(seen)
        leave()
        room.ask(CODE, HOLE + 1).done_after(room)
        assert len(seen) == count


def test_with_a_thread_of_its_own_requests_end_by_themselves() -> None:
    """The same room as the daemon runs it: many callers' threads, one engine."""
    scheduler = Scheduler(host=tiny_host())
    ended = threading.Semaphore(0)
    answers: list[Answer] = []

    def caller(number: int) -> None:
        for size in range(5):
            answer = Answer()
            answers.append(answer)

            def deliver(event: protocol.CompletionEvent, answer: Answer = answer) -> None:
                answer(event)
                if answer.ended:
                    ended.release()

            place = Text(f"{number}.py", None, CODE, HOLE + size, f"c{number}")
            request = protocol.Complete(options=protocol.Options(max_tokens=6, policy=False))
            scheduler.submit(request, place, deliver)

    threads = [threading.Thread(target=caller, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for _ in range(20):
        assert ended.acquire(timeout=60)
    scheduler.close(drain=True, timeout=5)
    assert not scheduler._thread.is_alive()  # type: ignore[union-attr]
    assert sum(answer.done.finish in {"length", "stop"} for answer in answers) >= 4
