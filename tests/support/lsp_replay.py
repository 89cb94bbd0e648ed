"""A real file typed key by key into a real server process, every answer checked as it comes."""

import random
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from assistant.bench.duplicates import repeats_what_follows
from tests.support.lsp_client import EditorProcess, Json, position
from tests.support.typist import Key, write

_HASTY = 0.2
"""of the keys: the next one comes before the answer"""
_WITHDRAWN = -32800


@dataclass(frozen=True, slots=True)
class Answer:
    """What a key that was waited for brought."""

    total_ms: float
    stages: dict[str, float] | None
    """the server's account of it; None where the daemon was not asked for it"""
    shows: bool

    @property
    def along(self) -> bool:
        """It is what is left of an earlier answer."""
        return self.shows and self.stages is None


@dataclass(slots=True)
class Replay:
    """Types files into an editor's server; raises AssertionError at the first answer that is wrong.

    Of every suggestion it is checked that its range is the cursor in a version of the document that the answer may be
    for (the very one where the answer was waited for), that it fits there, and that it does not repeat what follows.
    """

    editor: EditorProcess
    knowing: bool
    """the daemon knows the file, so that what is shown must be what the file has there"""
    dice: random.Random = field(default_factory=lambda: random.Random(3))
    counts: Counter[str] = field(default_factory=Counter)
    answers: list[Answer] = field(default_factory=list)
    _whole: str = ""
    _uri: str = ""
    _version: int = 1
    _states: dict[int, Key] = field(default_factory=dict)
    """by number of the key, in this file"""
    _open: dict[int, int] = field(default_factory=dict)
    """requests that were not waited for, and their key's number"""
    _shown: tuple[int, str] = (0, "")
    """the last answer that was waited for: its key's number and its text"""

    def type_file(self, path: Path, keys: int, standing: int = 40) -> int:
        """Write a file above its last `standing` lines, `keys` keystrokes at most; how many it took."""
        whole = path.read_text()
        kept = 1 + sum(map(len, whole.splitlines(keepends=True)[-standing:]))  # with the end of the line above them
        self._whole, self._uri, self._version = whole, path.as_uri(), 1
        self._states, self._shown = {}, (0, "")
        self.editor.open(self._uri, whole[len(whole) - kept :])
        number = 0
        for number, key in enumerate(write(whole, kept, self.dice), 1):
            self._press(number, key)
            if number == keys:
                break
        self._collect(wait=True)
        self.editor.notify("textDocument/didClose", {"textDocument": {"uri": self._uri}})
        return number

    def _press(self, number: int, key: Key) -> None:
        previous = self._states.get(number - 1)
        self._states[number] = key
        self.counts["keys"] += 1
        if key.inserted is not None:
            self._version += 1
            old = previous.text if previous else self._standing(key)
            self.editor.change(self._uri, self._version, key.inserted, _place(old, key.start), _place(old, key.end))
        place = {"textDocument": {"uri": self._uri}, "position": position(*_place(key.text, key.cursor))}
        started = time.perf_counter()
        request = self.editor.request("textDocument/inlineCompletion", {**place, "context": {"triggerKind": 2}})
        if self.dice.random() < _HASTY:
            self._open[request] = number
            if self.dice.random() < 0.5:
                self.editor.notify("$/cancelRequest", {"id": request})
            return
        answer = self.editor.wait(request)
        total = 1000 * (time.perf_counter() - started)
        self._waited(number, answer["result"], total)
        self._collect(wait=False)

    def _standing(self, key: Key) -> str:
        """The text before the first key."""
        return key.text[: key.start] + key.text[key.start + len(key.inserted or "") :]

    def _waited(self, number: int, items: list[Json], total_ms: float) -> None:
        text = self._checked(items, range(number, number + 1))
        key, (last, shown) = self._states[number], self._shown
        if last == number - 1 and len(shown) > 1 and key.inserted == shown[0]:
            assert text == shown[1:], f"after {shown!r} and its first character {text!r} is shown"
        status = self.editor.ask("eagle-assist/status", {"textDocument": {"uri": self._uri}})["result"]
        self.counts["shown" if text else "nothing to show"] += 1
        self.answers.append(Answer(total_ms, status["stages"], bool(text)))
        self.counts["typed along"] += self.answers[-1].along
        self._shown = (number, text)

    def _collect(self, *, wait: bool) -> None:
        """Check the answers to requests that were overtaken."""
        for request, number in list(self._open.items()):
            if not wait and request not in self.editor.answers:
                continue
            answer = self.editor.wait(request)
            del self._open[request]
            self.counts["overtaken"] += 1
            if "error" in answer:
                assert answer["error"]["code"] == _WITHDRAWN, answer
                self.counts["overtaken: withdrawn"] += 1
            elif self._checked(answer["result"], range(number, max(self._states) + 1)):
                self.counts["overtaken: answered in time nevertheless"] += 1

    def _checked(self, items: list[Json], numbers: range) -> str:
        """The text of an answer, which must be right for one of the keys."""
        if not items:
            return ""
        (item,) = items
        text: str = item["insertText"]
        assert any(self._right(self._states[number], item) for number in numbers), (
            f"{text!r} does not belong after {self._states[numbers[0]].before[-60:]!r}"
        )
        return text

    def _right(self, key: Key, item: dict[str, Any]) -> bool:
        text, place = item["insertText"], position(*_place(key.text, key.cursor))
        where = item["range"]["start"] == item["range"]["end"] == place
        known = not self.knowing or self._is_known(key, text)
        return where and known and not repeats_what_follows(key.before, text, key.after)

    def _is_known(self, key: Key, text: str) -> bool:
        """Whether the file goes on with a suggestion, and then with what stands on the line already."""
        written, standing = key.before + text, key.after.partition("\n")[0]
        return self._whole.startswith(written) and self._whole[len(written) :].startswith(standing)


def _place(text: str, offset: int) -> tuple[int, int]:
    """Line and column, counted in characters."""
    return text.count("\n", 0, offset), offset - text.rfind("\n", 0, offset) - 1
