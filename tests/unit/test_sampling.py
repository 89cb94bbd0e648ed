"""From logits to a token: what temperature, top-k and top-p leave, and a draw's exactness."""

import math
from fractions import Fraction
from random import Random
from typing import cast

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from assistant.engine.sampling import draw, probabilities
from assistant.engine.types import Sampling

LOGITS = st.lists(st.one_of(st.floats(-8, 8), st.sampled_from([0.0, 1.0, -math.inf])), min_size=1, max_size=9).filter(
    lambda row: max(row) > -math.inf
)


def reference(row: list[float], sampling: Sampling) -> list[float]:
    """Temperature, then top-k, then top-p of what is left, in Python's floats; ties go to the lower index."""
    peak = max(row)
    weights = [math.exp((x - peak) / sampling.temperature) for x in row]
    order = sorted(range(len(row)), key=lambda i: (-row[i], i))
    kept = order[: sampling.top_k] if sampling.top_k else order
    total = sum(weights[i] for i in kept)
    nucleus: list[int] = []
    before = 0.0
    for i in kept:
        if nucleus and before >= sampling.top_p < 1.0:
            break
        nucleus.append(i)
        before += weights[i] / total
    total = sum(weights[i] for i in nucleus)
    return [weights[i] / total if i in nucleus else 0.0 for i in range(len(row))]


@given(
    row=LOGITS,
    temperature=st.sampled_from([0.5, 1.0, 1.5]),
    top_p=st.sampled_from([1.0, 0.93, 0.71, 0.37, 0.0]),
    top_k=st.integers(0, 10),
)
def test_probabilities_are_the_definitions(row: list[float], temperature: float, top_p: float, top_k: int) -> None:
    # Logits on a grid: float32 and Python must agree on which are equal.
    row = [round(x * 8) / 8 if x > -math.inf else x for x in row]
    sampling = Sampling(temperature, top_p, top_k)
    # Where a cumulative probability meets top_p within float32's rounding, either set is right.
    shifted = [reference(row, Sampling(temperature, top_p + shift, top_k)) for shift in (-1e-6, 1e-6)]
    got = probabilities(torch.tensor(row), sampling).tolist()
    assert any(got == pytest.approx(wanted, abs=1e-6) for wanted in [reference(row, sampling), *shifted])
    assert sum(got) == pytest.approx(1.0, abs=1e-6)


def test_greedy_puts_everything_on_the_first_of_the_best() -> None:
    assert probabilities(torch.tensor([1.0, 5.0, 5.0]), Sampling()).tolist() == [0.0, 1.0, 0.0]


@pytest.mark.parametrize("temperature", [1e-3, 1e-10, 1e-38])
def test_a_temperature_near_0_is_nearly_greedy_and_never_not_a_number(temperature: float) -> None:
    row = torch.tensor([30.0, 80.0, -90.0, -math.inf])
    assert probabilities(row, Sampling(temperature)).tolist() == [0.0, 1.0, 0.0, 0.0]


def test_equal_logits_are_cut_by_index() -> None:
    assert probabilities(torch.zeros(5), Sampling(1.0, top_k=2)).tolist() == [0.5, 0.5, 0.0, 0.0, 0.0]
    assert probabilities(torch.zeros(4), Sampling(1.0, top_p=0.5)).tolist() == [0.5, 0.5, 0.0, 0.0]


class Fixed:
    """A random number that is known."""

    def __init__(self, number: float) -> None:
        self.number = number

    def random(self) -> float:
        return self.number


def drawn(weights: list[float], number: float) -> int:
    return draw(torch.tensor(weights, dtype=torch.float64), cast(Random, Fixed(number)))


@given(st.lists(st.sampled_from([0, 0, 1, 2, 5]), min_size=1, max_size=7).filter(any))
def test_a_draw_covers_each_token_by_exactly_its_weight(weights: list[int]) -> None:
    total = sum(weights)
    start = Fraction(0)
    for token, weight in enumerate(weights):
        end = start + Fraction(weight, total)
        if weight:
            assert drawn(list(map(float, weights)), float(start) + 1e-12) == token
            assert drawn(list(map(float, weights)), float(end) - 1e-12) == token
        start = end


def test_a_draw_never_gives_a_token_without_weight() -> None:
    almost_one = math.nextafter(1.0, 0.0)
    assert drawn([0.0, 0.0, 3.0, 0.0], 0.0) == 2
    assert drawn([0.0, 0.0, 3.0, 0.0], almost_one) == 2
    assert draw(torch.full((1000,), 1e-8), cast(Random, Fixed(almost_one))) == 999
