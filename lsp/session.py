"""Completions of one document: the latest request wins, and what the user types along is never asked for twice."""

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from assistant.errors import DaemonError, EagleAssistError
from assistant.protocol import CompletionEvent, Edit
from lsp.documents import Document
from lsp.flight import Course, Flight
from lsp.link import Link, NotYetError
from lsp.mirror import Mirror
from lsp.pace import Pace
from lsp.stages import Stages
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
    received: float = field(default_factory=time.monotonic)


@dataclass(slots=True)
class _Turn:
    """The requests for one place of one text: an editor may want ghost text and menu entries there."""

    anchor: Anchor
    over: asyncio.Event = field(default_factory=asyncio.Event)
    """set when a request for another place or text came"""
    waiting: int = 0


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
        self.stages: Stages | None = None
        """where the last answer's time went; None where it was typed along, or shared the flight of an earlier one"""
        self._link = link
        self._mirror = Mirror(document)
        self._course = Course(document, self._mirror, link, observe)
        self._latest: Suggestion | None = None
        self._flight: Flight | None = None
        self._turn = _Turn(Anchor("", ""))
        self._flush: asyncio.TimerHandle | None = None
        self._flushing: asyncio.Task[None] | None = None

    async def ask(self, ask: Ask) -> Offer | Silence:
        """The answer to a request; one for an earlier text that still waits is given `SUPERSEDED`.

        A task that is cancelled withdraws its request from the daemon.
        """
        if self._turn.anchor != ask.anchor:
            self._turn.over.set()
            self._turn = _Turn(ask.anchor)
            self._harvest()
            if self._flight is not None and not self._flight.leads_to(ask.anchor):
                self._drop()
        turn = self._turn
        turn.waiting += 1
        try:
            answer = self._along(ask) or await self._answer(ask, turn)
        except asyncio.CancelledError:
            if turn is self._turn and turn.waiting == 1:
                self._drop()
            raise
        finally:
            turn.waiting -= 1
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
        self._turn.over.set()
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
        self.stages = None
        return Offer(latest, rest, len(ask.anchor.before), again=True)

    async def _answer(self, ask: Ask, turn: _Turn) -> Offer | Silence:
        wait_ms = 0.0 if ask.invoked or self._flight else self.pace.wait_ms(ask.least_ms, ask.most_ms)
        if wait_ms > 0:
            if await _set_within(turn.over, wait_ms / 1000):
                return SUPERSEDED
            if (along := self._along(ask)) is not None:  # another request for this place was answered meanwhile
                return along
        if self._flight is None:
            self._flight = Flight(self._course, ask.anchor, virtual=ask.virtual, eager=ask.invoked)
        flight, revision = self._flight, self.document.revision
        overtaken = asyncio.ensure_future(turn.over.wait())
        try:
            await asyncio.wait({flight.task, overtaken}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            overtaken.cancel()
        if turn.over.is_set():
            return SUPERSEDED
        return self._arrived(flight, ask, revision, await flight.task)

    def _arrived(self, flight: Flight, ask: Ask, revision: int, suggestion: Suggestion | Silence) -> Offer | Silence:
        """What of a flight's suggestion still fits, now that it is here."""
        if self._flight is flight:
            self._flight = None
            if flight.times.asked is not None:
                self.pace = self.pace.answer((time.monotonic() - flight.times.asked) * 1000)
        self.stages = flight.times.since(ask.received)
        if isinstance(suggestion, Silence):
            return suggestion
        self._latest = suggestion
        if not ask.virtual:
            left = suggestion.left(self.document.text)
        else:
            left = suggestion.left(ask.anchor.before + ask.anchor.after) if self.document.revision == revision else None
        return STALE if left is None else Offer(suggestion, left[1], left[0], again=False)

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
