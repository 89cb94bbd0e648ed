"""What a precision changes on real source files: agreement with a reference, teacher-forced over the same text."""

import argparse
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from assistant.bench.stats import spread
from assistant.engine.kv_cache import KVCache
from assistant.errors import DocumentError
from models.target import Target
from models.tokenizer import Tokenizer

WINDOW = 512
_ROWS = 64
"""logits of so many rows are held at once for each model"""
_STANDARD = ("argparse.py", "heapq.py", "json/decoder.py", "shlex.py", "statistics.py", "textwrap.py")
"""files of Python's standard library, which every machine has and no part of this program was fitted to"""


def text_files(given: Sequence[Path]) -> list[Path]:
    """The files given, folders as the Python files below them; without any, some of Python's standard library."""
    if not given:
        return [Path(argparse.__file__).parent / name for name in _STANDARD]
    return [file for path in given for file in (sorted(path.rglob("*.py")) if path.is_dir() else [path])]


def read_windows(files: Sequence[Path], tokenizer: Tokenizer, tokens: int) -> list[list[int]]:
    """About `tokens` tokens of source files in windows of at most WINDOW, taken in turn from every file.

    Raises:
        DocumentError: a file cannot be read as UTF-8 text, or all are shorter than two tokens.
    """
    pieces = [_windows(path, tokenizer) for path in files]
    windows: list[list[int]] = []
    counted = 0
    for turn in range(max((len(piece) for piece in pieces), default=0)):
        for piece in pieces:
            if turn < len(piece) and counted < tokens:
                windows.append(piece[turn][: max(2, tokens - counted)])
                counted += len(windows[-1])
    if not windows:
        raise DocumentError("the files given with --texts hold no text to score.")
    return windows


def _windows(path: Path, tokenizer: Tokenizer) -> list[list[int]]:
    try:
        ids = tokenizer.encode(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise DocumentError(f"{path} cannot be read as UTF-8 text.") from error
    windows = [ids[start : start + WINDOW] for start in range(0, len(ids), WINDOW)]
    return [window for window in windows if len(window) > 1]


@dataclass(frozen=True, slots=True)
class _Window:
    """One window's sums."""

    rows: int
    agreed: int
    divergence: float
    loss: float
    reference_loss: float


@torch.inference_mode()
def agreement(
    target: Target,
    reference: Target,
    windows: Sequence[Sequence[int]],
    progress: Callable[[int, int], None] = lambda *_: None,
) -> dict[str, Any]:
    """Teacher-forced over the same text: how often the best token is the same, and KL(reference || target) in nats."""
    scored = []
    for done, window in enumerate(windows, start=1):
        scored.append(_score(target, reference, window))
        progress(done, len(windows))
    rows = sum(window.rows for window in scored)
    return {
        "precision": target.spec.precision,
        "reference": reference.spec.precision,
        "tokens": rows,
        "windows": len(scored),
        "top1_agreement": sum(window.agreed for window in scored) / rows,
        "top1_agreement_by_window": spread([window.agreed / window.rows for window in scored]).to_json(),
        "kl": math.fsum(window.divergence for window in scored) / rows,
        "kl_by_window": spread([window.divergence / window.rows for window in scored]).to_json(),
        "nll": math.fsum(window.loss for window in scored) / rows,
        "nll_reference": math.fsum(window.reference_loss for window in scored) / rows,
    }


def _score(target: Target, reference: Target, window: Sequence[int]) -> _Window:
    ids = torch.tensor(window)
    caches = KVCache.of(target.spec), KVCache.of(reference.spec)
    agreed, divergence, loss, reference_loss = 0, 0.0, 0.0, 0.0
    # Every row predicts the next token; the last has none to be right about.
    for start in range(0, len(window) - 1, _ROWS):
        end = min(start + _ROWS, len(window) - 1)
        ours, theirs = (
            _log_probs(model, ids[start:end], start, cache)
            for model, cache in zip((target, reference), caches, strict=True)
        )
        following = ids[start + 1 : end + 1]
        agreed += int((ours.argmax(-1) == theirs.argmax(-1)).sum())
        divergence += float(F.kl_div(ours, theirs, log_target=True, reduction="sum"))
        loss += float(F.nll_loss(ours, following, reduction="sum"))
        reference_loss += float(F.nll_loss(theirs, following, reduction="sum"))
    return _Window(len(window) - 1, agreed, divergence, loss, reference_loss)


def _log_probs(model: Target, ids: Tensor, start: int, cache: KVCache) -> Tensor:
    """(n, V) log-probabilities in float32 on the CPU."""
    device = model.spec.device
    positions = torch.arange(start, start + len(ids), device=device)
    return torch.log_softmax(model.forward(ids.to(device), positions, cache).logits.float().cpu(), dim=-1)
