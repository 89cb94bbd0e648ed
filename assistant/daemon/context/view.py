"""Open documents over an index: what ranking looks names up in, by paths relative to the workspace."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePath

from assistant.config.languages import language_of
from assistant.daemon.context.facts import Facts, definitions_of, imports_of
from assistant.daemon.context.index import Index
from assistant.daemon.context.passages import Passage, outline
from assistant.daemon.context.ranking import Ranked
from assistant.daemon.context.sourcefile import is_generated

_COMPARED = 6
"""open documents, and files of the folder, that are compared with a document"""


@dataclass(slots=True)
class OpenDocument:
    """A document as the editor shows it; its facts are made when another document asks for them."""

    text: str
    language: str
    facts: Facts | None = None
    names: frozenset[str] = frozenset()

    def known(self, path: str) -> Facts:
        if self.facts is None:
            definitions = definitions_of(self.text, self.language)
            self.facts = Facts(path, len(self.text), 0, definitions, imports_of(self.text))
            self.names = frozenset(definition.name for definition in definitions)
        return self.facts


class View:
    """Open documents over an index, by paths relative to the workspace: what ranking looks things up in."""

    def __init__(self, documents: dict[str, OpenDocument], root: Path | None, index: Index | None) -> None:
        self.documents = documents
        self._root = root
        self._index = index
        self._by_inner = {self.inner(path): path for path in self.documents}

    def inner(self, path: str) -> str:
        """A path relative to the workspace, where it lies in it."""
        pure = PurePath(path)
        return (
            pure.relative_to(self._root).as_posix()
            if self._root is not None and pure.is_relative_to(self._root)
            else pure.as_posix()
        )

    def facts(self, path: str) -> Facts | None:
        """What a file is known for."""
        full = self._by_inner.get(path)
        if full is not None:
            return self.documents[full].known(path)
        return None if self._index is None else self._index.facts(path)

    def definers(self, name: str) -> tuple[str, ...]:
        """The files that define a name; an open one by what it says now."""
        stored = () if self._index is None else self._index.definers(name)
        found = [path for path in stored if path not in self._by_inner]
        for inner, full in self._by_inner.items():
            document = self.documents[full]
            document.known(inner)
            if name in document.names:
                found.append(inner)
        return tuple(found)

    def texts_near(self, path: str, language: str) -> Iterator[tuple[str, str]]:
        """Paths and texts that may be like a document: open ones, the last first, and its folder's in its language."""
        opened = [other for other in reversed(self._by_inner) if other != path]
        stored = () if self._index is None else self._index.beside(path)
        beside = [one for one in stored if one != path and one not in self._by_inner and language_of(one) == language]
        for other in [*opened[:_COMPARED], *beside[:_COMPARED]]:
            text = self._text(other)
            if text is not None:
                yield other, text

    def passages(self, ranked: Iterable[Ranked]) -> list[Passage]:
        """What to show of ranked files."""
        found = []
        for one in ranked:
            text = self._text(one.path)
            if text is None:
                continue
            passage = outline(one.path, text, language_of(one.path) or "plaintext", one.names)
            if passage is not None:
                found.append(passage)
        return found

    def _text(self, path: str) -> str | None:
        full = self._by_inner.get(path)
        if full is not None:
            text = self.documents[full].text
            return None if is_generated(text) else text
        return None if self._index is None else self._index.text(path)
