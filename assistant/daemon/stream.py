"""Server-sent events: how a mailbox becomes the body of an answer, and how a reader that goes away is noticed."""

import asyncio
from collections.abc import Callable
from typing import Generic, TypeVar

import msgspec
from starlette.types import Receive, Scope, Send

from assistant import protocol
from assistant.daemon.mailbox import Mailbox

HEARTBEAT_S = 5.0
"""a comment goes out after so much silence, so that a client can tell a busy daemon from a dead one"""
_ALIVE = b": alive\n\n"
E = TypeVar("E", bound=protocol.Event)


def encode(event: protocol.Event) -> bytes:
    """One event on the wire; JSON has no raw line feeds, so one `data` line holds it."""
    kind = type(event).__name__.lower()
    return b"event: %b\ndata: %b\n\n" % (kind.encode(), msgspec.json.encode(event))


class EventStream(Generic[E]):
    """An ASGI answer that lasts until its last event, or until the reader goes away or cannot follow.

    Args:
        mailbox: where the events come from; closing it ends the stream.
        last: whether an event is the stream's last.
        ended: called once when nothing more will be sent; True where the last event was not sent before.
    """

    def __init__(
        self,
        mailbox: Mailbox[E],
        last: Callable[[E], bool],
        ended: Callable[[bool], None],
    ) -> None:
        self._mailbox = mailbox
        self._last = last
        self._ended = ended

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send what comes in."""
        del scope
        listening: asyncio.Task[None] | None = None
        cut = True
        try:
            body, whole = self._waiting()
            # What is whole already goes out at one stroke, with its length and no ado.
            length = [(b"content-length", str(len(body)).encode())] if whole else []
            await send({"type": "http.response.start", "status": 200, "headers": [*_HEADERS, *length]})
            await send({"type": "http.response.body", "body": body, "more_body": not whole})
            if not whole:
                listening = asyncio.create_task(self._listen(receive))
                whole = await self._send_all(send)
            cut = not whole
        finally:
            if listening is not None:
                listening.cancel()
            self._mailbox.close()
            self._ended(cut)

    async def _send_all(self, send: Send) -> bool:
        while True:
            event = await self._mailbox.get(HEARTBEAT_S)
            ended = event is None and (self._mailbox.closed or self._mailbox.overflowed)
            body, whole = (b"", False) if ended else self._waiting(event)
            if self._mailbox.overflowed:  # the connection is closed without an end, so the reader knows what it misses
                return False
            if not (body or ended):
                body = _ALIVE
            await send({"type": "http.response.body", "body": body, "more_body": not (whole or ended)})
            if whole or ended:
                return whole

    def _waiting(self, event: E | None = None) -> tuple[bytes, bool]:
        """An event and what waits behind it, encoded, and whether the last one is among it."""
        missed = self._mailbox.take_missed()
        body = encode(protocol.Missed(count=missed)) if missed else b""
        event = event or self._mailbox.ready()
        while event is not None:
            body += encode(event)
            if self._last(event):
                return body, True
            event = self._mailbox.ready()
        return body, False

    async def _listen(self, receive: Receive) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        self._mailbox.close()


_HEADERS = [
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-store"),
    (protocol.HEADER.encode(), str(protocol.VERSION).encode()),
]
