"""Whose turn it is: superseding, cancelling, sharing, bounds, deadlines; on a tiny model, without a thread."""

from typing import Any

import pytest

from assistant import protocol
from assistant.config import Settings
from assistant.config.declaration import Daemon
from assistant.errors import BusyError
from tests.support.rooms import CODE, Answer, Room, alone

HOLE = CODE.index("    return self")


def test_a_completion_is_plain_decodings_step_by_step() -> None:
    room = Room()
    answer = room.ask(CODE, HOLE, tokens=16)
    room.settle()
    assert answer.tokens == answer.done.tokens == alone(CODE, HOLE, 16)
    assert "".join(step.text for step in answer.steps) == answer.done.text
    assert answer.done.finish in {"length", "stop"}
    assert [type(event) for event in answer.events[:2]] == [protocol.Begun, protocol.Progress]
    assert answer.steps[0].prompt_tokens == answer.done.prompt_tokens > 0


def test_documents_share_the_engine_and_none_changes_anothers_tokens() -> None:
    room = Room()
    cursors = [HOLE, HOLE + 4, len(CODE), 5, 12]
    answers = [room.ask(CODE, cursor, path=f"{cursor}.py", tokens=12) for cursor in cursors]
    room.settle()
    for answer, cursor in zip(answers, cursors, strict=True):
        assert answer.tokens == alone(CODE, cursor, 12)


def test_no_document_waits_for_more_than_a_turn_of_each_other() -> None:
    room = Room()
    answers = [room.ask(CODE, HOLE, path=f"{number}.py", tokens=40, method="plain") for number in range(4)]
    room.turns(4 * 10)
    counts = [len(answer.steps) for answer in answers]
    assert min(counts) > 0
    assert max(counts) - min(counts) <= 1


def test_one_that_types_quickly_does_not_starve_the_others() -> None:
    room = Room()
    other = room.ask(CODE, HOLE, path="other.py", tokens=30, method="plain")
    for size in range(60):
        room.ask(CODE + "x" * size, path="typed.py")
        room.turns(2)
    assert other.ended


