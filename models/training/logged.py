"""Verified completions that the daemon kept, as texts to train on: what this user writes, in the target's own words.

A folder of `*.jsonl` files, one completion a line: {"model": NAME, "prompt_tokens": N, "ids": [...], "language": NAME},
where `ids` are the prompt's tokens and those that the target wrote after them. `language` is optional.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from assistant.errors import UsageError
from models.training.samples import Mix, Sample


@dataclass(frozen=True, slots=True)
class Logged:
    """What a folder holds for one model."""

    samples: tuple[Sample, ...]
    skipped: int
    """lines that are damaged or of another model"""


def read_log_folder(folder: Path, model: str, vocab_size: int, mix: Mix) -> Logged:
    """The completions of `model` under `folder`, oldest file first, prompts cut to the mix's context before them.

    Args:
        folder: of the daemon's log.
        model: whose completions; another model's words teach nothing about this one.
        vocab_size: ids beyond it are damage.
        mix: `window` bounds the tokens before the target's own, `write` those after.

    Raises:
        UsageError: there is no such folder, or it holds no completion of the model.
    """
    if not folder.is_dir():
        raise UsageError(f"{folder} is no folder: --from-log names the folder where the daemon keeps what it verified.")
    found = [_sample(line, model, vocab_size, mix) for path in sorted(folder.rglob("*.jsonl")) for line in _lines(path)]
    samples = tuple(sample for sample in found if sample is not None)
    if not samples:
        raise UsageError(f"{folder} holds no completion of {model}: let the daemon keep some first, or name --data.")
    return Logged(samples, len(found) - len(samples))


def _lines(path: Path) -> Iterator[str]:
    with path.open(encoding="utf-8", errors="replace") as file:
        yield from (line for line in file if line.strip())


def _sample(line: str, model: str, vocab_size: int, mix: Mix) -> Sample | None:
    try:
        row: dict[str, Any] = json.loads(line)
        ids, prompt = [int(token) for token in row["ids"]], int(row["prompt_tokens"])
        if row["model"] != model or not 0 < prompt < len(ids) or not all(0 <= token < vocab_size for token in ids):
            return None
        start = max(0, prompt - mix.window)
        kept = tuple(ids[start : prompt + mix.write])
        return Sample("logged", str(row.get("language", "unknown")), kept, 0, prompt - start)
    except (ValueError, KeyError, TypeError):
        return None
