"""Calibration: confidence against acceptance, and the monotone map between them."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from assistant.errors import ModelCorruptError
from models.training.calibration import FILE, Calibration, Observed, expected_error, fit


def overconfident(count: int, seed: int = 0) -> Observed:
    """A head that is right with the square of the probability it gives."""
    random = np.random.default_rng(seed)
    confidence = random.random(count)
    return Observed(confidence, (random.random(count) < confidence**2).astype(float))


def test_expected_error_is_zero_where_confidence_is_right_and_the_gap_where_it_is_not() -> None:
    accepted = np.array([1.0, 0.0, 1.0, 0.0])
    assert expected_error(np.full(4, 0.5), accepted) == pytest.approx(0.0)
    assert expected_error(np.full(4, 0.9), accepted) == pytest.approx(0.4)


def test_fitting_takes_the_error_away_on_drafts_it_never_saw() -> None:
    seen, other = overconfident(8000), overconfident(4000, seed=1)
    calibration = fit([seen], "int8")
    mapped = np.array([float(calibration.apply(1, np.array([c]))[0]) for c in other.confidence])
    assert expected_error(other.confidence, other.accepted) > 0.1
    assert expected_error(mapped, other.accepted) < 0.04


@given(st.lists(st.floats(0, 1), min_size=2, max_size=8), st.integers(1, 9))
def test_siblings_keep_their_order_and_never_sum_to_more_than_one(raw: list[float], depth: int) -> None:
    calibration = fit([overconfident(500), overconfident(300)], "int8")
    confidence = np.sort(np.array(raw)) / max(1.0, sum(raw))
    mapped = calibration.apply(depth, confidence)
    assert (np.diff(mapped) >= -1e-12).all()
    assert mapped.sum() <= 1 + 1e-9


def test_it_is_stored_beside_a_head_and_a_damaged_file_says_what_to_do(tmp_path: Path) -> None:
    assert Calibration.load(tmp_path) is None
    calibration = fit([overconfident(100)], "int8")
    calibration.save(tmp_path)
    assert Calibration.load(tmp_path) == calibration
    (tmp_path / FILE).write_text("{")
    with pytest.raises(ModelCorruptError, match="calibrate"):
        Calibration.load(tmp_path)
