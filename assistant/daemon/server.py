"""The service: what each endpoint of the protocol does, between clients and the room that makes completions."""

import logging
import os
import secrets
import time
from collections.abc import Callable
from typing import Any

import psutil
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.routing import Route
from starlette.types import ASGIApp

from assistant import protocol
from assistant.config import Settings
from assistant.daemon.access import Access
from assistant.daemon.activity import Activity
from assistant.daemon.clients import Client, Clients
from assistant.daemon.context import Contexts
from assistant.daemon.decoding import Handler, answer, check_version, mannered, no_endpoint, read_message
from assistant.daemon.documents import Documents, OpenText
from assistant.daemon.engine_room import EngineRoom, Text
from assistant.daemon.mailbox import Mailbox
from assistant.daemon.stream import EventStream
from assistant.daemon.text import Reason
from assistant.errors import BusyError, RefusedError
from eagle_assist import __version__

COMPLETION_EVENTS = 1024
"""events of a completion that wait for a slow reader; beyond them it is dropped"""
FEED_EVENTS = 1024
"""events of the statistics feed that wait; beyond them the oldest are left out"""
_log = logging.getLogger(__name__)
Resolve = Callable[[str, str | None, protocol.SettingValues], Any]
"""(path, language, a client's settings) -> the settings for that document; raises a UserError for bad ones"""


