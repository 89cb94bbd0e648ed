"""What became of suggestions, as counts on this machine: no text, no file names."""

import asyncio
import contextlib
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import msgspec

from assistant import protocol
from assistant.errors import EagleAssistError
from assistant.files import lock, write_atomic
from assistant.paths import state_dir
from lsp.documents import Document
from lsp.items import line_before
from lsp.suggestion import Offer

KEPT_S = 30.0
"""a suggestion that is still there after so long was worth it"""
REMEMBERED = 200
SAVE_S = 5.0
FILE = "suggestions.json"
Outcome = Literal["shown", "accepted", "partly", "rejected", "kept"]


class Counts(msgspec.Struct, frozen=True):
    """How many suggestions were shown, and what became of them; `characters` of those accepted, whole or in part."""

    shown: int = 0
    accepted: int = 0
    partly: int = 0
    rejected: int = 0
    kept: int = 0
    characters: int = 0

    def __add__(self, other: "Counts") -> "Counts":
        return Counts(**{name: getattr(self, name) + getattr(other, name) for name in self.__struct_fields__})


@dataclass(slots=True)
class _Shown:
    """A suggestion that was shown."""

    request: str
    text: str
    line: str
    """what stood before it on its line"""
    document: Document
    outcomes: set[Outcome] = field(default_factory=set)
    characters: int = 0


class Outcomes:
    """Counts what editors report; the same report twice counts once.

    Args:
        tell: tells the daemon.
    """

    def __init__(self, tell: Callable[[protocol.Feedback], None]) -> None:
        self.counts = Counts()
        """of this process, that are not yet in the file"""
        self.total = Counts()
        """of this process"""
        self._tell = tell
        self._shown: OrderedDict[str, _Shown] = OrderedDict()
        self._timer: asyncio.TimerHandle | None = None
        self._saving: asyncio.Task[None] | None = None

    def shown(self, offer: Offer, document: Document) -> None:
        """An editor was given a suggestion."""
        if offer.suggestion.id in self._shown:
            return
        line = line_before(document.text, offer.cursor)
        self._shown[offer.suggestion.id] = _Shown(offer.suggestion.request, offer.suggestion.text, line, document)
        if len(self._shown) > REMEMBERED:
            self._shown.popitem(last=False)
        self._note(self._shown[offer.suggestion.id], "shown", 0)

    def accepted(self, identity: str) -> None:
        """The user took a suggestion, or what was left of it."""
        shown = self._shown.get(identity)
        if shown is not None and "accepted" not in shown.outcomes:
            self._note(shown, "accepted", len(shown.text))
            asyncio.get_running_loop().call_later(KEPT_S, self._look, shown)

    def partly(self, identity: str, units: int) -> None:
        """The user took its first so many UTF-16 units, by word or line."""
        shown = self._shown.get(identity)
        if shown is not None and units > 0 and "accepted" not in shown.outcomes:
            text = shown.text.encode("utf-16-le")[: 2 * units].decode("utf-16-le", "ignore")
            self._note(shown, "partly", len(text))

    def rejected(self, identity: str) -> Document | None:
        """The user dismissed it; its document."""
        shown = self._shown.get(identity)
        if shown is None:
            return None
        if not shown.outcomes & {"accepted", "partly"}:
            self._note(shown, "rejected", 0)
        return shown.document

    def save(self) -> None:
        """Add the counts to the file of this user. Where that fails they wait for the next time."""
        counts, self.counts = self.counts, Counts()
        if counts == Counts():
            return
        try:
            path = state_dir() / FILE
            with lock(path):
                write_atomic(path, msgspec.json.encode(load(path) + counts))
        except (EagleAssistError, OSError):
            self.counts += counts

    def _note(self, shown: _Shown, outcome: Outcome, characters: int) -> None:
        if outcome not in shown.outcomes:
            shown.outcomes.add(outcome)
            self._add(Counts(**{outcome: 1}))
        self._add(Counts(characters=max(0, characters - shown.characters)))
        shown.characters = max(characters, shown.characters)
        self._tell(protocol.Feedback(request=shown.request, outcome=outcome, characters=shown.characters))
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(SAVE_S, self._save_soon)

    def _add(self, counts: Counts) -> None:
        self.counts += counts
        self.total += counts

    def _look(self, shown: _Shown) -> None:
        """Whether an accepted suggestion is still there."""
        if shown.line + shown.text in shown.document.text:
            self._note(shown, "kept", shown.characters)

    def _save_soon(self) -> None:
        self._timer = None
        self._saving = asyncio.create_task(asyncio.to_thread(self.save))


def load(path: Path | None = None) -> Counts:
    """The counts that were saved; zeros where there are none that can be read."""
    with contextlib.suppress(OSError, msgspec.DecodeError):
        return msgspec.json.decode((path or state_dir() / FILE).read_bytes(), type=Counts)
    return Counts()
