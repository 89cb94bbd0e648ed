"""The engine room: one thread that makes every completion, a step of this document and a step of that.

Callers' threads only put jobs on the board and mark those that are withdrawn. The engine's thread takes the job whose
turn it is, advances it by one chunk of its prompt or one step, delivers what came of it, and looks again; so a request
that is superseded or cancelled costs at most the step that was under way.
"""

import contextlib
import itertools
import threading
from collections.abc import Callable, Hashable
from pathlib import Path
from time import perf_counter
from typing import Any

from assistant import protocol
from assistant.config import Settings
from assistant.daemon.desk import Desk
from assistant.daemon.engine_room import Deliver, Observe, RoomStatus, Text
from assistant.daemon.follow import after_acceptance
from assistant.daemon.host import Choice, Host
from assistant.daemon.jobs import Board, Job
from assistant.daemon.library import Opened
from assistant.daemon.reports import Reports
from assistant.daemon.run import LookAround, Run
from assistant.daemon.shelf import Shelf
from assistant.daemon.turns import Turns
from assistant.daemon.typed import Rest, TypedCache
from assistant.daemon.wanted import answer_key, settings_of
from assistant.daemon.workshop import Workshop, choice_of
from assistant.engine.methods import resolve_method
from assistant.errors import BusyError

ACTIVE = 8
"""interactive completions that share the engine; each holds a session"""
CHUNK = 32
"""rows of a prompt between two looks at the board"""
_KEPT = frozenset({"stop", "length", "filtered"})
"""finishes after which a suggestion is what the model had to say"""


