"""Calibration: confidence against acceptance, and the monotone map between them."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from assistant.errors import ModelCorruptError
from models.calibration import FILE, Calibration, Calibrations
from models.training.calibration import Observed, expected_error, fit, judge
from models.training.calibration_plot import draw


def overconfident(count: int, seed: int = 0) -> Observed:
    """A head that is right with the square of the probability it gives."""
    random = np.random.default_rng(seed)
    confidence = random.random(count)
    return Observed(confidence, (random.random(count) < confidence**2).astype(float))


def calibration(*observed: Observed, temperature: float = 0.0) -> Calibration:
    return Calibration("tiny", "int8", temperature, fit(observed))


def test_expected_error_is_zero_where_confidence_is_right_and_the_gap_where_it_is_not() -> None:
    accepted = np.array([1.0, 0.0, 1.0, 0.0])
    assert expected_error(np.full(4, 0.5), accepted) == pytest.approx(0.0)
    assert expected_error(np.full(4, 0.9), accepted) == pytest.approx(0.4)


def test_fitting_takes_the_error_away_on_drafts_it_never_saw() -> None:
    judged = judge(calibration(overconfident(8000)), [overconfident(4000, seed=1)])
    assert judged["error"] > 0.1
    assert judged["error_calibrated"] < 0.04
    assert judged["rows"][0]["error_calibrated"] == pytest.approx(judged["error_calibrated"])


@given(st.lists(st.floats(0, 1), min_size=2, max_size=8), st.integers(1, 9))
def test_siblings_keep_their_order_and_never_sum_to_more_than_one(raw: list[float], depth: int) -> None:
    fitted = calibration(overconfident(500), overconfident(300))
    confidence = np.sort(np.array(raw)) / max(1.0, sum(raw))
    mapped = fitted.apply(depth, confidence)
    assert (np.diff(mapped) >= -1e-12).all()
    assert mapped.sum() <= 1 + 1e-9
    values = fitted.log_values(depth, np.log(np.maximum(confidence, 1e-300)))
    assert np.isfinite(values).all()
    assert (values <= 1e-9).all()


def test_a_flat_piece_of_the_map_keeps_different_confidences_apart() -> None:
    flat = Calibration("tiny", "int8", 0.0, (((0.0, 1.0), (0.3, 0.3)),))
    low, high = flat.apply(1, np.array([0.2, 0.4]))
    assert low < high


def test_maps_are_found_by_model_precision_and_temperature(tmp_path: Path) -> None:
    assert Calibrations.load(tmp_path) == Calibrations()
    greedy, warm = calibration(overconfident(100)), calibration(overconfident(100, 1), temperature=0.8)
    stored = Calibrations().with_(greedy).with_(warm).with_(greedy)
    stored.save(tmp_path)
    loaded = Calibrations.load(tmp_path)
    assert len(loaded.maps) == 2
    ours = loaded.of("tiny", "int8")
    assert ours.at(0.0) == greedy
    assert ours.at(0.7) == warm
    assert ours.at(0.4) is None
    assert loaded.of("tiny", "float32").at(0.0) is None
    assert loaded.of("other", "int8").at(0.0) is None


@pytest.mark.parametrize(
    "text",
    [
        "{",
        '{"maps": [{"model": "m"}]}',
        json.dumps({"maps": [{"model": "m", "precision": "p", "temperature": 0, "knots": [[[0.0, 1.0], [0.9, 0.1]]]}]}),
    ],
)
def test_a_damaged_or_falling_map_says_what_to_do(tmp_path: Path, text: str) -> None:
    (tmp_path / FILE).write_text(text)
    with pytest.raises(ModelCorruptError, match="calibrate"):
        Calibrations.load(tmp_path)


def test_the_plot_shows_every_depth(tmp_path: Path) -> None:
    seen = [overconfident(200), overconfident(100)]
    drawn = draw(calibration(*seen), seen, tmp_path / "plot.svg")
    assert drawn is not None
    assert "depth 2, 100 drafts" in drawn.read_text()
