"""All that may be read besides the edited file, for every workspace and client: one place to ask.

Documents that are open count as they are in the editor, other files as the index of their workspace last saw them.
"""

import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path, PurePath

from assistant.config.declaration import Context, Settings
from assistant.config.languages import language_of
from assistant.daemon.context.facts import knows
from assistant.daemon.context.index import Bounds, Index
from assistant.daemon.context.overlap import most_alike
from assistant.daemon.context.passages import Passage, fit
from assistant.daemon.context.ranking import rank
from assistant.daemon.context.view import OpenDocument, View
from assistant.daemon.context.watching import Watch
from assistant.daemon.engine_room import Text
from assistant.daemon.prompt import Surroundings
from models.tokenizer import Tokenizer

_OPEN = 64
"""documents whose text is kept"""
_EDITS = 16
_EDIT_LINES = 3
_RECENT_S = 600.0
_NO_WORKSPACES = frozenset({Path("/"), Path.home()})
"""an editor that was started there does not mean all that is below"""


@dataclass(frozen=True, slots=True)
class _Edit:
    path: str
    line: int
    at: float


@dataclass(slots=True)
class _Room:
    """One workspace."""

    index: Index | None
    watch: Watch | None
    given: dict[str, Surroundings] = field(default_factory=dict)
    """what a document's last prompt held; kept while it is still right, for the sake of the cache"""

    def begin(self, index: Index) -> None:
        """Watch, from the index's own thread: a large tree takes seconds."""
        self.watch = Watch(index)


