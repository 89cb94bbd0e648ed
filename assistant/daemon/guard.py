"""Connections that cost nothing: of the same user, few, and given up when they stall."""

import asyncio
import os
import socket
import struct
from typing import Any, cast

from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

MAX_CONNECTIONS = 512
HEADERS_S = 10.0
"""to send a request's headers, from the first byte or the connection on"""
STALL_S = 30.0
"""for a reader to take anything of what waits for it"""
LINGER_S = 5.0
"""for the last bytes of a connection that is being closed"""
KEEP_ALIVE_S = 60
"""an idle connection is kept"""


class GuardedConnection(H11Protocol):
    """uvicorn's connection with bounds on what a peer can hold."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Turn away strangers, and everybody when there are too many."""
        self._timers: dict[str, asyncio.TimerHandle] = {}
        super().connection_made(transport)
        if len(self.connections) > MAX_CONNECTIONS or not of_this_user(transport.get_extra_info("socket")):
            transport.abort()
            return
        self._arm("headers", HEADERS_S)

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the clocks."""
        for name in list(self._timers):
            self._disarm(name)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """The clock for headers runs whenever no request is being answered."""
        super().data_received(data)
        if not self._waiting():
            self._disarm("headers")
        elif "headers" not in self._timers:
            self._arm("headers", HEADERS_S)

    def on_response_complete(self) -> None:
        """A connection that is being closed has a while for its last bytes."""
        super().on_response_complete()
        if self.transport.is_closing():
            self._arm("linger", LINGER_S)

    def pause_writing(self) -> None:
        """The reader does not keep up: what is written now waits in memory."""
        super().pause_writing()
        self._arm("stall", STALL_S)

    def resume_writing(self) -> None:
        """The reader took enough."""
        super().resume_writing()
        self._disarm("stall")

    def _waiting(self) -> bool:
        cycle = cast("RequestResponseCycle | None", self.cycle)  # None before the first request
        return cycle is None or cycle.response_complete

    def _arm(self, name: str, seconds: float) -> None:
        self._disarm(name)
        self._timers[name] = self.loop.call_later(seconds, self._expired, name)

    def _disarm(self, name: str) -> None:
        timer = self._timers.pop(name, None)
        if timer is not None:
            timer.cancel()

    def _expired(self, name: str) -> None:
        self._timers.pop(name, None)
        if name != "headers" or self._waiting():
            cast(Any, self.transport).abort()


def of_this_user(connection: socket.socket | None) -> bool:
    """Whether a Unix socket's peer is this user or the superuser; True where the system does not tell."""
    if connection is None or connection.family != getattr(socket, "AF_UNIX", None):
        return True
    if not hasattr(socket, "SO_PEERCRED"):
        return True
    size = struct.calcsize("3i")
    _, uid, _ = struct.unpack("3i", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size))
    return uid in {os.geteuid(), 0}
