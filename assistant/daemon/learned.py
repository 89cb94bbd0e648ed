"""What the target wrote for this user, kept as token ids so that the draft head can be trained on it; off by default.

A completion is kept as its prompt's ids and the ids that the target verified behind them, a JSON object a line:

    {"model": "qwen2.5-coder-0.5b", "precision": "int8", "prompt_tokens": 312, "ids": [...], "language": "python"}

Nothing else is kept: no path, no time, no name. The ids are still the user's code in another spelling, so the folder is
the user's alone, and `eagle-assist purge --learned` removes it.

Files are segments, each written once and whole; the oldest go when the folder grows past its bound. A crash loses what
was not written yet, at most one segment.
"""

import json
from collections.abc import Sequence
from pathlib import Path

from assistant.files import ensure_dir, storage_errors, write_atomic

SEGMENT_BYTES = 1 << 20
_SUFFIX = ".jsonl"


class LearnedLog:
    """Keeps the completions of one target in memory until they make a segment.

    Args:
        folder: of the segments.
        model: the target's name.
        precision: and its precision, since another one writes other tokens.
        max_bytes: most room for all segments of all targets.
        segment_bytes: of one segment.
    """

    def __init__(
        self, folder: Path, model: str, precision: str, max_bytes: int, segment_bytes: int = SEGMENT_BYTES
    ) -> None:
        self._folder = folder
        self._model = model
        self._precision = precision
        self._max_bytes = max_bytes
        self._segment_bytes = min(segment_bytes, max_bytes // 2)
        self._lines: list[bytes] = []
        self._size = 0

    def add(self, prompt: Sequence[int], written: Sequence[int], language: str | None = None) -> None:
        """Keep a completion.

        Raises:
            StorageError: a segment cannot be written; its completions are given up.
        """
        row = {
            "model": self._model,
            "precision": self._precision,
            "prompt_tokens": len(prompt),
            "ids": [*prompt, *written],
            **({} if language is None else {"language": language}),
        }
        line = json.dumps(row, separators=(",", ":")).encode() + b"\n"
        self._lines.append(line)
        self._size += len(line)
        if self._size >= self._segment_bytes:
            self.flush()

    def flush(self) -> None:
        """Write what is in memory.

        Raises:
            StorageError: it cannot be written; it is given up.
        """
        data = b"".join(self._lines)
        self._lines, self._size = [], 0
        if not data:
            return
        with storage_errors(self._folder):
            ensure_dir(self._folder).chmod(0o700)
            last = max((int(path.stem) for path in segments(self._folder)), default=0)
            write_atomic(self._folder / f"{last + 1:08d}{_SUFFIX}", data)
            self._rotate()

    def _rotate(self) -> None:
        sizes = [(path, path.stat().st_size) for path in segments(self._folder)]
        excess = sum(size for _, size in sizes) - self._max_bytes
        for path, size in sizes[:-1]:
            if excess <= 0:
                return
            path.unlink(missing_ok=True)
            excess -= size


def segments(folder: Path) -> list[Path]:
    """The segments of a folder, the oldest first; none where there is no such folder."""
    return sorted(path for path in folder.glob(f"*{_SUFFIX}") if path.stem.isdigit())
