"""One completion on its way from the daemon to whoever waits for it."""

import asyncio
import contextlib
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass

from assistant import protocol
from assistant.errors import DaemonError, EagleAssistError, RefusedError
from lsp.backend import EVENTS, Backend
from lsp.documents import Document
from lsp.link import Link, NotYetError
from lsp.mirror import Mirror
from lsp.stages import Times
from lsp.suggestion import Anchor, Silence, Suggestion

_AGAIN = frozenset({"unknown_document", "stale", "unknown_client"})
_ANEW = _AGAIN | {"too_large", "bad_message"}
"""refusals of edits that came along, after which the text is told as a whole"""
_NEAR = 1 << 17
"""characters on each side of the cursor, of a document that the daemon finds too large"""


@dataclass(frozen=True, slots=True)
class Course:
    """What a completion is made of."""

    document: Document
    mirror: Mirror
    link: Link
    observe: Callable[[protocol.CompletionEvent], None]
    """sees every event"""


class Flight:
    """Begins when it is made; `task` ends with what came of it."""

    def __init__(self, course: Course, anchor: Anchor, *, virtual: bool, eager: bool) -> None:
        self.anchor = anchor
        self.times = Times()
        self._course = course
        self._virtual = virtual
        """the text is not quite the document's: an entry of a menu stands in it as if accepted"""
        self._revision = course.document.revision
        self._eager = eager
        self._streamed = ""
        self.task: asyncio.Task[Suggestion | Silence] = asyncio.create_task(self._fly())

    def leads_to(self, anchor: Anchor) -> bool:
        """Whether the text that has come so far covers what was typed from this flight's anchor to another."""
        typed = self.anchor.typed(anchor.before, anchor.after)
        return typed is not None and not self.task.done() and self._streamed.startswith(typed)

    def cancel(self) -> None:
        """Withdraw it; the daemon is told at once."""
        self.task.cancel()

    async def _fly(self) -> Suggestion | Silence:
        try:
            try:
                return await self._ask(eager=self._eager)
            except DaemonError as error:
                self._course.link.lost(error)
                if self._streamed or (isinstance(error, RefusedError) and error.code not in _ANEW):
                    raise
                self._course.mirror.forget()
            return await self._ask(eager=False)
        except NotYetError:
            return Silence("the daemon is being started")
        except RefusedError as error:
            return Silence("" if error.code in _AGAIN else str(error))
        except EagleAssistError as error:
            if isinstance(error, DaemonError):
                self._course.link.lost(error)
            return Silence(str(error))

    async def _ask(self, *, eager: bool) -> Suggestion | Silence:
        backend = await self._course.link.backend(eager=eager)
        self.times.asked = time.monotonic()
        async with contextlib.AsyncExitStack() as stack:
            # Until the daemon has taken the request, nobody may bring its copy to another version.
            async with self._course.mirror.lock:
                request = await self._request(backend)
                self.times.sent = time.monotonic()
                events = await stack.enter_async_context(contextlib.aclosing(backend.complete(request)))
                first = await anext(events)
                if request.since is not None and request.version is not None:
                    self._course.mirror.taken(request.since, request.version, len(request.edits))
            return await self._land(first, events)

    async def _land(self, first: protocol.CompletionEvent, events: EVENTS) -> Suggestion | Silence:
        landed = self._take(first)
        while landed is None and (event := await anext(events, None)) is not None:
            landed = self._take(event)
        return landed or Silence("the daemon ended an answer in its middle")

    def _take(self, event: protocol.CompletionEvent) -> Suggestion | Silence | None:
        self._course.observe(event)
        if isinstance(event, protocol.Done):
            self.times.landed, self.times.done = time.monotonic(), event
        match event:
            case protocol.Step():
                self._streamed += event.text
            case protocol.Failed():
                return Silence(event.message)
            case protocol.Done() if event.text:
                return Suggestion(uuid.uuid4().hex[:12], event.request, self.anchor, event.text)
            case protocol.Done():
                return Silence(event.reason or _FINISHES.get(event.finish, "the model has nothing to add"))
        return None

    async def _request(self, backend: Backend) -> protocol.Complete:
        document = self._course.document
        before, after = self.anchor.before, self.anchor.after
        if not self._virtual and document.revision == self._revision:
            try:
                since, edits = await self._course.mirror.bring(backend)
                return protocol.Complete(
                    path=document.path, version=self._revision, since=since, edits=edits, cursor=len(before)
                )
            except RefusedError as error:
                if error.code != "too_large":
                    raise
        # In large steps, so that the beginning stays where it is while one types, and with it the cached keys.
        cut = max(0, (len(before) - _NEAR) // _NEAR * _NEAR)
        return protocol.Complete(
            path=document.path, prefix=before[cut:], suffix=after[:_NEAR], language=document.language
        )


_FINISHES = {
    "cancelled": "",
    "superseded": "",
    "deadline": "nothing was ready within the time that is set",
    "filtered": "what the model wrote did not fit",
}
