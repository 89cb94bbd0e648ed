"""The documents that clients have open: their text at a version, edits applied, bounded in size and number."""

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from assistant import protocol
from assistant.errors import RefusedError

MAX_CHARACTERS = 8 << 20
"""of one document"""
MAX_TOTAL = 64 << 20
"""characters of all documents; the least recently used are dropped, and their clients open them again"""
MAX_DOCUMENTS = 500
MAX_EDITS = 1000
"""of one change"""


@dataclass(frozen=True, slots=True)
class OpenText:
    """A document at a version."""

    version: int
    text: str
    language: str | None


class Witness(Protocol):
    """Who is told what is open, whoever opened it."""

    def note(self, path: str, text: str, language: str | None = None, edited_at: int | None = None) -> None:
        """A document is open, or was edited at a character."""

    def forget(self, path: str) -> None:
        """A document was closed."""


class Documents:
    """All open documents, by client and path."""

    def __init__(
        self,
        max_documents: int = MAX_DOCUMENTS,
        max_characters: int = MAX_CHARACTERS,
        max_total: int = MAX_TOTAL,
        witness: Witness | None = None,
    ) -> None:
        self._witness = witness
        self._open: OrderedDict[tuple[str, str], OpenText] = OrderedDict()
        self._characters = 0
        self._max_documents = max_documents
        self._max_characters = max_characters
        self._max_total = max_total

    def __len__(self) -> int:
        return len(self._open)

    def open(self, message: protocol.OpenDocument) -> None:
        """Take in a document; one that is open already is replaced, whatever its version.

        Raises:
            RefusedError: it is too large.
        """
        self._put((message.client, message.path), OpenText(message.version, message.text, message.language))
        self._tell(message.path, message.text, message.language, None)

    def change(self, message: protocol.ChangeDocument) -> None:
        """Apply edits, one after the other.

        Raises:
            RefusedError: the document is not open, its version is not below the message's, an edit lies outside it, or
                it would become too large. It is then as it was before.
        """
        self._change(self._find(message.client, message.path), message)

    def bring(self, change: protocol.ChangeDocument, since: int) -> OpenText:
        """The document at a change's version: as it is, or by these edits of its version `since`.

        Raises:
            RefusedError: as `at` and `change` do; it is then as it was before.
        """
        found = self._find(change.client, change.path)
        if found.version == since:
            self._change(found, change)
        return self.at(change.client, change.path, change.version)

    def close(self, message: protocol.CloseDocument) -> None:
        """Forget a document; one that is not open is left alone."""
        self._drop((message.client, message.path))
        self._forgotten(message.path)

    def leave(self, client: str) -> None:
        """Forget all documents of a client."""
        for key in [key for key in self._open if key[0] == client]:
            self._drop(key)
            self._forgotten(key[1])

    def at(self, client: str, path: str, version: int) -> OpenText:
        """A document at a version.

        Raises:
            RefusedError: it is not open, or at another version.
        """
        found = self._find(client, path)
        if found.version != version:
            raise RefusedError("stale", f"the document is at version {found.version}, not {version}.")
        self._open.move_to_end((client, path))
        return found

    def paths(self, client: str) -> tuple[str, ...]:
        """What a client has open."""
        return tuple(path for owner, path in self._open if owner == client)

    def _change(self, before: OpenText, message: protocol.ChangeDocument) -> None:
        if message.version <= before.version:
            raise RefusedError("stale", f"the document is at version {before.version}, not before {message.version}.")
        text = _edited(before.text, message.edits, self._max_characters)
        self._put((message.client, message.path), replace(before, version=message.version, text=text))
        self._tell(message.path, text, before.language, message.edits[-1].start if message.edits else None)

    def _tell(self, path: str, text: str, language: str | None, edited_at: int | None) -> None:
        if self._witness is not None:
            self._witness.note(path, text, language, edited_at)

    def _forgotten(self, path: str) -> None:
        if self._witness is not None and all(other != path for _, other in self._open):
            self._witness.forget(path)

    def _find(self, client: str, path: str) -> OpenText:
        found = self._open.get((client, path))
        if found is None:
            raise RefusedError("unknown_document", "the document is not open here; open it (again).")
        return found

    def _put(self, key: tuple[str, str], document: OpenText) -> None:
        if len(document.text) > self._max_characters:
            raise _too_large(self._max_characters)
        self._drop(key)
        self._open[key] = document
        self._characters += len(document.text)
        while len(self._open) > self._max_documents or self._characters > self._max_total:
            self._drop(next(iter(self._open)))

    def _drop(self, key: tuple[str, str]) -> None:
        document = self._open.pop(key, None)
        if document is not None:
            self._characters -= len(document.text)


def _edited(text: str, edits: Sequence[protocol.Edit], limit: int) -> str:
    if len(edits) > MAX_EDITS:
        raise RefusedError("too_large", f"a change holds {MAX_EDITS} edits at most; open the document anew.")
    for edit in edits:
        if not 0 <= edit.start <= edit.end <= len(text):
            raise RefusedError("bad_message", f"an edit of {edit.start} to {edit.end} lies outside the document.")
        text = text[: edit.start] + edit.text + text[edit.end :]
        if len(text) > limit:
            raise _too_large(limit)
    return text


def _too_large(limit: int) -> RefusedError:
    return RefusedError("too_large", f"a document holds {limit} characters at most.")
