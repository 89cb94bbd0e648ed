"""Suggestions that are still true: typing along with one, or back into it, is answered without the model.

A suggestion was made for a text and a cursor. It answers every cursor that lies further along it, where the text before
the cursor is the text then and a beginning of the suggestion, and the text after the cursor is what it was.
"""

from collections import OrderedDict
from collections.abc import Hashable
from dataclasses import dataclass
from hashlib import blake2b

_DOCUMENTS = 64
_SUGGESTIONS = 24
"""kept of one document"""


@dataclass(frozen=True, slots=True)
class Suggestion:
    """What was written at a place. The texts around it are kept as hashes; `settings` names whatever decided it."""

    length: int
    """characters before the cursor"""
    before: bytes
    after: bytes
    settings: Hashable
    text: str
    finish: str
    """as in `protocol.Done`"""
    reason: str = ""
    confidence: float = 1.0


@dataclass(frozen=True, slots=True)
class Rest:
    """What remains of a suggestion at a cursor that lies along it."""

    text: str
    finish: str
    reason: str
    confidence: float


class TypedCache:
    """The latest suggestions by document."""

    def __init__(self) -> None:
        self._documents: OrderedDict[str, list[Suggestion]] = OrderedDict()

    def remember(self, path: str, text: str, cursor: int, settings: Hashable, rest: Rest) -> None:
        """Keep what was written at `cursor` of `text`; an older one for the same place gives way."""
        new = Suggestion(
            cursor,
            _hash(text[:cursor]),
            _hash(text[cursor:]),
            settings,
            rest.text,
            rest.finish,
            rest.reason,
            rest.confidence,
        )
        place = (new.length, new.before, new.after, new.settings)
        known = [s for s in self._documents.pop(path, []) if (s.length, s.before, s.after, s.settings) != place]
        self._documents[path] = [*known, new][-_SUGGESTIONS:]
        while len(self._documents) > _DOCUMENTS:
            self._documents.popitem(last=False)

    def find(self, path: str, text: str, cursor: int, settings: Hashable) -> Rest | None:
        """The rest of the latest suggestion that the user is typing along; None where there is none.

        A suggestion that was typed to its end says nothing about what follows. One that was empty from the beginning
        is an answer, at its own place.
        """
        known = self._documents.get(path)
        if not known:
            return None
        after = None
        for suggestion in reversed(known):
            typed = cursor - suggestion.length
            if not 0 <= typed <= max(0, len(suggestion.text) - 1) or suggestion.settings != settings:
                continue
            if text[suggestion.length : cursor] != suggestion.text[:typed]:
                continue
            after = after or _hash(text[cursor:])
            if suggestion.after == after and suggestion.before == _hash(text[: suggestion.length]):
                return Rest(suggestion.text[typed:], suggestion.finish, suggestion.reason, suggestion.confidence)
        return None

    def forget(self, path: str | None = None) -> None:
        """Drop a document's suggestions, or all."""
        if path is None:
            self._documents.clear()
        else:
            self._documents.pop(path, None)


def _hash(text: str) -> bytes:
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
