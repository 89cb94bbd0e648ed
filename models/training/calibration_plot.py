"""Confidence against acceptance, by depth, as a picture."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from assistant.files import atomic_file
from models.calibration import Calibration, Floats
from models.training.calibration import Observed, bins_of

_COLUMNS = 3


def draw(calibration: Calibration, observed: Sequence[Observed], path: Path) -> Path | None:
    """Draw what was observed on texts that the maps were not fitted on; None where matplotlib is not installed.

    Args:
        calibration: the maps.
        observed: by depth.
        path: ends in .png or .svg.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError:
        return None
    lines = -(-len(observed) // _COLUMNS)
    figure = Figure(figsize=(3.2 * _COLUMNS, 3.1 * lines), layout="constrained")
    for depth, seen in enumerate(observed, start=1):
        axes = figure.add_subplot(lines, _COLUMNS, depth)
        axes.plot((0, 1), (0, 1), color="#999999", linewidth=0.8)
        for label, values, color in (
            ("as given", seen.confidence, "#c06030"),
            ("calibrated", calibration.mapped(depth, seen.confidence), "#4878a8"),
        ):
            middles, shares, counts = _points(values, seen.accepted)
            axes.scatter(middles, shares, s=6 + 60 * counts / max(1, counts.sum()), color=color, label=label)
        known, expected = calibration.knots[min(depth, len(calibration.knots)) - 1]
        axes.plot(known, expected, color="#c06030", linewidth=0.9, alpha=0.6)
        axes.set(xlim=(0, 1), ylim=(0, 1), title=f"depth {depth}, {len(seen.confidence)} drafts")
        axes.set(xlabel="confidence", ylabel="accepted")
        axes.grid(alpha=0.2)
        if depth == 1:
            axes.legend(fontsize=7, frameon=False)
    about = f"{calibration.model}, {calibration.precision}, temperature {calibration.temperature:g}"
    figure.suptitle(about, fontsize=9)
    with atomic_file(path) as temporary:
        figure.savefig(temporary, dpi=110, format=path.suffix.lstrip(".") or "png", metadata=_undated(path))
    return path


def _points(values: Floats, accepted: Floats) -> tuple[Floats, Floats, Floats]:
    """Mean confidence, acceptance and number of drafts of each bin that has any."""
    place, bins = bins_of(values)
    counts = np.bincount(place, minlength=bins).astype(float)
    some = counts > 0
    sums = [np.bincount(place, of, bins)[some] / counts[some] for of in (values, accepted)]
    return sums[0], sums[1], counts[some]


def _undated(path: Path) -> dict[str, str | None]:
    """The same drafts give the same file."""
    return {"Date": None} if path.suffix == ".svg" else {}
