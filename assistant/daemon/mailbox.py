"""Events on their way from the engine's thread to one connection: bounded, so that a slow reader costs no memory."""

import asyncio
import threading
from collections import deque
from collections.abc import Callable
from typing import Generic, TypeVar

E = TypeVar("E")


class Mailbox(Generic[E]):
    """A queue that any thread fills and one coroutine empties.

    Args:
        limit: events that wait at most.
        overflow: called once, in the loop's thread, when that is not enough: the mailbox is then empty and takes no
            more. None: the oldest event makes room instead, and is counted.
    """

    def __init__(self, limit: int, overflow: Callable[[], None] | None = None) -> None:
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()
        self._events: deque[E] = deque()
        self._arrived = asyncio.Event()
        self._limit = limit
        self._overflow = overflow
        self.missed = 0
        """events that made room and were not reported yet"""
        self.overflowed = False
        self.closed = False

    def put(self, event: E) -> None:
        """Add an event, from any thread; neither blocks nor raises."""
        if threading.get_ident() == self._thread:  # it is there before the reader looks, and costs no round of the loop
            self._add(event)
            return
        try:
            self._loop.call_soon_threadsafe(self._add, event)
        except RuntimeError:  # the loop has ended, and with it the connection
            self.closed = True

    def close(self) -> None:
        """Wake the reader for the last time; from the loop's own thread."""
        self.closed = True
        self._arrived.set()

    async def get(self, patience_s: float) -> E | None:
        """The next event; None after so long without one, or when the mailbox is closed or has overflowed."""
        if not self._events and not self.closed and not self.overflowed:
            self._arrived.clear()
            try:
                async with asyncio.timeout(patience_s):
                    await self._arrived.wait()
            except TimeoutError:
                return None
        return self.ready()

    def ready(self) -> E | None:
        """The next event if one waits."""
        return self._events.popleft() if self._events and not self.overflowed else None

    def take_missed(self) -> int:
        """How many events were lost since the last call."""
        missed, self.missed = self.missed, 0
        return missed

    def _add(self, event: E) -> None:
        if self.closed or self.overflowed:
            return
        if len(self._events) >= self._limit:
            if self._overflow is not None:
                self.overflowed = True
                self._events.clear()
                self._arrived.set()
                self._overflow()
                return
            self._events.popleft()
            self.missed += 1
        self._events.append(event)
        self._arrived.set()
