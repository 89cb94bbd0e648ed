"""What the bridge needs of the daemon; `assistant.client.AsyncClient` has it, and so has a stand-in of the tests."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from typing import Protocol

from assistant import protocol

EVENTS = AsyncGenerator[protocol.CompletionEvent, None]


class Backend(Protocol):
    """A client of the daemon, that says hello again by itself where the daemon was restarted.

    Every method raises `DaemonError` where there is no daemon, or none that answers; `RefusedError` where it refuses.
    """

    welcome: protocol.Welcome
    """of the last hello; a new id means that the daemon knows no document of this client any more"""

    def complete(self, request: protocol.Complete) -> EVENTS:
        """The events of a completion; closing the generator withdraws it."""

    async def open_document(self, path: str, version: int, text: str, language: str | None = None) -> None:
        """Tell a document's text."""

    async def change_document(self, path: str, version: int, edits: Sequence[protocol.Edit]) -> None:
        """Tell edits that lead to a version."""

    async def close_document(self, path: str) -> None:
        """Forget a document."""

    async def feedback(self, feedback: protocol.Feedback) -> None:
        """Tell what became of a suggestion."""

    async def configure(self, settings: protocol.SettingValues) -> None:
        """Settings of this client."""

    async def load(self, model: str | None = None, head: str | None = None) -> protocol.Status:
        """Begin to load the model."""

    async def status(self) -> protocol.Status:
        """What goes on."""

    async def close(self) -> None:
        """Take leave."""


Connect = Callable[[str, Sequence[str]], Awaitable[Backend]]
"""(the client's name, root folders) -> a backend; raises DaemonError or UserError"""


async def connect_daemon(name: str, workspace: Sequence[str], command: Sequence[str] | None = None) -> Backend:
    """The daemon of this user, started (by `command`, or as this program does) where none runs.

    What is returned never starts one itself: where the daemon dies a request fails at once, instead of waiting for a
    new one in a thread that no keystroke could cancel; `lsp.link` then comes here again.
    """
    from assistant.client import AsyncClient

    async with await AsyncClient.connect(name, command=command):  # starts it, or replaces an older one
        pass
    return await AsyncClient.connect(name, start=False, workspace=workspace)
