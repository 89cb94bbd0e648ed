"""Between the editor's messages and the sessions of its documents: what every request becomes."""

import asyncio
import contextlib
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from lsprotocol import types

from assistant import config
from assistant.errors import DaemonError, RefusedError
from assistant.protocol import Edit
from lsp import items
from lsp.backend import Backend, Connect
from lsp.documents import Change, Document, path_of
from lsp.editor import Editor
from lsp.link import Link
from lsp.outcomes import Outcomes
from lsp.session import Ask, Session
from lsp.settings import EditorSettings
from lsp.status import Monitor
from lsp.suggestion import Anchor, Offer, Silence
from lsp.triggers import Rules, Situation, silent, switched_off

MENU_S = 5.0
"""an editor that fills a menu may hold everything up until it is answered"""
CLOSED = Silence("the document is not open")
_ASKED = types.InlineCompletionTriggerKind.Invoked


@dataclass(frozen=True, slots=True)
class Wanted:
    """A request of the editor as the bridge sees it, taken down before anything is waited for."""

    session: Session
    ask: Ask
    situation: Situation
    settings: config.Settings


class Bridge:
    """The server's state.

    Args:
        editor: the program at the other end.
        connect: connects to the daemon.
        monitor: tells the editor what goes on.
    """

    def __init__(self, editor: Editor, connect: Connect, monitor: Monitor) -> None:
        self.monitor = monitor
        self.settings = EditorSettings(monitor.warn)
        self.link = Link(connect, editor.name, monitor.trouble, self._connected)
        self.outcomes = Outcomes(self.link.tell)
        self.sessions: dict[str, Session] = {}
        self._editor = editor
        self._folders = list(editor.folders)
        self._watching: asyncio.Task[None] | None = None
        self.settings.take(editor.options)
        self.link.move([path_of(uri) for uri in self._folders])

    # --- documents

    def open(self, uri: str, language: str | None, version: int | None, text: str) -> None:
        """The editor opened a document."""
        self.close(uri)
        document = Document(uri, language or None, version, text, self._editor.encoding)
        session = self.sessions[uri] = Session(document, self.link, self.monitor.observe)
        if self._off(document) is None:
            session.opened()

    def change(self, uri: str, version: int | None, changes: Sequence[Change]) -> None:
        """The editor changed a document."""
        session = self.sessions.get(uri)
        if session is None:
            return
        edits = session.document.apply(changes, version)
        self._recognise(session, edits)
        session.changed(edits, share=self._off(session.document) is None)

    def close(self, uri: str) -> None:
        """The editor closed a document."""
        session = self.sessions.pop(uri, None)
        if session is not None:
            session.close()

    # --- completions

    async def inline(self, params: types.InlineCompletionParams) -> list[types.InlineCompletionItem]:
        """`textDocument/inlineCompletion`."""
        invoked = params.context.trigger_kind == _ASKED
        selected = params.context.selected_completion_info
        wanted = self._wanted(params.text_document.uri, params.position, invoked=invoked, menu=False, selected=selected)
        if wanted is None or wanted.settings.editor.inline == "off":
            return []
        offer = await self._offer(wanted)
        return [items.ghost(wanted.session.document, offer, selected)] if offer else []

    async def menu(self, params: types.CompletionParams) -> types.CompletionList:
        """`textDocument/completion`."""
        wanted = self._wanted(params.text_document.uri, params.position, invoked=False, menu=True, selected=None)
        if wanted is None or not self._fills_menu(wanted.settings.editor.completion_menu):
            return types.CompletionList(is_incomplete=False, items=[])
        try:
            offer = await asyncio.wait_for(self._offer(wanted), MENU_S)
        except TimeoutError:
            offer = None
        entries = [items.entry(wanted.session.document, offer)] if offer else []
        return types.CompletionList(is_incomplete=True, items=entries)

    # --- what became of a suggestion

    def seen(self, identity: str) -> None:
        """The editor shows a suggestion, and is one that says so."""
        self.outcomes.seen(identity)

    def accepted(self, identity: str) -> None:
        """The editor inserted a suggestion."""
        self.outcomes.accepted(identity)

    def rejected(self, identity: str) -> None:
        """The user dismissed a suggestion: it is not offered there again."""
        document = self.outcomes.rejected(identity)
        session = self.sessions.get(document.uri) if document else None
        if session is not None:
            session.dismiss()

    # --- the workspace

    def configure(self, options: object) -> None:
        """The editor's settings changed."""
        self.settings.take(options)
        self.link.errand(lambda backend: backend.configure(self.settings.values))

    def move(self, added: Sequence[str], removed: Sequence[str]) -> None:
        """The workspace got other roots."""
        self._folders = [uri for uri in self._folders if uri not in removed]
        self._folders += [uri for uri in added if uri not in self._folders]
        self.link.move([path_of(uri) for uri in self._folders])

    def report(self, uri: str | None) -> dict[str, Any]:
        """The answer to `eagle-assist/status`: what goes on, here and (with a document) there."""
        session = self.sessions.get(uri) if uri is not None else None
        report = self.monitor.report()
        if session is not None:
            report["why"] = self._off(session.document) or session.why
            report["stages"] = asdict(session.stages) if session.stages else None
        counts = {name: getattr(self.outcomes.total, name) for name in self.outcomes.total.__struct_fields__}
        return {**report, "connected": self.link.connected, "documents": len(self.sessions), "counts": counts}

    async def end(self) -> None:
        """Save the counts and take leave of the daemon."""
        for uri in list(self.sessions):
            self.close(uri)
        if self._watching is not None:
            self._watching.cancel()
        self.outcomes.save()
        await self.link.close()

    # --- parts of it

    def _wanted(
        self,
        uri: str,
        position: types.Position,
        *,
        invoked: bool,
        menu: bool,
        selected: types.SelectedCompletionInfo | None,
    ) -> Wanted | None:
        session = self.sessions.get(uri)
        if session is None:
            return None
        document = session.document
        settings = self.settings.of(document.path, document.language)
        start = end = document.offset((position.line, position.character))
        inserted = ""
        if selected is not None:
            start, end = (document.offset((at.line, at.character)) for at in (selected.range.start, selected.range.end))
            inserted = selected.text.replace("\r\n", "\n")
        before, after = document.text[:start] + inserted, document.text[end:]
        ask = Ask(
            Anchor(before, after),
            invoked=invoked,
            virtual=selected is not None,
            least_ms=settings.editor.debounce_ms,
            most_ms=settings.editor.debounce_max_ms,
        )
        line = items.line_before(before, len(before))
        situation = Situation(line, after.partition("\n")[0], invoked=invoked, menu=menu)
        return Wanted(session, ask, situation, settings)

    async def _offer(self, wanted: Wanted) -> Offer | None:
        document, editor = wanted.session.document, wanted.settings.editor
        why = self._off(document) or silent(wanted.situation, Rules(editor.inside_words, editor.min_prefix))
        if why:
            wanted.session.stages = None
        answer = Silence(why) if why else await wanted.session.ask(wanted.ask)
        if isinstance(answer, Silence):
            wanted.session.why = answer.why
            self.monitor.answered(answer.why)
            return None
        self.monitor.answered("")
        self.outcomes.offered(answer, document)
        return answer

    def _off(self, document: Document) -> str | None:
        settings = self.settings.of(document.path, document.language)
        return switched_off(
            enabled=settings.editor.enabled, secrets=settings.context.secret_patterns, path=document.path
        )

    def _fills_menu(self, switch: str) -> bool:
        return switch == "on" or (switch == "auto" and not self._editor.ghost)

    def _recognise(self, session: Session, edits: Sequence[Edit]) -> None:
        """An edit that inserts what was offered is its acceptance, in editors that do not say so."""
        offer, session.offered = session.offered, None
        if offer is None or len(edits) != 1 or len(offer.text) < 2:
            return
        edit = edits[0]
        added = len(edit.text) - (edit.end - edit.start)
        if edit.end == offer.cursor and added == len(offer.text) and edit.text.endswith(offer.text):
            self.outcomes.accepted(offer.suggestion.id)

    async def _connected(self, backend: Backend) -> None:
        """A connection was made: give it the editor's settings, and have the model loaded."""
        try:
            await backend.configure(self.settings.values)
        except RefusedError as error:  # a daemon of another version knows other settings
            self.settings.complain(str(error))
        self.monitor.connected()
        self._watching = asyncio.create_task(self._load(backend))

    async def _load(self, backend: Backend) -> None:
        with contextlib.suppress(DaemonError):  # whoever asks for a completion next hears of it
            await self.monitor.watch(backend.status, await backend.load())
