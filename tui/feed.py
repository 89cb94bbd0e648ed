"""Following the daemon: one reader of its feed, batches at a steady rate, and a new attempt whenever it goes away.

A flood costs neither memory nor frames: at most LIMIT events wait, the reader pauses until they are taken, and batches
are posted one at a time and no more than RATE a second.
"""

import asyncio
from collections.abc import Callable

from textual.message import Message

from assistant.errors import DaemonDiedError, DaemonError, DaemonUnavailableError
from assistant.protocol import FeedEvent
from tui.messages import Arrived, LinkChanged, StatusCame
from tui.source import Source
from tui.state import Link

RATE = 15
LIMIT = 1000
RETRY_S = 1.0
STATUS_S = 1.0

Post = Callable[[Message], object]


class Feed:
    """Reads a source and posts messages until it is cancelled."""

    def __init__(self, source: Source, post: Post, *, retry_s: float = RETRY_S, status_s: float = STATUS_S) -> None:
        self._source = source
        self._post = post
        self._retry_s = retry_s
        self._status_s = status_s
        self._pending: list[FeedEvent] = []
        self._space = asyncio.Event()
        self._space.set()
        self._seen = False
        """whether a daemon was ever there"""

    async def run(self) -> None:
        """Follow the daemon; it never returns."""
        pump = asyncio.create_task(self._pump())
        try:
            while True:
                await self._attempt()
                await asyncio.sleep(self._retry_s)
        finally:
            pump.cancel()

    async def _attempt(self) -> None:
        """Follow one daemon for as long as it lives."""
        try:
            self._post(StatusCame(await self._source.status()))
            self._seen = True
            self._post(LinkChanged(Link.LIVE))
            watch = asyncio.create_task(self._watch_status())
            try:
                await self._read()
            finally:
                watch.cancel()
        except DaemonError as error:
            sentence = "No daemon runs." if isinstance(error, DaemonUnavailableError) else f"{error}"
            self._post(LinkChanged(Link.LOST if self._seen else Link.ABSENT, sentence[:1].upper() + sentence[1:]))

    async def _read(self) -> None:
        async for event in self._source.feed():
            self._pending.append(event)
            if len(self._pending) >= LIMIT:
                self._space.clear()
                await self._space.wait()
        raise DaemonDiedError("the daemon ended.")

    async def _watch_status(self) -> None:
        """Ask again and again; that a daemon went away is the reader's to say."""
        while True:
            await asyncio.sleep(self._status_s)
            try:
                self._post(StatusCame(await self._source.status()))
            except DaemonError:
                return

    async def _pump(self) -> None:
        while True:
            await asyncio.sleep(1 / RATE)
            if not self._pending:
                continue
            batch = Arrived(tuple(self._pending))
            self._pending.clear()
            self._space.set()
            self._post(batch)
            await batch.taken.wait()
