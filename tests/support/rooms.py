"""An engine room on a tiny model, driven turn by turn, and what its requests got."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from assistant import protocol
from assistant.config import Settings
from assistant.daemon.engine_room import Text
from assistant.daemon.host import Choice, Engine, Host
from assistant.daemon.scheduler import Scheduler
from models.decoder import LeanDecoder
from models.draft_head import DraftHead
from models.hashes import Progress
from tests.support.agreeing import agreeing_head, agreeing_target
from tests.support.prices import COSTS
from tests.support.tiny_tokenizer import tiny_tokenizer

CODE = "import os\n\n\ndef first(self):\n    return self\n\n\ndef second(self):\n    print(self)\n    return first()\n"


@cache
def models(precision: str = "int8") -> tuple[LeanDecoder, DraftHead]:
    """A target over the tiny tokenizer's vocabulary, and a head that is often right."""
    target = agreeing_target(precision, model_type="qwen2", vocab_size=tiny_tokenizer().vocab_size)
    return target, agreeing_head(target)


def tiny_engine(precision: str = "int8") -> Engine:
    """An engine as the host holds it."""
    target, head = models(precision)
    return Engine(target, tiny_tokenizer(), head, lambda: target, COSTS)


def tiny_host(engine: Engine | None = None) -> Host:
    """A host that loads at once."""

    def loader(choice: Choice, progress: Progress) -> Engine:
        del choice
        progress("load", 1, 1)
        return engine or tiny_engine()

    return Host(Choice("tiny"), loader)


@dataclass(slots=True)
class Answer:
    """The events that one request got."""

    events: list[protocol.CompletionEvent] = field(default_factory=list)
    id: str = ""

    def __call__(self, event: protocol.CompletionEvent) -> None:
        assert not self.ended, "nothing comes after the last event"
        self.events.append(event)

    @property
    def ended(self) -> bool:
        return bool(self.events) and isinstance(self.events[-1], protocol.Done | protocol.Failed)

    @property
    def done(self) -> protocol.Done:
        last = self.events[-1]
        assert isinstance(last, protocol.Done), last
        return last

    def done_after(self, room: "Room") -> protocol.Done:
        """Let a room settle until the last event has come."""
        room.settle(lambda: self.ended)
        return self.done

    @property
    def failed(self) -> protocol.Failed:
        last = self.events[-1]
        assert isinstance(last, protocol.Failed), last
        return last

    @property
    def steps(self) -> list[protocol.Step]:
        return [event for event in self.events if isinstance(event, protocol.Step)]

    @property
    def done_text(self) -> str:
        """The text so far."""
        return "".join(step.text for step in self.steps)

    @property
    def tokens(self) -> tuple[int, ...]:
        return tuple(token for step in self.steps for token in step.tokens)


class Clock:
    """Seconds that pass when they are told to."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


class Room:
    """A scheduler without a thread."""

    def __init__(self, host: Host | None = None, *, settings: Settings | None = None, **options: Any) -> None:
        self.clock = Clock()
        self.host = host or tiny_host()
        self.scheduler = Scheduler(settings, host=self.host, clock=self.clock, threaded=False, **options)

    def ask(
        self,
        text: str,
        cursor: int | None = None,
        *,
        path: str = "a.py",
        client: str = "c1",
        tokens: int = 12,
        settings: Settings | None = None,
        **more: Any,
    ) -> Answer:
        """Submit a request."""
        options = {
            name: more.pop(name) for name in ("method", "shape", "temperature", "seed", "policy") if name in more
        }
        asked = protocol.Options(max_tokens=tokens, **{"policy": False, **options})
        request = protocol.Complete(path=path, client=client, options=asked, **more)
        answer = Answer()
        place = Text(path, None, text, len(text) if cursor is None else cursor, client, settings=settings)
        answer.id = self.scheduler.submit(request, place, answer)
        return answer

    def turns(self, count: int) -> None:
        """Take turns."""
        for _ in range(count):
            self.scheduler.turn()

    def settle(self, until: Callable[[], bool] = lambda: False) -> None:
        """Take turns until there is nothing to do."""
        for _ in range(10_000):
            if until() or not self.scheduler.turn():
                return
        raise AssertionError("the room never comes to rest")


@cache
def alone(text: str, cursor: int, tokens: int, method: str = "plain") -> tuple[int, ...]:
    """The tokens of plain decoding for a place, in a room of its own."""
    room = Room()
    answer = room.ask(text, cursor, tokens=tokens, method=method)
    room.settle()
    return answer.tokens
