"""Fitting `models.calibration`: by depth, how often the target takes a draft of which the head was so sure.

Isotonic regression by pooling adjacent violators: of all monotone maps, the one closest to what was observed.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from assistant.errors import UsageError
from models.calibration import Calibration, Floats, Knots
from models.training.features import FeatureText
from models.training.head import TrainableHead
from models.training.simulate import Drafting, Level, grow

_BINS, _KNOTS = 15, 24

TargetProbability = Callable[[Tensor, Tensor], Tensor]
"""(S, H) features and (S, w) token ids -> (S, w) the target's probabilities, at the temperature that is meant"""


@dataclass(frozen=True, slots=True)
class Observed:
    """Drafts whose parent the target took, at one depth."""

    confidence: Floats
    """(n,) the head's probability"""
    accepted: Floats
    """(n,) 1 where the target took the draft, else 0"""


@torch.inference_mode()
def observe(
    head: TrainableHead,
    texts: Iterable[FeatureText],
    drafting: Drafting,
    temperature: float = 0.0,
    probability: TargetProbability | None = None,
) -> list[Observed]:
    """By depth, every draft below the path that the target took.

    Args:
        head: that drafts.
        texts: with what the target wrote.
        drafting: how.
        temperature: of the head's confidences and of acceptance; 0 is greedy, where confidences are those at 1.
        probability: the target's, needed above 0: a draft is then accepted with it (`assistant.engine.verify`).

    Raises:
        UsageError: the target wrote nothing in any text.
    """
    found: list[tuple[list[Floats], list[Floats]]] = [([], []) for _ in range(drafting.depth)]
    for text in texts:
        if len(text.ids) - text.prompt_tokens < 2:
            continue
        for depth, level in enumerate(grow(head, text, drafting, temperature or 1.0)):
            confidence, accepted = found[depth]
            confidence.append(level.confidences[level.followed].flatten().double().numpy())
            accepted.append(_accepted(level, text, depth, probability).flatten().double().numpy())
    if not found[0][0]:
        raise UsageError("there is no text that the model wrote itself to calibrate on: train with more samples.")
    return [Observed(np.concatenate(confidence), np.concatenate(accepted)) for confidence, accepted in found]


def _accepted(level: Level, text: FeatureText, depth: int, probability: TargetProbability | None) -> Tensor:
    """(S', width) how probably the target takes each child of the nodes on the text's path."""
    hits = level.hits[level.followed]
    if probability is None or not len(hits):
        return hits.float()
    roots = torch.arange(max(text.prompt_tokens, 1), len(text.ids) - 1)[level.followed]
    return probability(text.features[roots + depth], level.tokens[level.followed])


def fit(observed: Sequence[Observed]) -> tuple[Knots, ...]:
    """The map of each depth that is closest to what was observed, in least squares among monotone ones."""
    return tuple(_monotone(depth) for depth in observed)


def judge(calibration: Calibration, observed: Sequence[Observed]) -> dict[str, Any]:
    """Rows by depth, and the expected calibration error over all drafts, before and after.

    Args:
        calibration: the maps.
        observed: drafts of texts that the maps were not fitted on.
    """
    mapped = [calibration.mapped(depth, seen.confidence) for depth, seen in enumerate(observed, start=1)]
    rows = [
        {
            "depth": depth,
            "drafts": len(seen.confidence),
            "confidence": float(seen.confidence.mean()) if len(seen.confidence) else 0.0,
            "acceptance": float(seen.accepted.mean()) if len(seen.accepted) else 0.0,
            "error": expected_error(seen.confidence, seen.accepted),
            "error_calibrated": expected_error(after, seen.accepted),
        }
        for depth, (seen, after) in enumerate(zip(observed, mapped, strict=True), start=1)
    ]
    accepted = np.concatenate([seen.accepted for seen in observed])
    return {
        "rows": rows,
        "error": expected_error(np.concatenate([seen.confidence for seen in observed]), accepted),
        "error_calibrated": expected_error(np.concatenate(mapped), accepted),
    }


def expected_error(confidence: Floats, accepted: Floats) -> float:
    """Expected calibration error: |mean confidence - acceptance| over bins of equal width, weighted by their drafts."""
    if not len(confidence):
        return 0.0
    place, bins = bins_of(confidence)
    gaps = np.bincount(place, confidence - accepted, bins)
    return float(np.abs(gaps).sum() / len(confidence))


def bins_of(confidence: Floats) -> tuple[NDArray[np.int64], int]:
    """(n,) the bin of each, of bins of equal width, and how many there are."""
    return np.minimum((confidence * _BINS).astype(np.int64), _BINS - 1), _BINS


def _monotone(observed: Observed) -> Knots:
    """Pool adjacent violators over bins of like many drafts."""
    order = np.argsort(observed.confidence, kind="stable")
    if not len(order):
        return (0.0, 1.0), (0.0, 1.0)
    parts = np.array_split(order, min(_KNOTS, len(order)))
    pools: list[tuple[float, float, int]] = []
    for part in parts:
        pools.append((float(observed.confidence[part].mean()), float(observed.accepted[part].mean()), len(part)))
        while len(pools) > 1 and pools[-2][1] > pools[-1][1]:
            second, first = pools.pop(), pools.pop()
            pools.append(_pooled(first, second))
    known = (0.0, *(pool[0] for pool in pools), 1.0)
    expected = (0.0, *(pool[1] for pool in pools), max(pools[-1][1], pools[-1][0]))
    return known, expected


def _pooled(first: tuple[float, float, int], second: tuple[float, float, int]) -> tuple[float, float, int]:
    count = first[2] + second[2]
    return (
        (first[0] * first[2] + second[0] * second[2]) / count,
        (first[1] * first[2] + second[1] * second[2]) / count,
        count,
    )
