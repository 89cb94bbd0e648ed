"""What goes on, as the editor is told it: a state, a sentence, and every trouble once."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import asdict, dataclass
from typing import Any, Literal

from assistant import protocol
from lsp.progress import Progress

State = Literal["starting", "loading", "ready", "unavailable"]
NOTIFICATION = "eagle-assist/didChangeStatus"
REQUEST = "eagle-assist/status"
_LOOK_S = 0.5


@dataclass(frozen=True, slots=True)
class Status:
    """What `eagle-assist/didChangeStatus` says."""

    state: State
    """starting: there is no connection to the daemon yet; unavailable: there is trouble, which `message` describes"""
    message: str = ""
    why: str = ""
    """why the last request was answered with nothing; "" where it was not, or where that needs no explanation"""


class Monitor:
    """Keeps the status and tells changes of it.

    Args:
        notify: sends a notification.
        show: shows a warning to the user.
        progress: shows that something takes long.
    """

    def __init__(
        self, notify: Callable[[str, dict[str, Any]], None], show: Callable[[str], None], progress: Progress
    ) -> None:
        self.status = Status("starting")
        self._notify = notify
        self._show = show
        self._progress = progress
        self._trouble = ""

    def answered(self, why: str) -> None:
        """A request was answered: with nothing, and why, or ("") with something."""
        self._become(Status(self.status.state, self.status.message, why))

    def connected(self) -> None:
        """There is a daemon."""
        if self.status.state in {"starting", "unavailable"}:
            self._become(Status("ready"))

    def trouble(self, sentence: str) -> None:
        """Something keeps suggestions away: shown once, until it is over."""
        self._progress.end()
        self._become(Status("unavailable", sentence, self.status.why))
        if sentence != self._trouble:
            self._trouble = sentence
            self._show(f"eagle-assist: {sentence}")

    def warn(self, sentence: str) -> None:
        """Show something that does not keep suggestions away."""
        self._show(f"eagle-assist: {sentence}")

    def observe(self, event: protocol.CompletionEvent) -> None:
        """A completion goes on."""
        match event:
            case protocol.Progress():
                self._loading(event.stage, event.done / event.total if event.total > 0 else None)
            case protocol.Step() | protocol.Done():
                self._ready()
            case protocol.Failed():
                self.trouble(event.message)

    async def watch(self, look: Callable[[], Awaitable[protocol.Status]], found: protocol.Status) -> None:
        """Follow the loading of the model until it is over."""
        while found.state == "loading":
            self._loading(found.message or "loading the model", None)
            await asyncio.sleep(_LOOK_S)
            found = await look()
        if found.state == "degraded" and not found.loaded:
            self.trouble(found.message or "the model cannot be used; `eagle-assist doctor` says why.")
        else:
            self._ready()

    def report(self) -> dict[str, Any]:
        """The status as JSON."""
        return asdict(self.status)

    def _loading(self, what: str, share: float | None) -> None:
        self._progress.update(what, share)
        self._become(Status("loading", what, self.status.why))

    def _ready(self) -> None:
        self._progress.end()
        self._trouble = ""
        self._become(Status("ready", "", self.status.why))

    def _become(self, status: Status) -> None:
        if status != self.status:
            self.status = status
            self._notify(NOTIFICATION, self.report())
