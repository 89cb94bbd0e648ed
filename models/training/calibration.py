"""What a head's confidence is worth: by depth, how often the target takes a draft of that probability.

A tree ranks its nodes by the product of confidences (EAGLE-2, Li et al. 2024b, section 4.1), so that a depth whose
confidences are too high gets too many nodes. The remedy is a monotone map a depth: it never changes the order of
siblings, and is fitted by pooling adjacent violators.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from assistant.errors import ModelCorruptError, UsageError
from assistant.files import write_atomic
from models.training.features import FeatureText
from models.training.head import TrainableHead
from models.training.simulate import Drafting, grow

FILE = "calibration.json"
_KNOTS = 24
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Observed:
    """Drafts whose parent the target took, at one depth."""

    confidence: Floats
    """(n,) the head's probability"""
    accepted: Floats
    """(n,) 1 where the target took the draft, else 0"""


@dataclass(frozen=True, slots=True)
class Calibration:
    """A monotone map from confidence to acceptance for each depth; deeper drafts use the last."""

    precision: str
    """of the target whose drafts were observed"""
    knots: tuple[tuple[tuple[float, ...], tuple[float, ...]], ...]
    """by depth, confidences in rising order and the acceptance at each"""

    def apply(self, depth: int, confidence: Floats) -> Floats:
        """Acceptance expected of siblings' (width,) confidences at a depth, counted from 1; they sum to at most 1."""
        known, expected = self.knots[min(depth, len(self.knots)) - 1]
        mapped = np.interp(confidence, known, expected)
        total = float(mapped.sum(-1)) if mapped.ndim else float(mapped)
        return mapped / max(1.0, total)

    def save(self, folder: Path) -> None:
        """Write `calibration.json` beside a head."""
        write_atomic(folder / FILE, json.dumps({"precision": self.precision, "knots": self.knots}).encode())

    @classmethod
    def load(cls, folder: Path) -> "Calibration | None":
        """Read what `save` wrote; None where a head has none.

        Raises:
            ModelCorruptError: the file is damaged.
        """
        path = folder / FILE
        if not path.exists():
            return None
        try:
            stored = json.loads(path.read_text(encoding="utf-8"))
            knots = tuple(
                (tuple(map(float, known)), tuple(map(float, expected))) for known, expected in stored["knots"]
            )
            return cls(str(stored["precision"]), knots)
        except (ValueError, KeyError, TypeError) as error:
            raise ModelCorruptError(f"{path} is damaged; run `eagle-assist calibrate` again.") from error


@torch.inference_mode()
def observe(head: TrainableHead, texts: Iterable[FeatureText], drafting: Drafting) -> list[Observed]:
    """By depth, every draft below the path that the target took."""
    levels = [
        level for text in texts if len(text.ids) - text.prompt_tokens > 1 for level in [grow(head, text, drafting)]
    ]
    if not levels:
        raise UsageError("there is no text that the model wrote itself to calibrate on: train with more samples.")
    found = []
    for depth in range(drafting.depth):
        at = [level[depth] for level in levels]
        confidence = torch.cat([level.confidences[level.followed].flatten() for level in at]).double().numpy()
        accepted = torch.cat([level.hits[level.followed].flatten() for level in at]).double().numpy()
        found.append(Observed(confidence, accepted))
    return found


def fit(observed: Sequence[Observed], precision: str) -> Calibration:
    """The map of each depth that is closest to what was observed, in least squares among monotone ones."""
    return Calibration(precision, tuple(_monotone(depth) for depth in observed))


def expected_error(confidence: Floats, accepted: Floats, bins: int = 15) -> float:
    """Expected calibration error: |mean confidence - acceptance| over bins of equal width, weighted by their drafts."""
    if not len(confidence):
        return 0.0
    place = np.minimum((confidence * bins).astype(int), bins - 1)
    gaps = np.bincount(place, confidence - accepted, bins)
    return float(np.abs(gaps).sum() / len(confidence))


def _monotone(observed: Observed) -> tuple[tuple[float, ...], tuple[float, ...]]:
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
