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
from lsp.suggestion import Offer, Suggestion

SEEN_S = 0.25
"""a suggestion that the next key swept away sooner was not looked at"""
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
class _Offered:
    """A suggestion that an editor was given."""

    suggestion: Suggestion
    line: str
    """what stood before it on its line"""
    document: Document
    revision: int
    """of the document then"""
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
        self._told = False
        """whether this editor says what it shows"""
        self._offered: OrderedDict[str, _Offered] = OrderedDict()
        self._timer: asyncio.TimerHandle | None = None
        self._saving: asyncio.Task[None] | None = None

    def offered(self, offer: Offer, document: Document) -> None:
        """An editor was given a suggestion. Whether it was shown is a question of time, unless the editor says it."""
        suggestion = offer.suggestion
        if suggestion.id in self._offered:
            return
        line = line_before(document.text, offer.cursor)
        offered = self._offered[suggestion.id] = _Offered(suggestion, line, document, document.revision)
        if len(self._offered) > REMEMBERED:
            self._offered.popitem(last=False)
        if not self._told:
            asyncio.get_running_loop().call_later(SEEN_S, self._stands, offered)

    def seen(self, identity: str) -> None:
        """The editor shows it. From the first time on nothing counts as shown in this editor but what it says."""
        self._told = True
        offered = self._offered.get(identity)
        if offered is not None:
            self._show(offered)

    def accepted(self, identity: str) -> None:
        """The user took a suggestion, or what was left of it."""
        offered = self._offered.get(identity)
        if offered is not None and "accepted" not in offered.outcomes:
            self._note(offered, "accepted", len(offered.suggestion.text))
            asyncio.get_running_loop().call_later(KEPT_S, self._look, offered)

    def partly(self, identity: str, units: int) -> None:
        """The user took its first so many UTF-16 units, by word or line."""
        offered = self._offered.get(identity)
        if offered is not None and units > 0 and "accepted" not in offered.outcomes:
            text = offered.suggestion.text.encode("utf-16-le")[: 2 * units].decode("utf-16-le", "ignore")
            self._note(offered, "partly", len(text))

    def rejected(self, identity: str) -> Document | None:
        """The user dismissed it; its document."""
        offered = self._offered.get(identity)
        if offered is None:
            return None
        if not offered.outcomes & {"accepted", "partly"}:
            self._note(offered, "rejected", 0)
        return offered.document

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

    def _stands(self, offered: _Offered) -> None:
        """Count it as shown if it is still what belongs at its place: untouched, or being typed along."""
        document = offered.document
        if not self._told and (document.revision == offered.revision or offered.suggestion.left(document.text)):
            self._show(offered)

    def _show(self, offered: _Offered) -> None:
        if "shown" not in offered.outcomes:
            self._note(offered, "shown", 0)

    def _note(self, offered: _Offered, outcome: Outcome, characters: int) -> None:
        if outcome != "shown":  # whoever takes or dismisses it has seen it
            self._show(offered)
        if outcome not in offered.outcomes:
            offered.outcomes.add(outcome)
            self._add(Counts(**{outcome: 1}))
        self._add(Counts(characters=max(0, characters - offered.characters)))
        offered.characters = max(characters, offered.characters)
        request = offered.suggestion.request
        self._tell(protocol.Feedback(request=request, outcome=outcome, characters=offered.characters))
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(SAVE_S, self._save_soon)

    def _add(self, counts: Counts) -> None:
        self.counts += counts
        self.total += counts

    def _look(self, offered: _Offered) -> None:
        """Whether an accepted suggestion is still there."""
        if offered.line + offered.suggestion.text in offered.document.text:
            self._note(offered, "kept", offered.characters)

    def _save_soon(self) -> None:
        self._timer = None
        self._saving = asyncio.create_task(asyncio.to_thread(self.save))


def load(path: Path | None = None) -> Counts:
    """The counts that were saved; zeros where there are none that can be read."""
    with contextlib.suppress(OSError, msgspec.DecodeError):
        return msgspec.json.decode((path or state_dir() / FILE).read_bytes(), type=Counts)
    return Counts()
