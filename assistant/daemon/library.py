"""Token indexes of the documents that are open, for drafts copied out of one into another.

They are made while there is nothing to do, a slice at a time, so that no completion waits for one; until then drafts
come from what was indexed before. What is copied is a guess that the target verifies: it never changes a text.
"""

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass

from assistant.engine.lookup import Passages
from models.tokenizer import Tokenizer

_DOCUMENTS = 6
"""that are indexed, those edited last"""
_CHARACTERS = 40_000
"""of each, at most; in the middle of a larger one there is nothing"""
_SLICE = 4_000
"""characters that become tokens in one go"""
_DONE = object()

Opened = Callable[[], Sequence[tuple[str, str]]]
"""path and text of the open documents, the one edited last at the end"""


@dataclass(frozen=True, slots=True)
class _Volume:
    text: str
    passages: Passages


class Library:
    """The open documents' indexes. The engine's thread alone calls it.

    Args:
        opened: what is open; secret documents are not among it.
    """

    def __init__(self, opened: Opened) -> None:
        self._opened = opened
        self._volumes: dict[str, _Volume] = {}
        self._work: Generator[None, None, None] | None = None

    def others(self, path: str) -> tuple[Passages, ...]:
        """What is indexed of the documents besides this one, the one edited last first."""
        open_now = [name for name, _ in reversed(self._opened()) if name != path]
        return tuple(self._volumes[name].passages for name in open_now if name in self._volumes)

    def sort(self, tokenizer: Tokenizer) -> bool:
        """Do a little of what is to be done; False where nothing is."""
        self._work = self._work or self._next(tokenizer)
        if self._work is None:
            return False
        if next(self._work, _DONE) is _DONE:
            self._work = None
        return True

    def clear(self) -> None:
        """Forget everything: another model has other tokens."""
        self._volumes.clear()
        self._work = None

    def _next(self, tokenizer: Tokenizer) -> Generator[None, None, None] | None:
        """The work on the first document whose index is missing or old."""
        documents = dict(self._opened()[-_DOCUMENTS:])
        for path in self._volumes.keys() - documents.keys():
            del self._volumes[path]
        for path, text in reversed(documents.items()):
            known = self._volumes.get(path)
            if known is None or known.text != text:
                return self._index(path, text, tokenizer)
        return None

    def _index(self, path: str, text: str, tokenizer: Tokenizer) -> Generator[None, None, None]:
        half = _CHARACTERS // 2
        parts = [text] if len(text) <= _CHARACTERS else [text[:half], text[-half:]]
        ids: list[int] = []
        for part in parts:
            for start in range(0, len(part), _SLICE):
                ids += tokenizer.encode(part[start : start + _SLICE])
                yield
        self._volumes[path] = _Volume(text, Passages(ids))
