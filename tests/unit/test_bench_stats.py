"""The statistics beside every figure, against values worked out by hand."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assistant.bench.stats import Spread, bootstrap, expected_chain_tokens, spread, wilson


def test_quartiles_are_interpolated() -> None:
    assert spread([4.0, 1.0, 3.0, 2.0]) == Spread(1.0, 1.75, 2.5, 3.25, 4.0)


def test_one_value_is_its_own_spread() -> None:
    assert spread([7.0]) == Spread(7.0, 7.0, 7.0, 7.0, 7.0)


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=30))
def test_a_spread_is_ordered(values: list[float]) -> None:
    lies = spread(values)
    assert lies.least <= lies.q1 <= lies.median <= lies.q3 <= lies.most


def test_wilson_interval_of_a_known_case() -> None:
    low, high = wilson(41, 82)
    assert low == pytest.approx(0.3942, abs=1e-3)
    assert high == pytest.approx(0.6058, abs=1e-3)


@given(st.integers(1, 200), st.data())
def test_wilson_holds_the_share_and_stays_a_probability(tried: int, data: st.DataObject) -> None:
    passed = data.draw(st.integers(0, tried))
    low, high = wilson(passed, tried)
    assert 0.0 <= low <= passed / tried + 1e-12
    assert passed / tried - 1e-12 <= high <= 1.0


def test_expected_tokens_of_a_chain() -> None:
    assert expected_chain_tokens(0.5, 2) == pytest.approx(1 + 0.5 + 0.25)
    assert expected_chain_tokens(0.0, 5) == 1.0
    assert expected_chain_tokens(1.0, 4) == 5.0


@given(st.floats(0.0, 1.0), st.integers(1, 12))
def test_the_closed_form_is_the_sum_of_its_series(acceptance: float, drafts: int) -> None:
    series = sum(acceptance**power for power in range(drafts + 1))
    assert expected_chain_tokens(acceptance, drafts) == pytest.approx(series, rel=1e-6)


def test_a_bootstrap_is_as_wide_as_the_standard_error_says() -> None:
    def mean(values: Sequence[float]) -> float:
        return sum(values) / len(values)

    low, high = bootstrap([0.0] * 50 + [1.0] * 50, mean)
    assert low == pytest.approx(0.5 - 1.96 * 0.05, abs=0.02)
    assert high == pytest.approx(0.5 + 1.96 * 0.05, abs=0.02)
    assert bootstrap([3.0], mean) == (3.0, 3.0)
    assert bootstrap([1.0, 2.0], mean) == bootstrap([1.0, 2.0], mean)
