"""Keystrokes as files: when, in which document, what was edited, and where the cursor stood then.

A trace is JSON lines. The first line of a document gives its text; the others edit it:

    {"ms": 0, "path": "a.py", "text": "def f(x): return", "cursor": 10}
    {"ms": 120, "path": "a.py", "edits": [[10, 10, " "]], "cursor": 11}

`ms` counts from the trace's beginning and does not fall. An edit is [start, end, text], in characters of the text that
the edits before it made.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

from assistant.errors import DocumentError

_MEDIAN_MS = 140.0
"""between two keys of somebody who types 85 words a minute"""
_PAUSE_MS = 600.0
"""at the beginning of a line"""


@dataclass(frozen=True, slots=True)
class Stroke:
    """One line of a trace."""

    ms: float
    path: str
    cursor: int
    edits: tuple[tuple[int, int, str], ...] = ()
    text: str | None = None
    """the whole document, where it is opened"""

    def to_json(self) -> dict[str, Any]:
        """The line's object."""
        row: dict[str, Any] = {"ms": round(self.ms, 1), "path": self.path}
        row |= {"text": self.text} if self.text is not None else {"edits": [list(edit) for edit in self.edits]}
        return {**row, "cursor": self.cursor}


@dataclass(frozen=True, slots=True)
class Moment:
    """A document as it stands after a stroke."""

    stroke: Stroke
    text: str


def read_trace(path: Path) -> list[Moment]:
    """Every stroke of a trace with the text that it leads to.

    Raises:
        DocumentError: the file cannot be read, or a line is no stroke of its document.
    """
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise DocumentError(f"{path} cannot be read as a trace of keystrokes: {error}.") from error
    texts: dict[str, str] = {}
    moments: list[Moment] = []
    for number, line in enumerate(lines, start=1):
        if line.strip():
            stroke = _parse(line, path, number)
            texts[stroke.path] = _apply(stroke, texts.get(stroke.path), path, number)
            moments.append(Moment(stroke, texts[stroke.path]))
    if not moments:
        raise DocumentError(f"{path} holds no keystrokes; `eagle-assist bench trace FILE` makes some.")
    return moments


def write_trace(strokes: Sequence[Stroke], path: Path) -> None:
    """Write a trace."""
    from assistant.files import write_atomic

    write_atomic(path, "".join(json.dumps(stroke.to_json()) + "\n" for stroke in strokes).encode())


def typed(name: str, text: str, start: int, keys: int, *, seed: int = 0, rapid: bool = False) -> Iterator[Stroke]:
    """A document being typed: its text without `text[start:start + keys]` and the rest of that line, then one by one.

    Nothing is left behind the cursor on its line: half a word there would be no place where anybody types. As editors
    do, a line's indentation comes with its line feed, in one edit.

    Args:
        name: the document's path in the trace.
        text: how it looks in the end.
        start: where typing begins.
        keys: characters that are typed, at least.
        seed: of the times between keys.
        rapid: all keys at once, as a held key or a paste by keys gives.
    """
    random = Random(seed)  # noqa: S311 - times of keys, no secret
    stop = text.find("\n", min(start + keys, len(text)))
    stop = len(text) if stop < 0 else stop
    yield Stroke(0.0, name, start, text=text[:start] + text[stop:])
    at, ms = start, 0.0
    while at < stop:
        end = at + 1
        if text[at] == "\n":
            while end < stop and text[end] in " \t":
                end += 1
        pause = _PAUSE_MS if text[at] == "\n" else _MEDIAN_MS
        ms += 1.0 if rapid else pause * random.lognormvariate(0.0, 0.4)
        yield Stroke(ms, name, end, ((at, at, text[at:end]),))
        at = end


def _parse(line: str, path: Path, number: int) -> Stroke:
    try:
        row = json.loads(line)
        edits = tuple((int(start), int(end), str(text)) for start, end, text in row.get("edits", ()))
        whole = None if row.get("text") is None else str(row["text"])
        return Stroke(float(row["ms"]), str(row["path"]), int(row["cursor"]), edits, whole)
    except (ValueError, KeyError, TypeError, AttributeError):
        raise DocumentError(f"{path}:{number} is no keystroke: it needs ms, path, cursor, and edits or text.") from None


def _apply(stroke: Stroke, text: str | None, path: Path, number: int) -> str:
    if stroke.text is not None:
        text = stroke.text
    if text is None:
        raise DocumentError(f"{path}:{number} edits {stroke.path}, whose text no line before it gives.")
    for start, end, new in stroke.edits:
        if not 0 <= start <= end <= len(text):
            raise DocumentError(f"{path}:{number} edits characters {start} to {end} of a text of {len(text)}.")
        text = text[:start] + new + text[end:]
    if not 0 <= stroke.cursor <= len(text):
        raise DocumentError(f"{path}:{number} has its cursor at {stroke.cursor} of a text of {len(text)} characters.")
    return text
