"""Completions of one document: the latest request wins, and what the user types along is never asked for twice."""

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from assistant.errors import DaemonError, EagleAssistError
from assistant.protocol import CompletionEvent, Edit
from lsp.documents import Document
from lsp.flight import Course, Flight
from lsp.link import Link, NotYetError
from lsp.mirror import Mirror
from lsp.pace import Pace
from lsp.suggestion import Anchor, Offer, Silence, Suggestion

FLUSH_S = 0.5
"""the daemon's copy of a text that nobody completes follows after this long, as context for other files"""
SUPERSEDED = Silence("")
STALE = Silence("the text has changed meanwhile")


@dataclass(frozen=True, slots=True)
class Ask:
    """One request of the editor."""

    anchor: Anchor
    invoked: bool = False
    virtual: bool = False
    """the anchor's text is not the document's: an entry of a menu stands in it as if accepted"""
    least_ms: float = 0.0
    most_ms: float = 0.0
    """bounds of the time to wait for the next key"""


class Session:
    """One open document.

    Args:
        document: changed by its owner, who then calls `changed`.
        link: to the daemon.
        observe: sees every event of every completion.
    """

    def __init__(self, document: Document, link: Link, observe: Callable[[CompletionEvent], None]) -> None:
        self.document = document
        self.pace = Pace()
        self.offered: Offer | None = None
        """what the editor probably shows"""
        self.why = ""
        """why the last answer was empty"""
        self._link = link
        self._mirror = Mirror(document)
        self._course = Course(document, self._mirror, link, observe)
        self._latest: Suggestion | None = None
        self._flight: Flight | None = None
        self._newest = asyncio.Event()
        self._flush: asyncio.TimerHandle | None = None
        self._flushing: asyncio.Task[None] | None = None

    async def ask(self, ask: Ask) -> Offer | Silence:
        """The answer to a request; one that came before and still waits is given `SUPERSEDED`.

        A task that is cancelled withdraws its request from the daemon.
        """
        self._newest.set()
        newest = self._newest = asyncio.Event()
        self._harvest()
        if self._flight is not None and not self._flight.leads_to(ask.anchor):
            self._drop()
        try:
            answer = self._along(ask) or await self._answer(ask, newest)
        except asyncio.CancelledError:
            if newest is self._newest:
                self._drop()
            raise
        if answer is not SUPERSEDED:
            self.offered = answer if isinstance(answer, Offer) else None
            self.why = answer.why if isinstance(answer, Silence) else ""
        return answer

    def changed(self, edits: Sequence[Edit], *, share: bool) -> None:
        """The document was edited. Its text is for the daemon only where it is to be shared."""
        self.pace = self.pace.key(time.monotonic() * 1000)
        self._mirror.changed(edits)
        if share:
            self._later()

    def dismiss(self) -> None:
        """The user does not want the latest suggestion."""
        self._latest = self.offered = None

    def opened(self) -> None:
        """Tell the daemon of the document soon."""
        self._later()

    def close(self) -> None:
        """The document goes away."""
        self._newest.set()
        self._drop()
        if self._flush is not None:
            self._flush.cancel()
        path = self.document.path
        self._link.errand(lambda backend: backend.close_document(path))

    def _along(self, ask: Ask) -> Offer | None:
        """The rest of the latest suggestion, where the user types along it."""
        latest = self._latest
        if latest is None:
            return None
        rest = latest.rest(latest.anchor.typed(ask.anchor.before, ask.anchor.after))
        if rest is None:
            return None
        self._drop()
        return Offer(latest, rest, len(ask.anchor.before), again=True)

    async def _answer(self, ask: Ask, newest: asyncio.Event) -> Offer | Silence:
        if self._flight is None:
            wait_ms = 0.0 if ask.invoked else self.pace.wait_ms(ask.least_ms, ask.most_ms)
            if wait_ms > 0 and await _set_within(newest, wait_ms / 1000):
                return SUPERSEDED
            self._flight = Flight(self._course, ask.anchor, virtual=ask.virtual, eager=ask.invoked)
        flight, revision = self._flight, self.document.revision
        overtaken = asyncio.ensure_future(newest.wait())
        try:
            await asyncio.wait({flight.task, overtaken}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            overtaken.cancel()
        if newest.is_set():
            return SUPERSEDED
        self._flight = None
        landed = await flight.task
        if flight.asked is not None:
            self.pace = self.pace.answer((time.monotonic() - flight.asked) * 1000)
        if isinstance(landed, Silence):
            return landed
        return self._landed(landed, ask, revision)

    def _landed(self, suggestion: Suggestion, ask: Ask, revision: int) -> Offer | Silence:
        """What of a suggestion still fits, now that it is here."""
        self._latest = suggestion
        text, anchor = self.document.text, suggestion.anchor
        if ask.virtual:
            cursor = len(ask.anchor.before) if self.document.revision == revision else None
            text = ask.anchor.before
        else:
            cursor = anchor.cursor(text)
        rest = None if cursor is None else suggestion.rest(text[len(anchor.before) : cursor])
        if cursor is None or rest is None:
            return STALE
        return Offer(suggestion, rest, cursor, again=False)

    def _harvest(self) -> None:
        """Keep what a flight brought in the moment in which its waiter gave way."""
        if self._flight is not None and self._flight.task.done() and not self._flight.task.cancelled():
            landed = self._flight.task.result()
            self._latest = landed if isinstance(landed, Suggestion) else self._latest
            self._flight = None

    def _drop(self) -> None:
        if self._flight is not None:
            self._flight.cancel()
            self._flight = None

    def _later(self) -> None:
        if self._flush is not None:
            self._flush.cancel()
        self._flush = asyncio.get_running_loop().call_later(FLUSH_S, self._send)

    def _send(self) -> None:
        self._flushing = asyncio.create_task(self._bring_up_to_date())

    async def _bring_up_to_date(self) -> None:
        try:
            backend = await self._link.backend()
            async with self._mirror.lock:
                await self._mirror.sync(backend)
        except NotYetError:
            self._later()
        except DaemonError as error:
            self._link.lost(error)
        except EagleAssistError:
            return


async def _set_within(event: asyncio.Event, seconds: float) -> bool:
    """Whether an event was set within a time."""
    try:
        await asyncio.wait_for(event.wait(), seconds)
    except TimeoutError:
        return False
    return True