class Service:
    """The endpoints.

    Args:
        room: makes the completions.
        place: the socket, as `Status` names it.
        stop: called when a client asks the daemon to end; True to drain first.
        resolve: the settings for a document.
        access: who may use it.
        contexts: told of every workspace and document.
    """

    def __init__(
        self,
        room: EngineRoom,
        place: str,
        stop: Callable[[bool], None],
        resolve: Resolve,
        access: Access | None = None,
        contexts: Contexts | None = None,
    ) -> None:
        self.activity = Activity()
        self.draining = False
        self._room = room
        self._place = place
        self._stop = stop
        self._resolve = resolve
        self._access = access or Access()
        self._clients = Clients()
        self._documents = Documents(witness=contexts)
        self._contexts = contexts
        self._roots: dict[str, tuple[str, ...]] = {}
        self._feeds: set[Mailbox[protocol.FeedEvent]] = set()
        self._started = time.monotonic()
        self._process = psutil.Process()

    def app(self) -> ASGIApp:
        """The ASGI application."""
        posts: dict[str, Handler] = {
            "hello": self._hello,
            "complete": self._complete,
            "cancel": self._cancel,
            "documents/open": self._open,
            "documents/change": self._change,
            "documents/close": self._close,
            "feedback": self._feedback,
            "configure": self._configure,
            "leave": self._leave,
            "load": self._load,
            "unload": self._unload,
            "shutdown": self._shutdown,
        }
        routes = [Route(f"/v1/{name}", mannered(handler), methods=["POST"]) for name, handler in posts.items()]
        routes.append(Route("/v1/status", mannered(self._status), methods=["GET"]))
        routes.append(Route("/v1/steps", mannered(self._steps), methods=["GET"]))
        return self._access.guard(Starlette(routes=routes, exception_handlers={HTTPException: no_endpoint}))

    def end_feeds(self) -> None:
        """Close the streams that would never end by themselves."""
        for feed in self._feeds:
            feed.close()

    def forget_the_silent(self) -> None:
        """Free what belongs to clients that went away without a word, long ago."""
        for client in self._clients.expired():
            _log.info("a client was silent for too long and is forgotten")
            self._forget(client)

    def memory_bytes(self) -> int:
        """Resident memory of the process."""
        return int(self._process.memory_info().rss)

    async def _hello(self, request: Request) -> ASGIApp:
        message = await read_message(request, protocol.Hello)
        client, gone = self._clients.welcome(message)
        for other in gone:
            self._forget(other)
        self._roots[client.id] = message.workspace
        if self._contexts is not None:
            self._contexts.enter(message.workspace)
        self.activity.touch()
        return answer(protocol.Welcome(client=client.id, version=__version__, pid=os.getpid()))

    async def _complete(self, request: Request) -> ASGIApp:
        message = await read_message(request, protocol.Complete)
        if self.draining:
            raise BusyError("the daemon is ending; a new one can be started.", "draining")
        text = self._text(message)
        if isinstance(text.settings, Settings) and text.path and text.settings.context.is_secret(text.path):
            return _nothing(Reason.SECRET)
        mailbox: Mailbox[protocol.CompletionEvent] = Mailbox(COMPLETION_EVENTS, lambda: self._room.cancel(identity))
        identity = self._room.submit(message, text, mailbox.put)
        self._clients.asked(identity, message.client)
        self._clients.streams(message.client, 1)
        self.activity.began(completing=True)

        def ended(cut: bool) -> None:  # noqa: FBT001
            self.activity.ended(completing=True)
            self._clients.streams(message.client, -1)
            if cut:
                _log.info("%s for %s: its reader went away", identity, text.client_name or "nobody")
                self._room.cancel(identity)

        return EventStream(mailbox, lambda event: _is_last(event, text.client_name or "nobody"), ended)

    async def _steps(self, request: Request) -> ASGIApp:
        check_version(request)
        client = request.headers.get(protocol.CLIENT_HEADER, "")
        mailbox: Mailbox[protocol.FeedEvent] = Mailbox(FEED_EVENTS)
        unsubscribe = self._room.observe(mailbox.put)
        self._feeds.add(mailbox)
        self._clients.streams(client, 1)
        self.activity.began()

        def ended(_cut: bool) -> None:  # noqa: FBT001
            self.activity.ended()
            self._clients.streams(client, -1)
            self._feeds.discard(mailbox)
            unsubscribe()

        return EventStream(mailbox, lambda _: False, ended)

    async def _cancel(self, request: Request) -> ASGIApp:
        self._room.cancel((await read_message(request, protocol.Cancel)).request)
        return answer()

    async def _open(self, request: Request) -> ASGIApp:
        message = await read_message(request, protocol.OpenDocument)
        self._clients.get(message.client)
        self._documents.open(message)
        return answer()

    async def _change(self, request: Request) -> ASGIApp:
        message = await read_message(request, protocol.ChangeDocument)
        self._clients.get(message.client)
        self._documents.change(message)
        return answer()

    async def _close(self, request: Request) -> ASGIApp:
        message = await read_message(request, protocol.CloseDocument)
        self._clients.get(message.client)
        self._documents.close(message)
        self._room.forget(message.client, message.path)
        return answer()

    async def _feedback(self, request: Request) -> ASGIApp:
        message = await read_message(request, protocol.Feedback)
        self._clients.told(message)
        self._room.feedback(message)
        return answer()

    async def _configure(self, request: Request) -> ASGIApp:
        message = await read_message(request, protocol.Configure)
        client = self._clients.get(message.client)
        self._resolve("", None, message.settings)
        client.settings = message.settings
        return answer()

    async def _leave(self, request: Request) -> ASGIApp:
        self._forget((await read_message(request, protocol.Leave)).client)
        self.activity.touch()
        return answer()

    async def _load(self, request: Request) -> ASGIApp:
        message = await read_message(request, protocol.Load)
        self._room.load(message.model, message.head)
        self.activity.touch(completing=True)
        return answer(self._report())

    async def _unload(self, request: Request) -> ASGIApp:
        await read_message(request, protocol.Unload)
        self._room.unload()
        return answer(self._report())

    async def _shutdown(self, request: Request) -> ASGIApp:
        # Of any version: a newer program replaces an older daemon.
        request.scope["headers"] = [pair for pair in request.headers.raw if pair[0] != protocol.HEADER.encode()]
        message = await read_message(Request(request.scope, request.receive), protocol.Shutdown)
        self._stop(message.drain)
        return answer()

    async def _status(self, request: Request) -> ASGIApp:
        self._clients.hear(request.headers.get(protocol.CLIENT_HEADER, ""))
        return answer(self._report())

    def _report(self) -> protocol.Status:
        room = self._room.status()
        return protocol.Status(
            pid=os.getpid(),
            version=__version__,
            socket=self._place,
            model=room.model,
            head=room.head,
            device=room.device,
            precision=room.precision,
            method=room.method,
            loaded=room.loaded,
            plain_ms=room.plain_ms,
            draft=room.draft,
            models=room.models,
            heads=room.heads,
            state="draining" if self.draining else room.state,
            message=room.message,
            queue=room.queue,
            clients=tuple(self._info(client) for client in self._clients.present()),
            documents=len(self._documents),
            memory_bytes=self.memory_bytes(),
            cache_bytes=room.cache_bytes,
            device_memory_bytes=room.device_memory_bytes,
            uptime_s=time.monotonic() - self._started,
            completions=room.completions,
            steps=room.steps,
            superseded_steps=room.superseded_steps,
        )

    def _info(self, client: Client) -> protocol.ClientInfo:
        return protocol.ClientInfo(
            name=client.name,
            documents=self._documents.paths(client.id),
            requests=client.requests,
            shown=client.shown,
            accepted=client.accepted,
        )

    def _text(self, message: protocol.Complete) -> Text:
        client = self._clients.get(message.client) if message.client else Client("", "")
        text, cursor, language = message.prefix, 0, message.language
        if message.version is not None and text is None and message.cursor is not None:
            document = self._document(message, message.version)
            text, cursor, language = document.text, message.cursor, language or document.language
        elif text is not None and message.version is None and message.cursor is None and message.since is None:
            text, cursor = text + message.suffix, len(text)
        else:
            raise RefusedError("bad_message", "give either prefix (and suffix), or version and cursor (and edits).")
        if not 0 <= cursor <= len(text):
            raise RefusedError("bad_message", f"the cursor {cursor} lies outside the text's {len(text)} characters.")
        settings = self._resolve(message.path, language, client.settings)
        return Text(message.path, language, text, cursor, client.id, client.name, settings)

    def _document(self, message: protocol.Complete, version: int) -> OpenText:
        """The open document at a version, by the edits that came along where there are any."""
        client, path = message.client, message.path
        if message.since is None and not message.edits:
            return self._documents.at(client, path, version)
        if message.since is None or message.since >= version:
            raise RefusedError("bad_message", "edits need since, the version that they begin with, below version.")
        change = protocol.ChangeDocument(client=client, path=path, version=version, edits=message.edits)
        return self._documents.bring(change, message.since)

    def _forget(self, client: str) -> None:
        self._clients.leave(client)
        self._documents.leave(client)
        self._room.forget(client, None)
        roots = self._roots.pop(client, ())
        if self._contexts is not None:
            still = {root for others in self._roots.values() for root in others}
            self._contexts.leave(root for root in roots if root not in still)


def _nothing(reason: Reason) -> EventStream[protocol.CompletionEvent]:
    """A completion that is none, and why: nobody was asked."""
    mailbox: Mailbox[protocol.CompletionEvent] = Mailbox(COMPLETION_EVENTS)
    request = f"none-{secrets.token_hex(4)}"
    mailbox.put(protocol.Done(request=request, text="", finish="filtered", reason=reason.words))
    return EventStream(mailbox, lambda event: isinstance(event, protocol.Done), lambda _: None)


def _is_last(event: protocol.CompletionEvent, client: str) -> bool:
    """Whether a completion has ended; that it did is written down, without a word of what it was."""
    if isinstance(event, protocol.Done):
        times = (event.queue_ms, event.prefill_ms, event.decode_ms)
        figures = "%s for %s: %s by %s, %d tokens; waited %.0f ms, prompt %.0f ms, steps %.0f ms"
        _log.info(figures, event.request, client, event.finish, event.source, len(event.tokens), *times)
    elif isinstance(event, protocol.Failed):
        _log.warning("%s for %s: failed, %s", event.request, client, event.code)
    return isinstance(event, protocol.Done | protocol.Failed)
