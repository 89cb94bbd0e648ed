"""What the interface needs of the daemon, and no more; `tui.daemon` gives it, tests give a scripted one."""

from collections.abc import AsyncIterator
from typing import Protocol

from assistant.protocol import Complete, CompletionEvent, FeedEvent, Status


class Source(Protocol):
    """A daemon. Every method may raise DaemonError: none runs, it went away, or it refused (RefusedError)."""

    def feed(self) -> AsyncIterator[FeedEvent]:
        """Everything that happens, from now on, until the daemon goes away (DaemonError)."""

    async def status(self) -> Status:
        """What the daemon says of itself."""

    def complete(self, request: Complete) -> AsyncIterator[CompletionEvent]:
        """One completion; cancelling the task that iterates withdraws it."""

    async def feedback(self, request: str, outcome: str, characters: int) -> None:
        """Say what became of a suggestion."""

    async def start(self) -> None:
        """Start a daemon where none runs, and return when it answers."""

    async def shutdown(self) -> None:
        """End the daemon; what runs is finished first."""

    async def load(self, model: str | None, head: str | None) -> None:
        """Load the model, another one where it is named."""

    async def unload(self) -> None:
        """Give the model's memory back."""

    async def close(self) -> None:
        """Let go of the connection."""
