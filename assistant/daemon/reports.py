"""What leaves the engine room: events to whoever asked, the same to whoever watches, and the counts of it."""

import threading
from collections import OrderedDict
from collections.abc import Callable

from assistant import protocol
from assistant.daemon.engine_room import Observe
from assistant.daemon.jobs import Job
from assistant.daemon.run import Run, Written
from assistant.daemon.typed import Rest

_REMEMBERED = 512
"""completions that feedback may still speak of"""
_AROUND = 4000
"""characters of the text around the cursor that watchers are shown"""


class Reports:
    """Called under no lock but its own, from the engine's thread and from those that submit."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self.completions = 0
        self._clock = clock
        self._lock = threading.Lock()
        self._observers: list[Observe] = []
        self._ended: OrderedDict[str, tuple[str, str]] = OrderedDict()
        """request -> client's name, document: no texts, which would pile up"""

    def observe(self, deliver: Observe) -> Callable[[], None]:
        """Tell `deliver` everything from now on; returns what ends that."""
        with self._lock:
            self._observers = [*self._observers, deliver]

        def leave() -> None:
            with self._lock:
                self._observers = [other for other in self._observers if other is not deliver]

        return leave

    def step(self, job: Job, event: protocol.Step, method: str) -> None:
        """A step of a job."""
        job.deliver(event)
        if not self._observers:
            return
        text, cursor = job.text.text, job.text.cursor
        first = event.index == 0
        self._tell(
            protocol.Observed(
                client=job.text.client_name,
                document=job.text.path,
                method=method,
                step=event,
                before=text[max(0, cursor - _AROUND) : cursor] if first else "",
                after=text[cursor : cursor + _AROUND] if first else "",
            )
        )

    def done(self, job: Job, run: Run | None) -> None:
        """A job came to an end, by itself or because it was withdrawn."""
        written = Written() if run is None else run.written
        finish = job.withdrawn or written.finish or "stop"
        job.deliver(
            protocol.Done(
                request=job.id,
                text=written.text,
                finish=finish,
                reason=written.reason,
                tokens=tuple(written.tokens),
                confidence=written.confidence,
                prompt_tokens=written.prompt_tokens,
                cached_tokens=written.reused,
                queue_ms=self._queue_ms(job),
                prefill_ms=written.prefill_ms,
                decode_ms=written.decode_ms,
            )
        )
        self._settle(job, finish, len(written.text))

    def typed(self, job: Job, rest: Rest) -> None:
        """A job that an earlier suggestion answers."""
        step = protocol.Step(request=job.id, index=0, text=rest.text, tokens=(), texts=(), origins=(), forwards=0)
        job.deliver(step)
        job.deliver(
            protocol.Done(
                request=job.id,
                text=rest.text,
                finish=rest.finish,
                reason=rest.reason,
                source="typed",
                confidence=rest.confidence,
            )
        )
        self._settle(job, rest.finish, len(rest.text))

    def failed(self, job: Job, code: str, message: str) -> None:
        """A job could not be done."""
        job.deliver(protocol.Failed(request=job.id, code=code, message=message))
        self._settle(job, "failed", 0)

    def feedback(self, feedback: protocol.Feedback) -> None:
        """Tell watchers what became of a suggestion, if its request is still known."""
        with self._lock:
            known = self._ended.get(feedback.request)
        if known is not None:
            client, document = known
            self._tell(
                protocol.Settled(
                    client=client,
                    document=document,
                    request=feedback.request,
                    outcome=feedback.outcome,
                    characters=feedback.characters,
                )
            )

    def _settle(self, job: Job, outcome: str, characters: int) -> None:
        client, document = job.text.client_name, job.text.path
        with self._lock:
            self.completions += job.interactive
            self._ended[job.id] = (client, document)
            while len(self._ended) > _REMEMBERED:
                self._ended.popitem(last=False)
        self._tell(
            protocol.Settled(
                client=client,
                document=document,
                request=job.id,
                outcome=outcome,
                characters=characters,
                queue_ms=self._queue_ms(job),
                total_ms=(self._clock() - job.arrived) * 1e3,
            )
        )

    def _queue_ms(self, job: Job) -> float:
        return ((job.begun if job.begun is not None else self._clock()) - job.arrived) * 1e3

    def _tell(self, event: protocol.FeedEvent) -> None:
        for deliver in self._observers:
            deliver(event)
