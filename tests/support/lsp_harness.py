"""The language server's bridge without a process: an editor's calls on one side, a scripted daemon on the other."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from lsprotocol import types

from assistant.errors import EagleAssistError
from lsp.bridge import Bridge
from lsp.documents import Change, Document
from lsp.editor import read_editor
from lsp.progress import Progress
from lsp.status import Monitor
from tests.support.scripted_backend import ScriptedBackend

URI = "file:///code/project/code.py"
QUICK = {"editor": {"debounce_ms": 0, "debounce_max_ms": 0}}
GHOST: dict[str, Any] = {"textDocument": {"inlineCompletion": {}}}


class Harness:
    """A bridge with one editor; made inside a running loop."""

    def __init__(
        self, backend: ScriptedBackend, *, ghost: bool = True, options: object = None, encoding: str = "utf-16"
    ) -> None:
        self.backend = backend
        self.refusal: EagleAssistError | None = None
        """what connecting raises"""
        self.connections: list[tuple[str, tuple[str, ...]]] = []
        self.sent: list[tuple[str, dict[str, Any]]] = []
        self.shown: list[str] = []
        capabilities = {"general": {"positionEncodings": [encoding]}, **(GHOST if ghost else {})}
        editor = read_editor(
            {
                "capabilities": {**capabilities, "window": {"workDoneProgress": True}},
                "clientInfo": {"name": "test-editor"},
                "initializationOptions": QUICK if options is None else options,
            }
        )
        progress = Progress(self._answer, self._notify, shown=editor.progress)
        self.bridge = Bridge(editor, self._connect, Monitor(self._notify, self.shown.append, progress))
        self.version = 1

    @property
    def document(self) -> Document:
        return self.bridge.sessions[URI].document

    def open(self, text: str, uri: str = URI, language: str = "python") -> None:
        self.bridge.open(uri, language, 1, text)

    def type(self, text: str, offset: int | None = None, remove: int = 0) -> None:
        """Insert at an offset (the end), in place of so many characters before it."""
        document = self.document
        end = len(document.text) if offset is None else offset
        self.version += 1
        change = Change(text, document.place(end - remove), document.place(end))
        self.bridge.change(URI, self.version, [change])

    async def inline(
        self,
        offset: int | None = None,
        *,
        invoked: bool = False,
        selected: types.SelectedCompletionInfo | None = None,
        uri: str = URI,
    ) -> list[types.InlineCompletionItem]:
        """Ghost text at an offset (the end)."""
        document = self.bridge.sessions[uri].document
        kind = types.InlineCompletionTriggerKind.Invoked if invoked else types.InlineCompletionTriggerKind.Automatic
        place = types.Position(*document.place(len(document.text) if offset is None else offset))
        context = types.InlineCompletionContext(trigger_kind=kind, selected_completion_info=selected)
        return await self.bridge.inline(types.InlineCompletionParams(context, types.TextDocumentIdentifier(uri), place))

    async def texts(self, offset: int | None = None, **more: Any) -> list[str]:
        """The texts of ghost text at an offset."""
        return [str(item.insert_text) for item in await self.inline(offset, **more)]

    async def menu(self, offset: int | None = None) -> types.CompletionList:
        """Menu entries at an offset (the end)."""
        document = self.document
        place = types.Position(*document.place(len(document.text) if offset is None else offset))
        return await self.bridge.menu(types.CompletionParams(types.TextDocumentIdentifier(URI), place))

    def statuses(self) -> list[dict[str, Any]]:
        return [params for method, params in self.sent if method == "eagle-assist/didChangeStatus"]

    async def _connect(self, name: str, workspace: Sequence[str]) -> ScriptedBackend:
        self.connections.append((name, tuple(workspace)))
        await asyncio.sleep(0)
        if self.refusal is not None:
            raise self.refusal
        return self.backend

    async def _answer(self, method: str, params: dict[str, Any]) -> None:
        self.sent.append((method, params))

    def _notify(self, method: str, params: dict[str, Any]) -> None:
        self.sent.append((method, params))


def identity_of(item: types.InlineCompletionItem) -> str:
    """The suggestion's id, as the editor would send it back."""
    assert item.command is not None
    assert item.command.arguments
    identity = item.command.arguments[0]
    assert isinstance(identity, str)
    return identity


async def settle(turns: int = 30) -> None:
    """Let every task go as far as it can without time passing."""
    for _ in range(turns):
        await asyncio.sleep(0)


async def until(reached: Callable[[], bool]) -> None:
    """Let time pass until something is so."""
    while not reached():  # noqa: ASYNC110 - what is waited for has no event
        await asyncio.sleep(0)
