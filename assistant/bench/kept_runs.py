"""Runs that are kept in a file as they come, so that a long comparison may be cut and taken up again."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from assistant.bench.contenders import Contender, Run
from assistant.engine.types import Prompt
from assistant.errors import DocumentError
from assistant.files import write_atomic

_FIELDS = ("tokens", "stopped", "first_seconds", "rest_seconds", "forwards")
"""of a run; its steps are not kept"""


def run_all(
    contenders: Sequence[Contender],
    prompts: Mapping[str, Prompt],
    max_tokens: int,
    path: Path,
    progress: Callable[[int, int], None] = lambda *_: None,
) -> dict[str, list[Run]]:
    """Every contender's run of every prompt, in order, by its label and without its steps; none is made twice.

    Args:
        contenders: who runs.
        prompts: by the names that they have in the file; those whose runs it holds are not run again.
        max_tokens: of a run.
        path: of the file, JSON lines; it may be missing.
        progress: told after every prompt.

    Raises:
        DocumentError: the file holds something else.
    """
    done = _read(path)
    for number, (name, prompt) in enumerate(prompts.items()):
        wanted = [contender for contender in contenders if (contender.label, name) not in done]
        for contender in wanted:
            done[contender.label, name] = replace(contender.run(prompt, max_tokens), steps=())
        if wanted:
            write_atomic(path, "".join(_line(*key, run) for key, run in done.items()).encode())
        progress(number + 1, len(prompts))
    return {contender.label: [done[contender.label, name] for name in prompts] for contender in contenders}


def _line(label: str, name: str, run: Run) -> str:
    row = {field: getattr(run, field) for field in _FIELDS}
    return json.dumps({"contender": label, "prompt": name, **row}) + "\n"


def _read(path: Path) -> dict[tuple[str, str], Run]:
    try:
        rows: list[dict[str, Any]] = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
        return {(row["contender"], row["prompt"]): _run(row) for row in rows}
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise DocumentError(f"{path} holds no runs of this measurement: remove it, and they are made anew.") from error


def _run(row: Mapping[str, Any]) -> Run:
    fields = {field: row[field] for field in _FIELDS}
    return Run(**{**fields, "tokens": tuple(row["tokens"])})
