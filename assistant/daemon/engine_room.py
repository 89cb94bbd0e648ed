"""The seam between the service, which knows sockets and clients, and the room in which completions are made.

The server turns a message into a request with its text and hands it in; the room answers through `deliver`, from its
own thread. Neither side knows more of the other than this file, so each is tested with a small stand-in for the other.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from assistant import protocol

Deliver = Callable[[protocol.CompletionEvent], None]
Observe = Callable[[protocol.FeedEvent], None]


@dataclass(frozen=True, slots=True)
class Text:
    """What is to be completed, taken from the message or from an open document when the request came in."""

    path: str
    """"" where the text has no name"""
    language: str | None
    """an LSP language id; None: by the file's name"""
    text: str
    """line feeds alone"""
    cursor: int
    """0 <= cursor <= len(text), in characters"""
    client: str
    """the id that `Welcome` gave, "" for a client that never said hello; with `path` it names the document"""
    client_name: str = ""
    settings: Any = None
    """the configuration for this document and client (`assistant.config`), from which options that are None come"""


@dataclass(frozen=True, slots=True)
class RoomStatus:
    """What the room says of itself; the server adds what it knows and answers with `protocol.Status`."""

    model: str
    head: str | None
    device: str
    precision: str
    method: str
    loaded: bool
    state: str
    """ready, loading, unloaded, degraded, draining"""
    message: str = ""
    """why it is degraded, or what it is doing; never the user's code"""
    queue: int = 0
    """requests that wait, the running one not counted"""
    cache_bytes: int = 0
    completions: int = 0
    steps: int = 0
    superseded_steps: int = 0
    plain_ms: float = 0.0
    draft: str | None = None
    device_memory_bytes: int = 0
    models: tuple[str, ...] = ()
    heads: tuple[str, ...] = ()
    """these five as in `protocol.Status`"""


class EngineRoom(Protocol):
    """Makes completions. Every method may be called from any thread and returns at once, `close` excepted."""

    def submit(self, request: protocol.Complete, text: Text, deliver: Deliver) -> str:
        """Queue a completion and return its id.

        `deliver` is called in order, from the engine's thread, possibly before this returns; the last call brings
        `Done` or `Failed`, always, also where the request is cancelled, superseded or the room is closed. It neither
        blocks nor raises.

        Raises:
            BusyError: the bounded queue is full, or the room is closed.
        """

    def cancel(self, request: str) -> None:
        """Withdraw a request; one that is unknown or has ended is left alone."""

    def feedback(self, feedback: protocol.Feedback) -> None:
        """Take in what became of a suggestion; unknown requests are left alone."""

    def observe(self, deliver: Observe) -> Callable[[], None]:
        """Call `deliver` with every step and every end of a completion; returns what ends the subscription.

        `deliver` neither blocks nor raises: a slow observer is the server's affair.
        """

    def forget(self, client: str, path: str | None) -> None:
        """A document went away, or (None) a whole client: cancel what runs for it and free its rows."""

    def configure(self, settings: Any) -> None:
        """Take new settings (`assistant.config`) of the process: model, memory budget, idle times.

        Tree bounds and the like come with each `Text`.
        """

    def status(self) -> RoomStatus:
        """What goes on, without waiting for the engine."""

    def load(self, model: str | None = None, head: str | None = None) -> None:
        """Begin to load the model, unless it is loaded or loading; progress goes to whoever waits for a completion.

        With a name, that one takes the place of the configured one, once nothing runs.
        """

    def unload(self) -> None:
        """Free the model and every cache once nothing runs; the next request loads it again."""

    def trim(self) -> None:
        """Free the caches of documents that nothing runs for: the process is above its memory budget."""

    def close(self, *, drain: bool, timeout: float) -> None:
        """End; with `drain` what runs and waits is finished first, for `timeout` seconds at most. Blocks until then."""
