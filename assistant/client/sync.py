"""The client for programs that wait: the command line, benchmarks, scripts. The twin of `aio`, method by method."""

import contextlib
from collections.abc import Generator, Sequence
from typing import TYPE_CHECKING, Any, Self, TypeVar

import msgspec

from assistant import protocol
from assistant.client import wire
from assistant.client.handshake import greet
from assistant.endpoint import Endpoint, default_endpoint
from assistant.errors import DaemonDiedError, DaemonError, DaemonUnavailableError
from eagle_assist import __version__

if TYPE_CHECKING:
    import httpx

A = TypeVar("A")


class Client:
    """One client of the daemon; made by `connect`, ended by `close` or `with`, for one thread.

    Whatever it is asked, it finds the daemon again, or starts another, once, where the one that it knew is gone. That
    one is told the settings again, but has no documents: `RefusedError` of the code `unknown_document` asks to open
    them again.
    """

    def __init__(
        self, endpoint: Endpoint, hello: protocol.Hello, *, start: bool, command: Sequence[str] | None
    ) -> None:
        self._endpoint = endpoint
        self._greeting = hello
        self._start = start
        self._command = command
        self._lines: dict[wire.Line, httpx.Client] = {}
        self._settings: protocol.SettingValues | None = None
        self.welcome: protocol.Welcome

    @classmethod
    def connect(
        cls,
        name: str,
        *,
        start: bool = True,
        workspace: Sequence[str] = (),
        endpoint: Endpoint | None = None,
        command: Sequence[str] | None = None,
    ) -> Self:
        """Say hello to the daemon, which is started where none runs.

        Args:
            name: what the client is called in lists.
            start: whether it may be started, now or later.
            workspace: root folders.
            endpoint: the user's own by default.
            command: what starts a daemon; this program by default.

        Raises:
            DaemonError: there is none, or it does not answer.
            StorageError: the folder of its socket is not the user's alone.
        """
        hello = protocol.Hello(client=name, version=__version__, workspace=tuple(workspace))
        client = cls(endpoint or default_endpoint(), hello, start=start, command=command)
        client._greet()
        return client

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def complete(self, request: protocol.Complete) -> Generator[protocol.CompletionEvent, None, None]:
        """The events of a completion; the last is `Done` or `Failed`.

        Closing the generator (`contextlib.closing`) withdraws the request. If the daemon goes
        away before the first `Step`, another one is asked, and the events begin again with its `Begun`.

        Raises:
            RefusedError: the daemon refused it; `BusyError` where its queue is full.
            DaemonError: it went away, or fell silent.
        """
        stepped = again = False
        while True:
            try:
                stream = self._stream("POST", "/v1/complete", request, protocol.CompletionEvent)
                with contextlib.closing(stream) as events:
                    for event in events:
                        stepped |= isinstance(event, protocol.Step)
                        last = isinstance(event, protocol.Done | protocol.Failed)
                        if last:
                            _drain(events)
                        yield event
                        if last:
                            return
                raise DaemonDiedError("the daemon ended an answer in its middle; `eagle-assist logs` may say why.")
            except DaemonError as error:
                if stepped or again or not wire.passing(error):
                    raise
            again = True
            self._greet()

    def steps(self) -> Generator[protocol.FeedEvent, None, None]:
        """Every step and end of every client's completions, until the daemon ends.

        Raises:
            DaemonError: it went away, or fell silent.
        """
        with contextlib.closing(self._stream("GET", "/v1/steps", None, protocol.FeedEvent)) as events:
            yield from events

    def cancel(self, request: str) -> None:
        """Withdraw a completion by its id."""
        self._ask("/v1/cancel", protocol.Cancel(request=request))

    def open_document(self, path: str, version: int, text: str, language: str | None = None) -> None:
        """Tell a document's text, which completions then name by its version."""
        message = protocol.OpenDocument(client="", path=path, version=version, text=text, language=language)
        self._ask("/v1/documents/open", message)

    def change_document(self, path: str, version: int, edits: Sequence[protocol.Edit]) -> None:
        """Tell edits; after `RefusedError` of the codes unknown_document, stale or too_large, open it again."""
        message = protocol.ChangeDocument(client="", path=path, version=version, edits=tuple(edits))
        self._ask("/v1/documents/change", message)

    def close_document(self, path: str) -> None:
        """Forget a document and cancel what runs for it."""
        self._ask("/v1/documents/close", protocol.CloseDocument(client="", path=path))

    def feedback(self, feedback: protocol.Feedback) -> None:
        """Tell what became of a suggestion."""
        self._ask("/v1/feedback", feedback)

    def configure(self, settings: protocol.SettingValues) -> None:
        """Settings of this client, in place of those that it gave before.

        Raises:
            RefusedError: one is unknown or out of range (code `config`); the ones before stay in force.
        """
        self._ask("/v1/configure", protocol.Configure(client="", settings=settings))
        self._settings = settings

    def load(self, model: str | None = None, head: str | None = None) -> protocol.Status:
        """Load the model, or another one, without waiting for it."""
        return wire.decode(self._ask("/v1/load", protocol.Load(model=model, head=head)), protocol.Status)

    def unload(self) -> protocol.Status:
        """Free the model."""
        return wire.decode(self._ask("/v1/unload", protocol.Unload()), protocol.Status)

    def status(self) -> protocol.Status:
        """What goes on in the daemon."""
        return wire.decode(self._ask("/v1/status", None), protocol.Status)

    def shutdown(self, *, drain: bool = True) -> None:
        """End the daemon; with `drain` after what runs."""
        self._send("/v1/shutdown", protocol.Shutdown(drain=drain))

    def close(self) -> None:
        """Take leave; the daemon cancels what still runs for this client."""
        with contextlib.suppress(DaemonError):  # it may be gone already
            self._send("/v1/leave", protocol.Leave(client=""))
        for line in self._lines.values():
            line.close()

    def _greet(self) -> None:
        self.welcome = greet(self._endpoint, self._greeting, start=self._start, command=self._command)
        if self._settings is not None:
            with contextlib.suppress(DaemonError):  # whoever asks next hears of it
                self._send("/v1/configure", protocol.Configure(client="", settings=self._settings))

    def _ask(self, path: str, message: msgspec.Struct | None) -> bytes:
        try:
            return self._send(path, message)
        except DaemonError as error:
            if not wire.passing(error):
                raise
        self._greet()
        return self._send(path, message)

    def _send(self, path: str, message: msgspec.Struct | None) -> bytes:
        import httpx

        try:
            http = self._http()
            response = http.send(self._request(http, "GET" if message is None else "POST", path, message))
        except httpx.HTTPError as error:
            raise wire.translated(error) from error
        wire.check(response.status_code, response.content)
        return response.content

    def _stream(self, method: str, path: str, message: msgspec.Struct | None, kind: Any) -> Generator[Any, None, None]:
        import httpx

        parser = wire.EventParser(kind)
        try:
            http = self._http()
            response = http.send(self._request(http, method, path, message), stream=True)
            try:
                if response.status_code >= 400:
                    wire.check(response.status_code, response.read())
                for data in response.iter_raw():
                    yield from parser.feed(data)
            finally:
                response.close()
        except httpx.HTTPError as error:
            raise wire.translated(error) from error

    def _request(self, http: "httpx.Client", method: str, path: str, message: msgspec.Struct | None) -> "httpx.Request":
        content = None if message is None else msgspec.json.encode(wire.signed(message, self.welcome.client))
        headers = {protocol.CLIENT_HEADER: self.welcome.client}
        return http.build_request(method, path, content=content, headers=headers)

    def _http(self) -> "httpx.Client":
        # httpx leaves the socket of a failed connection open: look before it tries.
        if not self._endpoint.reachable():
            raise DaemonUnavailableError(wire.ABSENT)
        line = wire.Line.to(self._endpoint)
        if line not in self._lines:
            self._lines[line] = line.sync()
        return self._lines[line]


def _drain(events: Generator[Any, None, None]) -> None:
    """Read an answer to its very end, after its last event, so that its connection can be used again."""
    with contextlib.suppress(DaemonError):
        for _ in events:
            pass
