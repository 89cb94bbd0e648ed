"""The draft vocabulary: the tokens that a target writes most, in the languages that it is to write.

A smaller output head is cheaper to draft with (FR-Spec, Zhao et al. 2025); what lies outside can never be drafted.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import torch
from torch import Tensor

from models.training.features import FeatureText


def count_tokens(texts: Iterable[FeatureText]) -> dict[str, Counter[int]]:
    """Tokens by language; what the target wrote itself counts four times."""
    counts: dict[str, Counter[int]] = {}
    for text in texts:
        of_language = counts.setdefault(text.language, Counter())
        of_language.update(text.ids.tolist())
        for _ in range(3):
            of_language.update(text.ids[text.prompt_tokens :].tolist())
    return counts


def with_total(counts: Mapping[str, Counter[int]]) -> dict[str, Counter[int]]:
    """The counts, and those of all languages together as "all"."""
    return {**counts, "all": sum(counts.values(), Counter())}


def choose(counts: Mapping[str, Counter[int]], size: int, always: Sequence[int] = ()) -> Tensor:
    """(size,) int64 ids, ascending: `always`, then the most frequent over languages of equal weight.

    Python counts as much as the others together, as in the samples.
    """
    totals: dict[int, float] = {}
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
