"""The draft vocabulary: the tokens that a target writes most, in the languages that it is to write.

A smaller output head is cheaper to draft with (FR-Spec, Zhao et al. 2025); what lies outside can never be drafted. The
texts with features are too few to tell which tokens are frequent: most of a vocabulary would be drawn by chance. So the
source files that they come from are counted too.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

import torch
from torch import Tensor

from assistant.files import write_atomic
from models.tokenizer import Tokenizer
from models.training.corpus import SourceFile
from models.training.features import FeatureText

DRAFT_VOCABULARY = 16_384
"""tokens that a head can draft; of what the default model writes they hold 95 %, and half of them 91 %"""
Counts = Mapping[str, Counter[int]]
"""tokens by language"""
_ENOUGH = 1_000_000
"""tokens of a language's files"""
_FILES = "tokens.json"


def count_tokens(texts: Iterable[FeatureText]) -> dict[str, Counter[int]]:
    """Tokens by language; what the target wrote itself counts four times."""
    counts: dict[str, Counter[int]] = {}
    for text in texts:
        of_language = counts.setdefault(text.language, Counter())
        of_language.update(text.ids.tolist())
        for _ in range(3):
            of_language.update(text.ids[text.prompt_tokens :].tolist())
    return counts


def count_files(files: Iterable[SourceFile], tokenizer: Tokenizer) -> dict[str, Counter[int]]:
    """Tokens of the files to train on, by language, of each language as many as tell which are frequent."""
    counts: dict[str, Counter[int]] = {}
    for file in files:
        of_language = counts.setdefault(file.language, Counter())
        if not file.held_out and of_language.total() < _ENOUGH:
            of_language.update(tokenizer.encode(file.text))
    return counts


def kept_counts(out: Path, make: Callable[[], Counts] = dict) -> Counts:
    """The counts of a run's files, kept in its folder; those that `make` brings where it has none yet."""
    path = out / _FILES
    if not path.exists():
        made = make()
        if made:
            write_atomic(path, json.dumps(made).encode())
        return made
    kept = json.loads(path.read_text(encoding="utf-8"))
    return {language: Counter({int(token): n for token, n in counts.items()}) for language, counts in kept.items()}


def with_total(counts: Mapping[str, Counter[int]]) -> dict[str, Counter[int]]:
    """The counts, and those of all languages together as "all"."""
    return {**counts, "all": sum(counts.values(), Counter())}


def choose(sources: Iterable[Counts], size: int, always: Sequence[int] = ()) -> Tensor:
    """(size,) int64 ids, ascending: `always`, then the most frequent over sources and languages of equal weight.

    Python counts as much as the others together, as in the samples.
    """
    totals: dict[int, float] = {}
    for counts in sources:
        for language, counter in counts.items():
            share = (len(counts) if language == "python" else 1) / max(1, counter.total())
            for token, count in counter.items():
                totals[token] = totals.get(token, 0.0) + count * share
    ranked = sorted(totals, key=lambda token: (-totals[token], token))
    chosen = list(dict.fromkeys([*always, *ranked]))[:size]
    return torch.tensor(sorted(chosen), dtype=torch.int64)


def fill(chosen: Tensor, size: int, others: Iterable[int]) -> Tensor:
    """`chosen` with ids of `others` added until there are `size`; ascending."""
    ids = dict.fromkeys(chosen.tolist())
    for token in others:
        if len(ids) >= size:
            break
        ids.setdefault(token)
    return torch.tensor(sorted(ids), dtype=torch.int64)


def coverage(counts: Mapping[str, Counter[int]], vocabulary: Tensor) -> dict[str, float]:
    """By language, the share of tokens that the vocabulary holds."""
    known = set(vocabulary.tolist())
    return {
        language: sum(n for token, n in counter.items() if token in known) / max(1, counter.total())
        for language, counter in sorted(counts.items())
    }
