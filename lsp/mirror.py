"""The daemon's copy of a document, brought up to date when a completion needs it or the user pauses."""

import asyncio
from collections.abc import Sequence

from assistant.errors import DaemonError, RefusedError
from assistant.protocol import Edit
from lsp.backend import Backend
from lsp.documents import Document

MAX_EDITS = 500
"""more are sent as the whole text"""


class Mirror:
    """What the daemon knows of one document. Whoever relies on it holds `lock` from `sync` until it was used."""

    def __init__(self, document: Document) -> None:
        self.lock = asyncio.Lock()
        self._document = document
        self._owner = ""
        self._revision = 0
        """that the daemon has; 0: none for certain"""
        self._edits: list[Edit] = []
        """since then"""

    @property
    def current(self) -> bool:
        """Whether the daemon has the newest text, as far as is known."""
        return self._revision == self._document.revision

    def changed(self, edits: Sequence[Edit]) -> None:
        """The document was edited."""
        if self._revision:
            self._edits += edits

    def forget(self) -> None:
        """The daemon has no copy after all."""
        self._revision = 0

    async def bring(self, backend: Backend) -> tuple[int | None, tuple[Edit, ...]]:
        """What a request for the newest text has to bring along: (since, edits), or nothing where it was told now.

        Until `taken` says that the daemon has them, the next request brings them again; a daemon that had them after
        all finds that stale.

        Raises:
            RefusedError: the document is too large.
            DaemonError: the daemon went away.
        """
        known = self._revision if backend.welcome.client == self._owner else 0
        if not known or self.current or len(self._edits) > MAX_EDITS:
            await self.sync(backend)
            return None, ()
        return known, tuple(self._edits)

    def taken(self, since: int, version: int, count: int) -> None:
        """A request brought so many edits along, and the daemon has begun to answer it."""
        if self._revision == since:
            self._revision = version
            del self._edits[:count]

    async def sync(self, backend: Backend) -> None:
        """Tell the daemon what it misses. A task that is cancelled meanwhile leaves the copy right nevertheless.

        Raises:
            RefusedError: the document is too large.
            DaemonError: the daemon went away.
        """
        await asyncio.shield(asyncio.ensure_future(self._sync(backend)))

    async def _sync(self, backend: Backend) -> None:
        document, owner = self._document, backend.welcome.client
        revision, text = document.revision, document.text
        known = self._revision if owner == self._owner else 0
        if known == revision:
            return
        edits, self._edits = self._edits, []
        self._revision, self._owner = revision, owner
        try:
            if not known or len(edits) > MAX_EDITS or not await self._change(backend, revision, edits):
                await backend.open_document(document.path, revision, text, document.language)
        except DaemonError:
            self._revision = 0
            raise

    async def _change(self, backend: Backend, revision: int, edits: Sequence[Edit]) -> bool:
        try:
            await backend.change_document(self._document.path, revision, edits)
        except RefusedError:  # it has dropped the document, or another text: open it again
            return False
        return True