class Contexts:
    """Finds surroundings. No method waits for an index; all may be called from any thread.

    Args:
        settings: the section `context` of the process's configuration.
        clock: seconds, monotonic.
    """

    def __init__(self, settings: Context, clock: Callable[[], float] = time.monotonic) -> None:
        self.settings = settings
        self._clock = clock
        self._lock = threading.Lock()
        self._rooms: dict[Path, _Room] = {}
        self._open: OrderedDict[str, OpenDocument] = OrderedDict()
        self._edits: deque[_Edit] = deque(maxlen=_EDITS)

    def enter(self, roots: Iterable[str]) -> None:
        """A client works in these folders; they are indexed and watched as soon as prompts have room for context."""
        for root in map(Path, roots):
            with self._lock:
                if root in self._rooms or root in _NO_WORKSPACES or not root.is_dir():
                    continue
                self._rooms[root] = _Room(None, None)
            if self.settings.max_tokens > 0:
                self._index(root)

    def _index(self, root: Path) -> None:
        """Begin to index a workspace, where that is wanted and not under way: with the first prompt that has room."""
        with self._lock:
            room = self._rooms.get(root)
            if room is None or room.index is not None or not (self.settings.enabled and self.settings.index):
                return
            bounds = Bounds(file_bytes=self.settings.max_file_kb << 10)
            index = room.index = Index(root, self._allowed, self.settings.exclude, bounds)
        index.start(lambda: room.begin(index))

    def leave(self, roots: Iterable[str]) -> None:
        """Nobody works in these folders any more."""
        for root in map(Path, roots):
            with self._lock:
                room = self._rooms.pop(root, None)
            if room is not None:
                _close(room)

    def close(self) -> None:
        """End every thread."""
        self.leave([str(root) for root in self._rooms])

    def note(self, path: str, text: str, language: str | None = None, edited_at: int | None = None) -> None:
        """A document is open, or was edited at a character; a secret one is not kept."""
        if not self._allowed(path):
            return
        with self._lock:
            self._open[path] = OpenDocument(text, language or language_of(path) or "plaintext")
            self._open.move_to_end(path)
            while len(self._open) > _OPEN:
                self._open.popitem(last=False)
            if edited_at is not None:
                self._edits.append(_Edit(path, text.count("\n", 0, edited_at), self._clock()))

    def forget(self, path: str) -> None:
        """A document was closed."""
        with self._lock:
            self._open.pop(path, None)

    def is_secret(self, path: str) -> bool:
        """Whether a file is neither read nor completed in."""
        return self.settings.is_secret(path)

    def surroundings(
        self,
        path: str,
        text: str,
        cursor: int,
        language: str,
        size_of: Callable[[str], int],
        budget: int | None = None,
    ) -> Surroundings | None:
        """What a prompt for a cursor should hold of other files; None where nothing helps.

        Args:
            path: of the edited file.
            text: of it.
            cursor: an index into `text`.
            language: an LSP language id.
            size_of: tokens of a text.
            budget: tokens at most; None: the settings'.
        """
        budget = self.settings.max_tokens if budget is None else budget
        if not self.settings.enabled or budget < 1 or not path or not self._allowed(path):
            return None
        root, room = self._room_of(path)
        if root is not None:
            self._index(root)
        view = View(dict(self.opened()), root, room.index if room is not None else None)
        inner = view.inner(path)
        passages = self._edited(view, path)
        if knows(language):
            passages += view.passages(rank(text, cursor, inner, language, view))
        else:
            passages += most_alike(text, cursor, view.texts_near(inner, language))
        found = fit(_distinct(passages), size_of, budget)
        fresh = None
        if found:
            files = tuple((passage.path, passage.text) for passage in reversed(found))
            fresh = Surroundings(root.name if root is not None else "workspace", files, inner)
        return fresh if room is None else _steady(room, path, fresh)

    def look_around(self, text: Text, tokenizer: Tokenizer) -> Surroundings | None:
        """`surroundings` for a request, under its document's settings."""
        settings = text.settings.context if isinstance(text.settings, Settings) else self.settings
        language = text.language or language_of(text.path) or "plaintext"
        if not settings.enabled:
            return None
        return self.surroundings(
            text.path,
            text.text,
            text.cursor,
            language,
            lambda part: len(tokenizer.encode(part)),
            settings.max_tokens,
        )

    def opened(self) -> list[tuple[str, OpenDocument]]:
        """The open documents, the one edited last at the end."""
        with self._lock:
            return list(self._open.items())

    def readable(self) -> list[tuple[str, str]]:
        """Path and text of the open documents, the one edited last at the end; none where context is switched off."""
        return [(path, document.text) for path, document in self.opened()] if self.settings.enabled else []

    def _allowed(self, path: str) -> bool:
        return self.settings.may_read(path)

    def _room_of(self, path: str) -> tuple[Path | None, _Room | None]:
        with self._lock:
            inside = [root for root in self._rooms if PurePath(path).is_relative_to(root)]
            root = max(inside, key=lambda root: len(root.parts), default=None)
            return root, self._rooms.get(root) if root is not None else None

    def _edited(self, view: "View", path: str) -> list[Passage]:
        """Lines around what was edited lately in other documents, the last first."""
        with self._lock:
            edits = [edit for edit in reversed(self._edits) if self._clock() - edit.at < _RECENT_S]
        seen: dict[str, Passage] = {}
        for edit in edits:
            if edit.path == path or edit.path in seen or edit.path not in view.documents:
                continue
            lines = view.documents[edit.path].text.split("\n")
            around = lines[max(0, edit.line - _EDIT_LINES) : edit.line + _EDIT_LINES + 1]
            seen[edit.path] = Passage(view.inner(edit.path), "\n".join(around).strip("\n"))
        return list(seen.values())


def _distinct(passages: Iterable[Passage]) -> list[Passage]:
    """One passage a path, the first."""
    return list({passage.path: passage for passage in reversed(list(passages))}.values())[::-1]


def _steady(room: _Room, path: str, fresh: Surroundings | None) -> Surroundings | None:
    """What was given last, while it still holds the most useful passage: a prompt that begins anew is read anew."""
    before = room.given.get(path)
    if before is not None and fresh is not None and fresh.files[-1] in before.files:
        return before
    if fresh is None:
        room.given.pop(path, None)
    else:
        room.given[path] = fresh
    return fresh


def _close(room: _Room) -> None:
    if room.watch is not None:
        room.watch.close()
    if room.index is not None:
        room.index.close()