class TestSuperseding:
    def test_the_newest_request_of_a_document_wins(self) -> None:
        room = Room()
        first = room.ask(CODE, HOLE, tokens=40)
        room.turns(6)
        assert first.steps
        second = room.ask(CODE, HOLE + 1, tokens=6)
        before = len(first.steps)
        room.settle()
        assert first.done.finish == "superseded"
        assert len(first.steps) == before
        assert second.tokens == alone(CODE, HOLE + 1, 6)

    def test_one_that_has_not_begun_costs_nothing(self) -> None:
        room = Room()
        answers = [room.ask(CODE[:HOLE] + "x" * size, tokens=4) for size in range(200)]
        room.settle()
        assert [answer.done.finish for answer in answers[:-1]] == ["superseded"] * 199
        assert not any(answer.steps for answer in answers[:-1])
        assert answers[-1].tokens == alone(CODE[:HOLE] + "x" * 199, HOLE + 199, 4)
        assert room.scheduler.status().superseded_steps == 0

    def test_other_documents_and_other_clients_are_left_alone(self) -> None:
        room = Room()
        answers = [
            room.ask(CODE, HOLE, path="a.py", client="c1"),
            room.ask(CODE, HOLE, path="b.py", client="c1"),
            room.ask(CODE, HOLE, path="a.py", client="c2"),
            room.ask(CODE, HOLE, path="a.py", client=""),
            room.ask(CODE, HOLE, path="a.py", client=""),
        ]
        room.settle()
        assert {answer.done.finish for answer in answers} <= {"length", "stop"}

    def test_a_long_prompt_is_given_up_between_two_chunks(self) -> None:
        room = Room(chunk=8)
        first = room.ask(CODE * 8, len(CODE) * 8, tokens=4)
        room.turns(3)
        assert not first.steps
        second = room.ask("x = 1\n", tokens=4)
        room.settle()
        assert first.done.finish == "superseded"
        assert not first.steps
        assert second.tokens == alone("x = 1\n", 6, 4)

    def test_a_step_under_way_is_the_last(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """The request comes while the engine computes: what it computes then is counted, and nothing follows it."""
        room = Room()
        first = room.ask(CODE, HOLE, tokens=40)
        room.turns(4)
        engine, asked = room.host.engine, list[Answer]()
        assert engine is not None
        assert not first.ended
        forward = engine.target.forward

        def meanwhile(*arguments: Any, **options: Any) -> Any:
            if not asked:
                asked.append(room.ask(CODE, HOLE + 2, tokens=3))
            return forward(*arguments, **options)

        monkeypatch.setattr(engine.target, "forward", meanwhile)
        room.settle()
        assert first.done.finish == "superseded"
        assert asked[0].tokens == alone(CODE, HOLE + 2, 3)
        assert room.scheduler.status().superseded_steps == 1


class TestCancelling:
    def test_a_running_one_ends_with_what_there_is(self) -> None:
        room = Room()
        answer = room.ask(CODE, HOLE, tokens=40)
        room.settle(lambda: len(answer.steps) == 2)
        room.scheduler.cancel(answer.id)
        before = len(answer.steps)
        room.settle()
        assert answer.done.finish == "cancelled"
        assert answer.done.text == "".join(step.text for step in answer.steps)
        assert len(answer.steps) == before

    def test_a_waiting_one_ends_at_once(self) -> None:
        room = Room()
        answer = room.ask(CODE, HOLE)
        room.scheduler.cancel(answer.id)
        assert answer.done.finish == "cancelled"
        room.scheduler.cancel(answer.id)
        room.scheduler.cancel("r999")

    def test_a_document_that_went_away_takes_its_requests_and_rows_along(self) -> None:
        room = Room()
        kept = room.ask(CODE, HOLE, path="kept.py")
        gone = room.ask(CODE, HOLE, path="gone.py", tokens=40)
        room.turns(8)
        both = room.scheduler.status().cache_bytes
        room.scheduler.forget("c1", "gone.py")
        room.settle()
        assert gone.done.finish == "cancelled"
        assert kept.done.finish in {"length", "stop"}
        assert 0 < room.scheduler.status().cache_bytes < both
        room.scheduler.forget("c1", None)
        room.settle()
        assert room.scheduler.status().cache_bytes == 0


class TestBounds:
    def test_a_full_queue_refuses_and_takes_up_again(self) -> None:
        room = Room(settings=Settings(daemon=Daemon(max_queue=3)))
        answers = [room.ask(CODE, HOLE, path=f"{number}.py") for number in range(3)]
        with pytest.raises(BusyError, match="3 requests"):
            room.ask(CODE, HOLE, path="one-too-many.py")
        again = room.ask(CODE, HOLE + 1, path="0.py")
        room.settle()
        assert answers[0].done.finish == "superseded"
        assert again.ended
        assert room.ask(CODE, HOLE, path="fits.py").done_after(room).tokens

    def test_a_deadline_ends_with_what_there_is(self) -> None:
        room = Room()
        answer = room.ask(CODE, HOLE, tokens=60, deadline_ms=500.0)
        room.settle(lambda: len(answer.steps) == 2)
        room.clock.now = 0.6
        before = len(answer.tokens)
        room.settle()
        assert answer.done.finish == "deadline"
        assert len(answer.tokens) == before > 0
        assert answer.tokens == alone(CODE, HOLE, 60)[:before]

    def test_a_deadline_that_passed_before_the_first_turn_brings_nothing(self) -> None:
        room = Room()
        answer = room.ask(CODE, HOLE, deadline_ms=1.0)
        room.clock.now = 1.0
        room.settle()
        assert (answer.done.finish, answer.done.text) == ("deadline", "")

    def test_closing_ends_everything_and_takes_nothing_more(self) -> None:
        room = Room()
        running, waiting = room.ask(CODE, HOLE, tokens=40), room.ask(CODE, HOLE, path="b.py")
        room.turns(4)
        room.scheduler.close(drain=False, timeout=1)
        room.settle()
        assert running.done.finish == waiting.done.finish == "cancelled"
        with pytest.raises(BusyError):
            room.ask(CODE, HOLE)


class TestPrefetch:
    def test_it_waits_for_whoever_waits(self) -> None:
        room = Room()
        ahead = room.ask(CODE, HOLE, path="ahead.py", tokens=30, priority="prefetch")
        room.turns(5)
        begun = len(ahead.steps)
        assert begun
        urgent = room.ask(CODE, HOLE, path="urgent.py", tokens=10)
        room.settle(lambda: urgent.ended)
        assert len(ahead.steps) == begun
        room.settle()
        assert ahead.tokens == alone(CODE, HOLE, 30)

    def test_it_gives_way_to_its_documents_own_request_but_never_the_other_way_round(self) -> None:
        room = Room()
        ahead = room.ask(CODE, HOLE, priority="prefetch")
        urgent = room.ask(CODE, HOLE + 1)
        later = room.ask(CODE, HOLE + 2, priority="prefetch")
        room.settle()
        assert ahead.done.finish == "superseded"
        assert {urgent.done.finish, later.done.finish} <= {"length", "stop"}
