"""What a draft head's confidence is worth: by depth, a monotone map from it to the acceptance that was observed.

A tree ranks its nodes by the product of confidences (EAGLE-2, Li et al. 2024b, section 4.1), so that a depth whose
confidences are too high gets too many nodes. The maps are fitted by `models.training.calibration` and lie beside the
head's weights; acceptance depends on the target's precision and on the temperature, so that there is a map for each.
"""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from assistant.errors import ModelCorruptError
from assistant.files import write_atomic

FILE = "calibration.json"
Floats = NDArray[np.float64]
Knots = tuple[tuple[float, ...], tuple[float, ...]]
"""confidences in rising order, and the acceptance at each"""

_NEAR = 0.15
"""temperatures this close may share a map"""
_OWN = 0.02
"""share of the confidence itself in the result: it keeps apart what a flat piece of the map would tie"""
_LEAST = 1e-12


@dataclass(frozen=True, slots=True)
class Calibration:
    """The map for one target, precision and temperature; drafts deeper than it knows use its last depth."""

    model: str
    precision: str
    temperature: float
    knots: tuple[Knots, ...]
    """by depth"""

    def apply(self, depth: int, confidence: Floats) -> Floats:
        """Acceptance expected of drafts at a depth, counted from 1.

        Args:
            depth: of the drafts.
            confidence: (..., w) probabilities of siblings, which the head gave them.

        Returns:
            (..., w) in the same order: a higher confidence never becomes a lower value, and siblings sum to at most 1.
        """
        mapped = self.mapped(depth, confidence)
        mapped /= np.maximum(1.0, mapped.sum(-1, keepdims=True))
        return np.asarray((1 - _OWN) * mapped + _OWN * confidence)

    def mapped(self, depth: int, confidence: Floats) -> Floats:
        """The map alone, of drafts of any nodes at a depth: (...) -> (...)."""
        known, expected = self.knots[min(depth, len(self.knots)) - 1]
        return np.asarray(np.interp(confidence, known, expected))

    def log_values(self, depth: int, log_probs: Floats) -> Floats:
        """The same in logarithms, both ways; finite."""
        return np.asarray(np.log(np.maximum(self.apply(depth, np.exp(log_probs)), _LEAST)))


@dataclass(frozen=True, slots=True)
class Calibrations:
    """All maps that lie beside a head."""

    maps: tuple[Calibration, ...] = ()

    def of(self, model: str, precision: str) -> "Calibrations":
        """Those for one target."""
        return Calibrations(tuple(m for m in self.maps if (m.model, m.precision) == (model, precision)))

    def at(self, temperature: float) -> Calibration | None:
        """The map for a temperature, or for one close by; None where there is none."""
        nearest = min(self.maps, key=lambda m: abs(m.temperature - temperature), default=None)
        return nearest if nearest is not None and abs(nearest.temperature - temperature) <= _NEAR else None

    def with_(self, new: Calibration) -> "Calibrations":
        """These and another, which replaces the one with the same key."""
        key = (new.model, new.precision, new.temperature)
        return replace(self, maps=(*(m for m in self.maps if (m.model, m.precision, m.temperature) != key), new))

    def save(self, folder: Path) -> None:
        """Write `calibration.json` into a head's folder."""
        write_atomic(folder / FILE, json.dumps({"maps": [asdict(m) for m in self.maps]}, indent=1).encode())

    @classmethod
    def load(cls, folder: Path) -> "Calibrations":
        """Read what `save` wrote; empty where a head has none.

        Raises:
            ModelCorruptError: the file is damaged, or a map in it is not monotone.
        """
        path = folder / FILE
        if not path.exists():
            return cls()
        try:
            rows = json.loads(path.read_text(encoding="utf-8"))["maps"]
            return cls(tuple(_read(row) for row in rows))
        except (ValueError, KeyError, TypeError) as error:
            raise ModelCorruptError(f"{path} is damaged; run `eagle-assist calibrate` again.") from error


def _read(row: dict[str, object]) -> Calibration:
    stored = row["knots"]
    if not isinstance(stored, list) or not stored:
        raise TypeError("knots")
    knots = tuple((_rising(known), _rising(expected)) for known, expected in stored)
    if any(len(known) != len(expected) for known, expected in knots):
        raise ValueError("knots of unequal length")
    return Calibration(str(row["model"]), str(row["precision"]), float(str(row["temperature"])), knots)


def _rising(values: Sequence[float]) -> tuple[float, ...]:
    numbers = tuple(float(value) for value in values)
    if not numbers or list(numbers) != sorted(numbers) or not 0 <= numbers[0] <= numbers[-1] <= 1:
        raise ValueError("not a monotone map of probabilities")
    return numbers
