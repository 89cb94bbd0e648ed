"""The engine's thread: one turn after another, each a chunk of one job's prompt or one step of its decoding."""

import logging
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

import torch

from assistant import faults, protocol
from assistant.daemon.budget import ration
from assistant.daemon.desk import Desk
from assistant.daemon.follow import typed_along
from assistant.daemon.jobs import Job
from assistant.daemon.reports import Reports
from assistant.daemon.run import Run
from assistant.daemon.troubles import OUT_OF_MEMORY, code_of
from assistant.daemon.workshop import Workshop
from assistant.engine.tree import TreeShape
from assistant.errors import UserError

if TYPE_CHECKING:
    from assistant.config import Settings

_SWITCH_S = 0.0005
"""this thread runs Python between its forwards, and a server's thread with a short answer would wait 5 ms for it"""
_PROGRESS_S = 0.1
"""between two reports of how far a model is loaded"""
_log = logging.getLogger(__name__)


class Turns:
    """Advances jobs. Whatever goes wrong in a turn ends that job alone.

    Args:
        desk: where jobs come from.
        workshop: what they are done with.
        reports: where their events go.
        finished: called with a job that ended by itself, before its run is closed.
        settings: of the process, now.
        clock: seconds, monotonic.
    """

    def __init__(
        self,
        desk: Desk,
        workshop: Workshop,
        reports: Reports,
        finished: Callable[[Job, Run], None],
        settings: "Callable[[], Settings]",
        clock: Callable[[], float],
    ) -> None:
        self.steps = 0
        self.superseded_steps = 0
        self._desk = desk
        self._workshop = workshop
        self._reports = reports
        self._finished = finished
        self._settings = settings
        self._clock = clock
        self._last_progress = 0.0

    def work(self) -> None:
        """Take turns until the room is closed."""
        sys.setswitchinterval(_SWITCH_S)
        while True:
            try:
                if self.turn() or self._workshop.sample():
                    continue
            except Exception as error:  # noqa: BLE001 - the one thread that everybody waits for goes on
                _log.error("%s", faults.record(error))
            if not self._desk.wait():
                self._workshop.close()
                return

    def turn(self) -> bool:
        """Run an errand, or one turn of one job; False where there is nothing to do."""
        found = self._desk.take(self._clock())
        if isinstance(found, Job):
            self._advance(found)
        elif found is not None:
            found()
        return found is not None

    def load(self) -> None:
        """Load the model, where it is not loaded."""
        try:
            self._workshop.ready(self._say_progress)
        except UserError as error:
            _log.warning("the model cannot be loaded: %s", error)

    def _advance(self, job: Job) -> None:
        try:
            if job.withdrawn:
                if self._hand_over(job) is None:
                    self._end(job)
            elif job.run is None:
                self._begin(job)
            else:
                self._step(job, job.run)
        except torch.cuda.OutOfMemoryError:
            self._out_of_memory(job)
        except UserError as error:
            self._fail(job, code_of(error), str(error))
        except Exception as error:  # noqa: BLE001 - translated once, here
            _log.error("%s", faults.record(error))
            self._fail(job, "internal", "the completion failed through a fault of the daemon: see `eagle-assist logs`.")

    def _begin(self, job: Job) -> None:
        """Open the job's run and take its first turn, unless it was withdrawn while the model was loaded."""
        open_run = self._workshop.begin(job, self._ration, self._say_progress)
        if not (job.withdrawn or job.overdue(self._clock())):
            job.run = open_run()
            self._step(job, job.run)

    def _step(self, job: Job, run: Run) -> None:
        taken = run.advance()
        if taken is None:
            return
        result, event = taken
        self.steps += result.forwards
        self._reports.step(job, event, run.method)
        if run.written.finish is not None:
            self._end(self._hand_over(job) or job)

    def _hand_over(self, job: Job) -> Job | None:
        """Let the request that superseded this one have its run, where its user typed what was being written anyway."""
        run = job.run
        if run is None or job.withdrawn != "superseded":
            return None
        with self._desk.lock:
            heir = self._desk.board.heir(job)
            typed = None if heir is None else typed_along(job, heir, run.written.text)
            if heir is None or typed is None:
                return None
            heir.run, heir.taken, heir.begun, job.run = run, True, self._clock(), None
        self._desk.remove(job)
        self._reports.done(job, run)
        step = run.hand_over(heir, typed)
        if step is not None:
            self._reports.step(heir, step, run.method)
        return heir

    def _end(self, job: Job) -> None:
        """Give the session back and deliver the last event."""
        run = job.run
        if run is not None:
            self.superseded_steps += run.late_steps
            if run.written.finish is None and job.withdrawn == "deadline":
                self._last_words(job, run)
            if run.written.finish is not None and not job.withdrawn:
                self._workshop.learn(job, run)
                self._finished(job, run)
            self._workshop.end(run)
        self._desk.remove(job)
        self._reports.done(job, run)

    def _last_words(self, job: Job, run: Run) -> None:
        """What the text policy held back is delivered; nothing is computed for it."""
        taken = run.advance()
        if taken is not None:
            self._reports.step(job, taken[1], run.method)

    def _fail(self, job: Job, code: str, message: str) -> None:
        if job.run is not None:
            self._workshop.end(job.run, sound=False)
        self._desk.remove(job)
        self._reports.failed(job, code, message)

    def _out_of_memory(self, job: Job) -> None:
        """Free the caches and try again; if that was not enough, go on on the CPU. What was shown is not begun anew."""
        started = job.run is not None and job.run.written.steps > 0
        if job.run is not None:
            self._workshop.end(job.run, sound=False)
            job.run = None
        self._workshop.trim()
        if job.retried and self._workshop.to_cpu():
            self._move_the_others(job)
        elif job.retried or started:
            started = True
        job.retried = True
        if started:
            self._fail(job, *OUT_OF_MEMORY)

    def _move_the_others(self, job: Job) -> None:
        """Runs hold the engine that was given up: those that showed something fail, the others begin anew."""
        for other in self._desk.board:
            run = other.run
            if other is job or run is None:
                continue
            if run.written.steps:
                self._fail(other, *OUT_OF_MEMORY)
            else:
                run.close()
                other.run = None

    def _ration(self, job: Job, shape: TreeShape) -> tuple[TreeShape, protocol.Choice]:
        with self._desk.lock:
            queue = self._desk.board.waiting(job)
        return ration(shape, queue, adaptive=self._settings().daemon.adaptive_load)

    def _say_progress(self, stage: str, done: int, total: int) -> None:
        """Tell everyone who waits; end those that need not wait any longer."""
        now = self._clock()
        if done < total and now - self._last_progress < _PROGRESS_S:
            return
        self._last_progress = now
        with self._desk.lock:
            jobs = list(self._desk.board)
        for job in jobs:
            if job.run is None and (job.withdrawn or job.overdue(now)):
                job.withdrawn = job.withdrawn or "deadline"
                self._end(job)
            else:
                job.deliver(protocol.Progress(request=job.id, stage=stage, done=done, total=total))
