"""The methods of the protocol, each a line or two: everything else is `lsp.bridge`'s."""

import asyncio
import contextlib
import functools
import threading
from collections.abc import Awaitable, Callable
from typing import Any, BinaryIO, TypeVar

from lsprotocol import types
from pygls.lsp.server import LanguageServer

from assistant import faults
from eagle_assist import __version__
from lsp import items, stdio
from lsp.backend import Connect
from lsp.bridge import Bridge
from lsp.documents import Change, Place
from lsp.editor import Editor
from lsp.greeting import NAME, TRIGGERS
from lsp.progress import Progress
from lsp.settings import SECTION
from lsp.status import REQUEST, Monitor
from lsp.wire import Wire, quiet

SEEN = "textDocument/didShowCompletion"
PARTLY = "textDocument/didPartiallyAcceptCompletion"
ANSWER_S = 10.0
"""an editor that does not answer a request of ours is left alone after this long"""
LEAVE_S = 2.0
T = TypeVar("T")
_ODD = (KeyError, TypeError, IndexError, ValueError, OverflowError)
"""what parameters of any shape raise when they are read"""


class Server(LanguageServer):
    """One editor's server, from after `initialize` to its end."""

    protocol: Wire

    def __init__(self, editor: Editor, output: stdio.Output, connect: Connect) -> None:
        quiet()
        super().__init__(NAME, __version__, protocol_cls=Wire)
        self.protocol.set_writer(output)
        self._editor = editor
        self._output = output
        self._ended = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._loop.set_exception_handler(_record)
        progress = Progress(self._ask, self.protocol.notify, shown=editor.progress)
        self.bridge = Bridge(editor, connect, Monitor(self.protocol.notify, self._show, progress))
        self._register()

    async def run(self, source: BinaryIO) -> int:
        """Serve until the editor ends it or is gone; the exit code."""
        threading.Thread(target=self._pump, args=(source,), name="stdin", daemon=True).start()
        await self._ended.wait()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self.bridge.end(), LEAVE_S)
        return 0 if self.protocol.shut_down else 1

    def report_server_error(self, error: Exception, source: Any) -> None:
        """Nothing of ours is shown to the user as an error of a server."""
        del source
        faults.describe(error, debug=False)

    def _pump(self, source: BinaryIO) -> None:
        """Bring messages into the loop's thread."""
        with contextlib.suppress(RuntimeError, OSError, ValueError):  # the loop, or the stream, has ended
            while not self._output.broken and (body := stdio.read(source)) is not None:
                self._loop.call_soon_threadsafe(self.protocol.receive, body)
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._ended.set)

    def _register(self) -> None:
        bridge, protocol = self.bridge, self.protocol
        feature = self.feature
        menu = types.CompletionOptions(trigger_characters=None if self._editor.ghost else list(TRIGGERS))
        feature(types.TEXT_DOCUMENT_INLINE_COMPLETION, types.InlineCompletionOptions())(_safe(bridge.inline, []))
        feature(types.TEXT_DOCUMENT_COMPLETION, menu)(_safe(bridge.menu, None))
        self.command(items.ACCEPT)(_each(bridge.accepted))
        self.command(items.REJECT)(_each(bridge.rejected))
        protocol.on(types.TEXT_DOCUMENT_DID_OPEN, self._did_open)
        protocol.on(types.TEXT_DOCUMENT_DID_CHANGE, self._did_change)
        protocol.on(types.TEXT_DOCUMENT_DID_CLOSE, lambda params: bridge.close(params.text_document.uri))
        protocol.on(types.WORKSPACE_DID_CHANGE_CONFIGURATION, self._did_configure)
        protocol.on(types.WORKSPACE_DID_CHANGE_WORKSPACE_FOLDERS, self._did_move)
        protocol.on(types.INITIALIZED, lambda _: self._pull())
        protocol.on(types.EXIT, lambda _: self._ended.set())
        protocol.raw(SEEN, self._seen)
        protocol.raw(PARTLY, self._partly)
        protocol.raw(REQUEST, self._status)

    def _did_open(self, params: types.DidOpenTextDocumentParams) -> None:
        document = params.text_document
        self.bridge.open(document.uri, document.language_id, document.version, document.text)

    def _did_change(self, params: types.DidChangeTextDocumentParams) -> None:
        document = params.text_document
        self.bridge.change(document.uri, document.version, [_change(event) for event in params.content_changes])

    def _did_configure(self, params: types.DidChangeConfigurationParams) -> None:
        if isinstance(params.settings, dict) and params.settings:
            self.bridge.configure(params.settings)
        else:  # a hint that they are to be asked for
            self._pull()

    def _did_move(self, params: types.DidChangeWorkspaceFoldersParams) -> None:
        event = params.event
        self.bridge.move([folder.uri for folder in event.added], [folder.uri for folder in event.removed])

    def _seen(self, params: Any) -> None:
        """`{item}`: the item as it was sent."""
        with contextlib.suppress(*_ODD):
            self.bridge.seen(_identity(params))

    def _partly(self, params: Any) -> None:
        """`{item, acceptedLength}`: the item, and how many UTF-16 units of it were accepted so far."""
        with contextlib.suppress(*_ODD):
            self.bridge.outcomes.partly(_identity(params), int(params["acceptedLength"]))

    def _status(self, params: Any) -> dict[str, Any]:
        document = params.get("textDocument") if isinstance(params, dict) else None
        uri = document.get("uri") if isinstance(document, dict) else None
        return self.bridge.report(uri if isinstance(uri, str) else None)

    def _pull(self) -> None:
        """Ask the editor for its settings, where it answers."""
        if self._editor.pulls:
            self._pulling = self._loop.create_task(self._pull_settings())

    async def _pull_settings(self) -> None:
        with contextlib.suppress(Exception):  # an editor that refuses has no settings for us
            found = await self._ask(types.WORKSPACE_CONFIGURATION, {"items": [{"section": SECTION}]})
            if isinstance(found, list) and found and isinstance(found[0], dict) and found[0]:
                self.bridge.configure(found[0])

    async def _ask(self, method: str, params: dict[str, Any]) -> Any:
        return await asyncio.wait_for(self.protocol.send_request_async(method, params), ANSWER_S)

    def _show(self, sentence: str) -> None:
        self.window_show_message(types.ShowMessageParams(type=types.MessageType.Warning, message=sentence))


