"""What callers' threads leave for the engine's thread: jobs, errands, and wishes that wait until nothing runs."""

import threading
from collections import deque
from collections.abc import Callable

from assistant.daemon.host import Choice
from assistant.daemon.jobs import Board, Job

Errand = Callable[[], None]


class Desk:
    """Everything in here is read and changed under `lock` alone; whoever leaves something wakes the engine.

    Args:
        board: the jobs.
        rehost: hosts another model; called when nothing runs.
        unload: frees the model; called when nothing runs or waits.
    """

    def __init__(self, board: Board, rehost: Callable[[Choice], None], unload: Errand) -> None:
        self.lock = threading.Condition(threading.RLock())
        self.board = board
        self.closing = False
        self._rehost = rehost
        self._unload = unload
        self._errands: deque[Errand] = deque()
        self._choice: Choice | None = None
        self._unload_wanted = False

    def errand(self, errand: Errand) -> None:
        """Have something done by the engine's thread, between two turns."""
        with self.lock:
            self._errands.append(errand)
            self.lock.notify_all()

    def host(self, choice: Choice) -> None:
        """Have another model hosted: what runs is finished on the old one, what waits is done on the new one."""
        with self.lock:
            self._choice = choice
            self.lock.notify_all()

    def unload(self) -> None:
        """Have the model freed once nothing runs or waits."""
        with self.lock:
            self._unload_wanted = True
            self.lock.notify_all()

    def keep_loaded(self) -> None:
        """Take `unload` back."""
        with self.lock:
            self._unload_wanted = False

    def take(self, now: float) -> Errand | Job | None:
        """What the engine does next; None: nothing."""
        with self.lock:
            if self._choice is not None and not self.board.running:
                choice, self._choice = self._choice, None
                return lambda: self._rehost(choice)
            if self._errands and self._choice is None:
                return self._errands.popleft()
            if self._unload_wanted and not len(self.board):
                self._unload_wanted = False
                return self._unload
            return self.board.next(now, begin=self._choice is None)

    def remove(self, job: Job) -> None:
        """A job has ended."""
        with self.lock:
            self.board.remove(job)
            self.lock.notify_all()

    def wait(self) -> bool:
        """Sleep until there may be something to do; False where the room is closed and nothing is left."""
        with self.lock:
            if self.closing and not len(self.board):
                return False
            if not (self._errands or self._unload_wanted or self._choice or len(self.board)):
                self.lock.wait()
            return True
