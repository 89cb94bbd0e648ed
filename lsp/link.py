"""The connection to the daemon: made when first needed, made again when lost, never hammered at."""

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any

from assistant import protocol
from assistant.errors import DaemonError, EagleAssistError, RefusedError
from lsp.backend import Backend, Connect

PATIENCE_S = 3.0
"""a request waits so long for a connection that is being made"""
_FIRST_RETRY_S = 1.0
_LAST_RETRY_S = 30.0


class NotYetError(Exception):
    """The daemon is being started, and it takes longer than a request waits."""


class Link:
    """One connection at a time.

    Args:
        connect: makes one.
        name: what the editor is called.
        broken: told the sentence of every failure to connect.
        made: runs for every connection before it is used (settings, loading).
    """

    def __init__(
        self,
        connect: Connect,
        name: str,
        broken: Callable[[str], None],
        made: Callable[[Backend], Awaitable[None]],
    ) -> None:
        self._connect = connect
        self._name = name
        self._broken = broken
        self._made = made
        self._folders: Sequence[str] = ()
        self._backend: Backend | None = None
        self._identity = ""
        self._making: asyncio.Task[Backend] | None = None
        self._error: EagleAssistError | None = None
        self._retry_at = 0.0
        self._retry_s = _FIRST_RETRY_S
        self._errands: set[asyncio.Task[None]] = set()

    @property
    def connected(self) -> bool:
        """Whether there is a connection, as far as is known."""
        return self._backend is not None

    async def backend(self, *, eager: bool = False) -> Backend:
        """The connection, made where there is none; `eager` tries again although it failed a moment ago.

        Raises:
            EagleAssistError: it cannot be made, or could not a moment ago.
            NotYetError: it is still being made.
        """
        if self._backend is not None:
            if self._backend.welcome.client != self._identity:  # another daemon, which knows nothing of this client
                self._identity = self._backend.welcome.client
                await self._made(self._backend)
            return self._backend
        if self._making is None:
            if self._error is not None and not eager and time.monotonic() < self._retry_at:
                raise self._error
            self._making = asyncio.create_task(self._make())
        try:
            return await asyncio.wait_for(asyncio.shield(self._making), PATIENCE_S)
        except TimeoutError as error:
            raise NotYetError from error

    def lost(self, error: DaemonError) -> None:
        """A request failed: the next one connects anew. A refusal is an answer, so the connection stays."""
        if not isinstance(error, RefusedError):
            self._backend = None

    def errand(self, work: Callable[[Backend], Coroutine[Any, Any, object]]) -> None:
        """Do something that nobody waits for, if there is a connection; where it fails it is left."""
        backend = self._backend
        if backend is None:
            return

        async def run() -> None:
            with contextlib.suppress(EagleAssistError):
                await work(backend)

        task = asyncio.create_task(run())
        self._errands.add(task)
        task.add_done_callback(self._errands.discard)

    def tell(self, feedback: protocol.Feedback) -> None:
        """Tell the daemon what became of a suggestion."""
        self.errand(lambda backend: backend.feedback(feedback))

    def move(self, folders: Sequence[str]) -> None:
        """The workspace has other roots: a connection says so when it is made, so it is made anew."""
        if tuple(folders) != tuple(self._folders):
            self._folders = tuple(folders)
            self.errand(lambda backend: backend.close())
            self._backend = None

    async def close(self) -> None:
        """Take leave of the daemon."""
        if self._making is not None:
            self._making.cancel()
        for errand in list(self._errands):
            await errand
        backend, self._backend = self._backend, None
        if backend is not None:
            with contextlib.suppress(EagleAssistError):
                await backend.close()

    async def _make(self) -> Backend:
        try:
            backend = await self._connect(self._name, self._folders)
            await self._made(backend)
        except EagleAssistError as error:
            self._error = error
            self._retry_at = time.monotonic() + self._retry_s
            self._retry_s = min(2 * self._retry_s, _LAST_RETRY_S)
            self._broken(str(error))
            raise
        finally:
            self._making = None
        self._backend, self._identity = backend, backend.welcome.client
        self._error, self._retry_s = None, _FIRST_RETRY_S
        return backend