def _identity(params: Any) -> str:
    """The id of the suggestion that a notification's item is; any of `_ODD`."""
    return str(params["item"]["command"]["arguments"][0])


def _change(event: types.TextDocumentContentChangeEvent) -> Change:
    if isinstance(event, types.TextDocumentContentChangePartial):
        return Change(event.text, _place(event.range.start), _place(event.range.end))
    return Change(event.text)


def _place(position: types.Position) -> Place:
    return position.line, position.character


def _safe(handler: Callable[[Any], Awaitable[T]], nothing: Any) -> Callable[[Any], Awaitable[T]]:
    """The handler, that answers with nothing where it fails: a fault of ours is not the user's affair."""

    @functools.wraps(handler)
    async def guarded(params: Any) -> T:
        try:
            return await handler(params)
        except Exception as error:  # noqa: BLE001 - the server's edge
            faults.describe(error, debug=False)
            return nothing  # type: ignore[no-any-return]

    return guarded


def _each(handler: Callable[[str], object]) -> Callable[..., None]:
    """A command whose arguments are ids; anything else is ignored."""

    def run(*arguments: Any) -> None:
        for argument in arguments:
            if isinstance(argument, str):
                handler(argument)

    return run


def _record(_loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    error = context.get("exception")
    if isinstance(error, Exception):
        faults.describe(error, debug=False)
