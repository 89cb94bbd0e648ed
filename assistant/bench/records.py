"""Measurements kept as JSON files: what was measured, by which command, when and where."""

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from assistant.bench.machine import describe_machine
from assistant.errors import DocumentError, UsageError
from assistant.files import write_atomic

RECORDS = Path("docs/benchmarks")


@dataclass(frozen=True, slots=True)
class Record:
    """One saved run of a bench command."""

    name: str
    command: str
    date: str
    machine: Mapping[str, Any]
    result: Mapping[str, Any]


def save_record(folder: Path, name: str, command: str, result: Mapping[str, Any]) -> Path:
    """Write a result with its command line, this machine and the date as `folder`/`name`.json.

    Raises:
        UsageError: the name is not a plain file name.
        StorageError: the folder cannot be written.
    """
    if not name or not all(c.isalnum() or c in "-_." for c in name) or name.startswith("."):
        raise UsageError(f"--save takes a plain name (letters, digits, '-', '_', '.'), not {name!r}.")
    record = {
        "command": command,
        "date": datetime.now(tz=UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "machine": describe_machine(),
        "result": result,
    }
    path = folder / f"{name}.json"
    write_atomic(path, (json.dumps(record, indent=1) + "\n").encode())
    return path


def command_line(arguments: Sequence[str]) -> str:
    """A command as a reader may repeat it: files are named without the folders of the machine that ran it."""
    return " ".join(["eagle-assist", *(_shortened(argument) for argument in arguments)])


def _shortened(argument: str) -> str:
    option, equals, value = argument.rpartition("=")
    if option.startswith("--"):
        return f"{option}{equals}{_shortened(value)}"
    path = Path(argument)
    return path.name if os.sep in argument and (path.is_absolute() or path.exists()) else argument


def read_records(folder: Path) -> dict[str, Record]:
    """Every record of a folder by its name; none where there is no such folder.

    Raises:
        DocumentError: a file there is not a record.
    """
    return {path.stem: _read(path) for path in sorted(folder.glob("*.json"))}


def _read(path: Path) -> Record:
    try:
        row = json.loads(path.read_text(encoding="utf-8"))
        return Record(path.stem, row["command"], row["date"], row["machine"], row["result"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        message = f"{path} is not a record of a measurement: measure again with --save {path.stem}."
        raise DocumentError(message) from error
