"""Tasks of `bench infill`: a text with a hole, what was there, and, where there is one, the program that judges."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from assistant.bench.tasks import Task, read_lines, read_tasks
from assistant.errors import DocumentError

_FIELDS = ("name", "path", "language", "kind", "prefix", "suffix", "answer")


@dataclass(frozen=True, slots=True)
class Hole:
    """One gap to fill."""

    name: str
    path: str
    """of the file, as its workspace names it"""
    language: str
    """an LSP language id"""
    kind: str
    """how the hole came about: rest-of-line, in-brackets, ...; "" where the data does not say"""
    prefix: str
    suffix: str
    answer: str
    """what the authors wrote"""
    check: str | None = None
    """Python source that judges the whole program; None where only the answer can be compared"""
    files: tuple[tuple[str, str], ...] = ()
    """other files of its package: path and text"""

    def program(self, text: str) -> str:
        """What is run to judge `text`."""
        assert self.check is not None
        return f"{self.prefix}{text}{self.suffix}\n{self.check}"


def read_holes(path: Path, limit: int | None = None) -> tuple[Hole, ...]:
    """The first `limit` holes of a .jsonl or .jsonl.gz file: rows of `scripts/holes`, or of HumanEval's infilling.

    Raises:
        DocumentError: the file cannot be read, or a row is neither.
    """
    number, line = next(read_lines(path), (1, ""))
    try:
        first = json.loads(line)
    except ValueError:
        first = None
    if not (isinstance(first, dict) and "answer" in first):
        return tuple(_of_task(task) for task in read_tasks(path, limit))
    holes = []
    for number, line in read_lines(path):
        holes.append(_of_row(line, f"{path}, line {number}"))
        if len(holes) == limit:
            break
    return tuple(holes)


def _of_task(task: Task) -> Hole:
    return Hole(task.name, "", "python", "", task.prompt, task.suffix, task.solution, task.check)


def _of_row(line: str, where: str) -> Hole:
    try:
        row: Mapping[str, Any] = json.loads(line)
        name, path, language, kind, prefix, suffix, answer = (str(row[key]) for key in _FIELDS)
        files = tuple((str(other), str(text)) for other, text in row.get("files", ()))
    except (ValueError, KeyError, TypeError) as error:
        raise DocumentError(f"{where} is no hole: make the file anew with scripts/holes.") from error
    return Hole(name, path, language, kind, prefix, suffix, answer, None, files)
