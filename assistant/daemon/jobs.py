"""What was asked and is not answered yet: the bounded queue, who gives way to whom, and whose turn it is.

Plain data under one lock of the scheduler's. A job that the engine has taken is only marked here when it is withdrawn;
the engine ends it at its next look.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from assistant import protocol
from assistant.daemon.engine_room import Deliver, Text
from assistant.errors import BusyError

if TYPE_CHECKING:
    from assistant.daemon.run import Run

Document = tuple[str, str]
"""client and path; a request without a client is a document of its own"""


@dataclass(slots=True, eq=False)
class Job:
    """One request on its way."""

    id: str
    request: protocol.Complete
    text: Text
    deliver: Deliver
    arrived: float
    """seconds by the scheduler's clock"""
    withdrawn: str = ""
    """the finish that ends it early: superseded, cancelled, deadline"""
    taken: bool = False
    """the engine has it"""
    run: "Run | None" = None
    begun: float | None = None
    """when the engine first took it"""
    retried: bool = False

    @property
    def document(self) -> Document:
        """What it completes: at most one request of a document runs."""
        return (self.text.client, self.text.path) if self.text.client else ("", self.id)

    @property
    def interactive(self) -> bool:
        """Whether somebody waits for it."""
        return self.request.priority == "interactive"

    def overdue(self, now: float) -> bool:
        """Whether its deadline has passed."""
        limit = self.request.deadline_ms
        return limit is not None and (now - self.arrived) * 1e3 >= limit


class Board:
    """The live jobs in the order of their arrival.

    Args:
        limit: interactive jobs that may be here at once, and as many prefetches.
        active: of either kind, how many share the engine; the others wait for one of them to end.
    """

    def __init__(self, limit: int, active: int) -> None:
        self.limit = limit
        self.active = active
        self._jobs: dict[str, Job] = {}
        self._turns: dict[Document, int] = {}
        self._clock = 0

    def __len__(self) -> int:
        return len(self._jobs)

    def __iter__(self) -> Iterator[Job]:
        return iter(list(self._jobs.values()))

    def add(self, job: Job) -> list[Job]:
        """Take a job in; those that give way to it and that the engine has not taken are removed and returned.

        The newest interactive request of a document supersedes every other; a prefetch supersedes prefetches alone.

        Raises:
            BusyError: there is no room.
        """
        alike = sum(
            other.interactive == job.interactive and other.document != job.document for other in self._jobs.values()
        )
        if alike >= self.limit:
            raise BusyError(f"{alike} requests wait for the model already; ask again in a moment.")
        removed = self.give_way(job)
        self._jobs[job.id] = job
        return removed

    def give_way(self, job: Job, *, prefetch: bool = True) -> list[Job]:
        """Supersede the document's older jobs, its prefetches included where `prefetch`; returns those removed."""
        return self.withdraw(
            "superseded",
            lambda old: old.document == job.document and (job.interactive if old.interactive else prefetch),
        )

    def withdraw(self, finish: str, chosen: Callable[[Job], bool]) -> list[Job]:
        """Withdraw jobs; those that the engine has not taken are removed and returned."""
        return [job for job in self if chosen(job) and self._withdraw(job, finish)]

    def heir(self, job: Job) -> Job | None:
        """The request of the same document that superseded this one and has not begun."""
        alike = (other for other in self._jobs.values() if other.document == job.document and other.interactive)
        return next((other for other in alike if other.run is None and not other.withdrawn), None)

    def remove(self, job: Job) -> None:
        """A job has ended."""
        self._jobs.pop(job.id, None)
        if not any(other.document == job.document for other in self):
            self._turns.pop(job.document, None)

    @property
    def running(self) -> int:
        """Jobs that the engine has begun."""
        return sum(job.run is not None for job in self._jobs.values())

    @property
    def queued(self) -> int:
        """Jobs that it has not."""
        return len(self._jobs) - self.running

    def waiting(self, job: Job | None = None) -> int:
        """Interactive jobs other than `job` that want the engine."""
        return sum(other is not job and other.interactive and not other.withdrawn for other in self._jobs.values())

    def next(self, now: float, *, begin: bool = True) -> Job | None:
        """Whose turn it is: first whoever only has to be ended, then interactive jobs, then prefetches.

        Among equals it is the document whose last turn is longest ago, so none waits for more than a turn of each.

        Args:
            now: seconds by the scheduler's clock.
            begin: whether a job may be chosen that the engine has not begun.
        """
        ended = next((job for job in self._jobs.values() if job.withdrawn or job.overdue(now)), None)
        if ended is not None:
            ended.withdrawn = ended.withdrawn or "deadline"
            ended.taken = True
            return ended
        jobs = [job for job in self._jobs.values() if begin or job.run is not None]
        alike = [job for job in jobs if job.interactive] or jobs
        running = [job for job in alike if job.run is not None]
        pool = running if len(running) >= self.active else alike
        chosen = min(pool, key=lambda job: self._turns.get(job.document, -1), default=None)
        if chosen is not None:
            self._clock += 1
            self._turns[chosen.document] = self._clock
            chosen.taken = True
            if chosen.begun is None:
                chosen.begun = now
        return chosen

    def _withdraw(self, job: Job, finish: str) -> bool:
        job.withdrawn = job.withdrawn or finish
        if job.taken:
            return False
        self.remove(job)
        return True
