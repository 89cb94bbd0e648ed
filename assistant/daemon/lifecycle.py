"""A daemon's life: one at a time, born on a socket that is its user's alone, draining before it ends."""

import asyncio
import contextlib
import logging
import os
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import uvicorn

from assistant.daemon.access import Access
from assistant.daemon.claim import listening, only_one, published, unpublish
from assistant.daemon.context import Contexts
from assistant.daemon.engine_room import EngineRoom
from assistant.daemon.guard import KEEP_ALIVE_S, GuardedConnection
from assistant.daemon.server import Resolve, Service
from assistant.endpoint import Endpoint

SIGNALS = [signal.SIGTERM, signal.SIGINT, *([signal.SIGHUP] if hasattr(signal, "SIGHUP") else [])]
_WATCH_S = 5.0
_LEAVE_S = 2
"""for connections to close at the very end"""
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Limits:
    """How long a daemon stays and how much it may hold; None is without limit."""

    idle_exit_s: float | None = None
    """without a client's stream or call"""
    idle_unload_s: float | None = None
    """without a completion"""
    memory_bytes: int | None = None
    """resident; above it the caches of idle documents are freed"""
    drain_s: float = 10.0
    """for running completions when it ends"""


class _Server(uvicorn.Server):
    """uvicorn without its signals, and without a clock that ticks ten times a second."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.ended = asyncio.Event()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """The daemon handles them."""
        yield

    async def main_loop(self) -> None:
        """Serve until told to end."""
        await self.on_tick(0)
        await self.ended.wait()


class Daemon:
    """One process that serves.

    Args:
        endpoint: where.
        make_room: called once the place is its own.
        resolve: the settings for a document.
        limits: read again at every look, so that a change of configuration applies.
        contexts: told of every workspace and document.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        make_room: Callable[[], EngineRoom],
        resolve: Resolve,
        limits: Callable[[], Limits] = Limits,
        contexts: Contexts | None = None,
    ) -> None:
        self._contexts = contexts
        self._endpoint = endpoint
        self._make_room = make_room
        self._resolve = resolve
        self._limits = limits
        self._stopping: asyncio.Task[None] | None = None
        self._unloaded_after = 0.0

    def run(self) -> None:
        """Serve until a signal, a client or idleness ends it.

        Raises:
            DaemonRunningError: another daemon has the place.
            StorageError: the place is not the user's alone, or cannot be written to.
        """
        self._endpoint.secure()
        with only_one(self._endpoint, self._limits().drain_s), listening(self._endpoint) as (listener, access):
            asyncio.run(self._serve(listener, access))

    @property
    def connections(self) -> int:
        """Connections that are open."""
        return len(self._server.server_state.connections)

    def stop(self, drain: bool) -> None:  # noqa: FBT001 - called with what a message holds
        """Begin to end, from the loop's own thread; a second call has no effect."""
        if self._stopping is None:
            self._stopping = asyncio.create_task(self._end(drain=drain))

    def stop_from_outside(self, *, drain: bool) -> None:
        """`stop` from another thread; nothing happens to a daemon that has ended."""
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self.stop, drain)

    async def _serve(self, listener: socket.socket, access: Access) -> None:
        self._loop = asyncio.get_running_loop()
        self._room = self._make_room()
        self._service = Service(self._room, str(self._endpoint), self.stop, self._resolve, access, self._contexts)
        self._server = _Server(_config(self._service))
        self._catch_signals()
        watching = asyncio.create_task(self._watch())
        _log.info("serving, pid %d", os.getpid())
        try:
            await self._server.serve(sockets=[listener])
        finally:
            watching.cancel()
            if self._stopping is None:  # an error ended it
                await asyncio.to_thread(self._room.close, drain=False, timeout=0)
        _log.info("ended, pid %d", os.getpid())

    async def _end(self, *, drain: bool) -> None:
        """Turn newcomers away, who may start another daemon meanwhile; let what runs come to its end; close."""
        _log.info("ending%s", ", draining" if drain else "")
        self._service.draining = True
        unpublish(self._endpoint)
        await asyncio.to_thread(self._room.close, drain=drain, timeout=self._limits().drain_s)
        self._service.end_feeds()
        self._server.should_exit = True
        self._server.ended.set()

    def _catch_signals(self) -> None:
        if threading.current_thread() is not threading.main_thread():
            return
        loop = asyncio.get_running_loop()
        for number in SIGNALS:
            try:
                loop.add_signal_handler(number, self._signalled)
            except NotImplementedError:  # Windows
                signal.signal(number, lambda *_: loop.call_soon_threadsafe(self._signalled))

    def _signalled(self) -> None:
        if self._stopping is not None:
            unpublish(self._endpoint)
            os._exit(1)
        self.stop(drain=True)

    async def _watch(self) -> None:
        """Look after idleness, memory and the socket."""
        while True:
            limits = self._limits()
            times = [limit for limit in (limits.idle_exit_s, limits.idle_unload_s) if limit is not None]
            await asyncio.sleep(min([_WATCH_S, *(max(limit / 4, 0.05) for limit in times)]))
            self._look(limits)

    def _look(self, limits: Limits) -> None:
        self._service.forget_the_silent()
        activity = self._service.activity
        if not published(self._endpoint):
            _log.warning("the socket is gone")
            self.stop(drain=True)
        elif limits.idle_exit_s is not None and activity.idle_s > limits.idle_exit_s:
            _log.info("idle for %.0f s", activity.idle_s)
            self.stop(drain=True)
        elif limits.idle_unload_s is not None and activity.since_completion_s > limits.idle_unload_s:
            if self._unloaded_after != activity.last_completion:
                self._room.unload()
            self._unloaded_after = activity.last_completion
        if limits.memory_bytes is not None and self._service.memory_bytes() > limits.memory_bytes:
            self._room.trim()


def _config(service: Service) -> uvicorn.Config:
    for name in ("uvicorn.error", "uvicorn.asgi"):
        # The service answers and records its own faults; what is left are peers that speak no HTTP.
        logging.getLogger(name).setLevel(logging.CRITICAL)
    return uvicorn.Config(
        service.app(),
        http=GuardedConnection,
        ws="none",
        loop="asyncio",
        lifespan="off",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        date_header=False,
        timeout_keep_alive=KEEP_ALIVE_S,
        timeout_graceful_shutdown=_LEAVE_S,
    )
