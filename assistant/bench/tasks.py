"""Tasks to decode and to check: rows of HumanEval, its infilling variants and MBPP, read from JSON lines."""

import gzip
import json
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from assistant.errors import DocumentError

_HUMANEVAL_STOPS = ("\nclass ", "\ndef ", "\n#", "\n@", "\nif ", "\nprint", "\nassert", "\nimport ", "\nfrom ", "\n```")
_MBPP_STOPS = ("\nclass ", "\nassert", '\n"""', "\nprint", "\nif ", "\n#", "\n```")


@dataclass(frozen=True, slots=True)
class Task:
    """One thing to complete, and the program that judges the completion."""

    name: str
    prompt: str
    suffix: str
    """the text after the gap; empty where the prompt is simply continued"""
    solution: str
    """the completion that the data set's authors wrote"""
    check: str
    """Python source that raises when run after prompt, completion and suffix, unless the completion is right"""
    stops: tuple[str, ...]
    """a completion of the whole task ends before any of these"""

    def program(self, completion: str) -> str:
        """The source whose running to its end means that `completion` is right."""
        return f"{self.prompt}{completion}{self.suffix}\n{self.check}"


def read_tasks(path: Path, limit: int | None = None) -> tuple[Task, ...]:
    """The first `limit` tasks of a .jsonl or .jsonl.gz file (all without a limit).

    Raises:
        DocumentError: the file cannot be read, holds no tasks, or a row is not one; file and line are named.
    """
    tasks = []
    for number, line in read_lines(path):
        tasks.append(_task(line, f"{path}, line {number}"))
        if len(tasks) == limit:
            break
    if not tasks:
        raise DocumentError(f"{path} holds no tasks: it needs one JSON object a line.")
    return tuple(tasks)


def read_lines(path: Path) -> Iterator[tuple[int, str]]:
    """The lines of a .jsonl or .jsonl.gz file that are not blank, with their numbers from 1.

    Raises:
        DocumentError: it cannot be read.
    """
    try:
        raw = path.read_bytes()
        text = (gzip.decompress(raw) if path.suffix == ".gz" else raw).decode("utf-8")
    except (OSError, EOFError, zlib.error, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else "it is not gzip or UTF-8 text"
        raise DocumentError(f"{path} cannot be read as tasks: {reason}.") from error
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            yield number, line


def _task(line: str, where: str) -> Task:
    try:
        row = json.loads(line)
    except json.JSONDecodeError as error:
        raise DocumentError(f"{where} is not JSON ({error.msg} at column {error.colno}).") from error
    if not isinstance(row, dict):
        raise DocumentError(f"{where} is not a JSON object with a task's fields.")
    return _mbpp(row, where) if "test_list" in row else _humaneval(row, where)


def _humaneval(row: Mapping[str, Any], where: str) -> Task:
    suffix = _text(row, "suffix", where) if row.get("suffix") is not None else ""
    return Task(
        name=_text(row, "task_id", where),
        prompt=_text(row, "prompt", where),
        suffix=suffix,
        solution=_text(row, "canonical_solution", where),
        check=f"{_text(row, 'test', where)}\ncheck({_text(row, 'entry_point', where)})\n",
        stops=() if suffix else _HUMANEVAL_STOPS,
    )


def _mbpp(row: Mapping[str, Any], where: str) -> Task:
    imports, tests = (_texts(row, field, where) for field in ("test_imports", "test_list"))
    if not tests:
        raise DocumentError(f"{where}: the field `test_list` is empty, so nothing could be checked.")
    return Task(
        name=f"MBPP/{row.get('task_id')}",
        prompt=f'"""\n{_text(row, "prompt", where)}\n{tests[0]}\n"""\n',
        suffix="",
        solution=_text(row, "code", where),
        check="\n".join([*imports, *tests, ""]),
        stops=_MBPP_STOPS,
    )


def _text(row: Mapping[str, Any], field: str, where: str) -> str:
    value = row.get(field)
    if not isinstance(value, str):
        raise DocumentError(f"{where}: the field `{field}` is {'missing' if value is None else 'not text'}.")
    return value


def _texts(row: Mapping[str, Any], field: str, where: str) -> list[str]:
    value = row.get(field)
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise DocumentError(f"{where}: the field `{field}` is {'missing' if value is None else 'not a list of texts'}.")
    return value
