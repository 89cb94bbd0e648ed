"""Writing to standard output: streamed text that no encoding can break, with line ends left as they are."""

import io
import json
import sys
from collections.abc import Mapping
from typing import Any


def prepare() -> None:
    """Let standard output take any text: what its encoding lacks becomes an escape, line ends stay as they are."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace", newline="")


def write(text: str) -> None:
    """Write a piece of text, visible at once."""
    sys.stdout.write(text)
    sys.stdout.flush()


def write_json(document: Mapping[str, Any]) -> None:
    """Write the one JSON document of a command with `--json`; ASCII alone, so that every locale can carry it."""
    write(json.dumps(document, indent=2, allow_nan=False) + "\n")