class Scheduler:
    """An `EngineRoom`.

    Args:
        settings: of the process; None: the defaults.
        host: what it computes on; None: the model that the settings name.
        look_around: finds what is read of other files; asked by the engine's thread, so it must not wait.
        opened: path and text of the documents that are open, the one edited last at the end.
        clock: seconds, monotonic.
        chunk: rows of a prompt between two looks at the board.
        learned: where completions are kept to learn from; None: the user's own folder.
        threaded: whether it has its own thread; otherwise whoever made it calls `turn`.
    """

    def __init__(
        self,
        settings: Settings | None = None,
        *,
        host: Host | None = None,
        look_around: LookAround = lambda text, tokenizer: None,  # noqa: ARG005
        opened: Opened = lambda: (),
        clock: Callable[[], float] = perf_counter,
        chunk: int = CHUNK,
        learned: Path | None = None,
        threaded: bool = True,
    ) -> None:
        self._settings = settings or Settings()
        self._host = host or Host(choice_of(self._settings))
        self._workshop = Workshop(self._host, look_around, opened, chunk, self._settings, learned)
        self._clock = clock
        self._reports = Reports(clock)
        self._typed = TypedCache()
        self._shelf = Shelf()
        board = Board(self._settings.daemon.max_queue, ACTIVE)
        self._desk = Desk(board, self._workshop.rehost, self._workshop.unload)
        self._turns = Turns(
            self._desk, self._workshop, self._reports, self._keep_answer, lambda: self._settings, self._clock
        )
        self._numbers = itertools.count(1)
        self._thread = threading.Thread(target=self._turns.work, name="engine", daemon=True) if threaded else None
        if self._thread is not None:
            self._thread.start()

    def submit(self, request: protocol.Complete, text: Text, deliver: Deliver) -> str:
        """See `EngineRoom.submit`. What an earlier suggestion answers is delivered before this returns."""
        with self._desk.lock:
            if self._desk.closing:
                raise BusyError("the daemon is ending; ask again, and another one is started.")
            job = Job(f"r{next(self._numbers)}", request, text, deliver, self._clock())
            key = self._answer_key(job)
            rest = self._typed.find(text.path, text.text, text.cursor, key) if request.typed else None
            board = self._desk.board
            removed = board.add(job) if rest is None else board.give_way(job, prefetch=False)
            deliver(self._begun(job))
            self._desk.lock.notify_all()
            for old in removed:
                self._reports.done(old, None)
            if rest is not None:
                self._reports.typed(job, rest)
        return job.id

    def cancel(self, request: str) -> None:
        """See `EngineRoom.cancel`."""
        self._withdraw(lambda job: job.id == request)

    def feedback(self, feedback: protocol.Feedback) -> None:
        """See `EngineRoom.feedback`."""
        self._reports.feedback(feedback)

    def observe(self, deliver: Observe) -> Callable[[], None]:
        """See `EngineRoom.observe`."""
        return self._reports.observe(deliver)

    def forget(self, client: str, path: str | None) -> None:
        """See `EngineRoom.forget`."""
        self._withdraw(lambda job: job.text.client == client and path in {None, job.text.path})
        self._desk.errand(lambda: self._workshop.forget(client, path))

    def configure(self, settings: Any) -> None:
        """See `EngineRoom.configure`."""
        with self._desk.lock:
            changed = choice_of(settings) != choice_of(self._settings)
            self._settings = settings
            self._desk.board.limit = settings.daemon.max_queue
        if changed:
            self._desk.host(choice_of(settings))
        self._desk.errand(lambda: self._workshop.configure(settings))

    def status(self) -> RoomStatus:
        """See `EngineRoom.status`."""
        host, engine = self._host, self._host.engine
        spec = None if engine is None else engine.target.spec
        method, names = self._settings.model.method, self._shelf.names
        with self._desk.lock:
            queue = self._desk.board.queued
        return RoomStatus(
            model=host.choice.name,
            head=host.choice.head if engine is None else engine.head_name,
            device=host.choice.device if spec is None else str(spec.device),
            precision=host.choice.precision if spec is None else spec.precision,
            method=resolve_method(method),
            loaded=engine is not None,
            state=self._state(),
            message=host.trouble,
            queue=queue,
            cache_bytes=self._workshop.cache_bytes,
            completions=self._reports.completions,
            steps=self._turns.steps,
            superseded_steps=self._turns.superseded_steps,
            plain_ms=0.0 if engine is None else engine.pace.plain_ms,
            draft=host.choice.draft_name,
            device_memory_bytes=host.device_memory_bytes,
            models=names.models,
            heads=names.heads,
        )

    def load(self, model: str | None = None, head: str | None = None) -> None:
        """See `EngineRoom.load`."""
        now = self._host.choice
        if model is not None or head is not None:
            self._desk.host(Choice(model or now.name, head, now.draft, now.precision, now.device))
        self._desk.keep_loaded()
        self._desk.errand(self._turns.load)

    def unload(self) -> None:
        """See `EngineRoom.unload`."""
        self._desk.unload()

    def trim(self) -> None:
        """See `EngineRoom.trim`."""
        self._desk.errand(self._workshop.trim)

    def close(self, *, drain: bool, timeout: float) -> None:
        """See `EngineRoom.close`."""
        desk = self._desk
        with desk.lock:
            desk.closing = True
            desk.lock.notify_all()
            self._withdraw(lambda job: not (drain and job.interactive))
            if drain and self._thread is not None:
                desk.lock.wait_for(lambda: not len(desk.board), timeout)
        self._withdraw(lambda job: True)  # noqa: ARG005
        if self._thread is not None:
            self._thread.join(max(1.0, timeout))

    def turn(self) -> bool:
        """Without a thread: do one thing; False where there is nothing to do."""
        return self._turns.turn()

    def _withdraw(self, chosen: Callable[[Job], bool]) -> None:
        with self._desk.lock:
            for job in self._desk.board.withdraw("cancelled", chosen):
                self._reports.done(job, None)
            self._desk.lock.notify_all()

    def _keep_answer(self, job: Job, run: Run) -> None:
        """A completion ended by itself: what it says holds while one types along, and what follows may be prepared."""
        written = run.written
        if written.finish not in _KEPT:
            return
        rest = Rest(written.text, written.finish, written.reason, written.confidence)
        with self._desk.lock:
            self._typed.remember(job.text.path, job.text.text, job.text.cursor, self._answer_key(job), rest)
        wanted = self._settings.daemon.prefetch and job.request.version is not None
        if wanted and job.interactive and written.text:
            self._prefetch(job, written.text)

    def _prefetch(self, job: Job, suggestion: str) -> None:
        """Prepare the state after acceptance, while nobody waits for anything."""
        request, text = after_acceptance(job.request, job.text, suggestion)
        key = answer_key(request, text, self._host.choice)
        with self._desk.lock, contextlib.suppress(BusyError):
            if self._typed.find(text.path, text.text, text.cursor, key) is None:
                self.submit(request, text, lambda event: None)  # noqa: ARG005

    def _begun(self, job: Job) -> protocol.Begun:
        method = resolve_method(job.request.options.method or settings_of(job.text).model.method)
        queue = self._desk.board.waiting(job)
        return protocol.Begun(request=job.id, model=self._host.choice.name, method=method, queue=queue)

    def _answer_key(self, job: Job) -> Hashable:
        return answer_key(job.request, job.text, self._host.choice)

    def _state(self) -> str:
        if self._desk.closing:
            return "draining"
        if self._host.loading:
            return "loading"
        if self._host.trouble:
            return "degraded"
        return "unloaded" if self._host.engine is None else "ready"
