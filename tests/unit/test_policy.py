"""The tree fitted to text and machine: what is chosen follows from values and prices alone."""

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assistant.engine.adaptive import AdaptiveDrafter
from assistant.engine.generate import generate
from assistant.engine.measure import costs_of
from assistant.engine.policy import Attention, Offer, Prices, hopes
from assistant.engine.session import Session
from assistant.engine.tree import TreeShape
from assistant.engine.trust import Trust
from assistant.engine.types import GenerateOptions, Prompt, Sampling, StepResult
from tests.support.fakes import FakeHead, FakeTarget
from tests.support.prices import COSTS
from tests.support.tiny import tiny_head, tiny_target

PRICES = Prices(COSTS)
BOUNDS = TreeShape(nodes=32, depth=16)
VALUES = st.lists(st.floats(0.0, 1.0), max_size=40)


def steps_of(
    noise: float, *, temperature: float = 0.0, tokens: int = 60, seed: int = 0, order: int = 3
) -> list[StepResult]:
    target = FakeTarget(60, seed=seed, order=order, limit=300)
    session = Session(target, AdaptiveDrafter(FakeHead(target, noise=noise).as_head(), PRICES))
    options = GenerateOptions(max_tokens=tokens, tree=BOUNDS, sampling=Sampling(temperature))
    return list(generate(session, Prompt((1, 2, 3)), options))


def price(step: StepResult) -> float:
    levels = 0 if step.tree.plan is None else step.tree.plan.levels
    return COSTS.verify(step.tree.drafted + 1) + COSTS.draft(levels)


@given(values=VALUES, levels=st.integers(0, 8), most=st.integers(0, 40))
def test_no_other_number_of_nodes_promises_more(values: list[float], levels: int, most: int) -> None:
    offer = PRICES.offer(values, levels, most)
    ordered = sorted(values, reverse=True)
    rates = [
        (1 + sum(ordered[:n])) / (COSTS.verify(n + 1) + COSTS.draft(levels)) for n in range(min(most, len(values)) + 1)
    ]
    assert offer.rate == pytest.approx(max(rates))
    assert offer.nodes <= most


def test_sure_text_gets_more_nodes_than_unsure_text_and_hopeless_text_none() -> None:
    sure, unsure, hopeless = ([p**k for k in range(1, 17)] for p in (0.95, 0.5, 0.01))
    offers = [PRICES.offer(values, 1, 32).nodes for values in (sure, unsure, hopeless)]
    assert offers[0] > offers[1] > offers[2] == 0


def test_a_disturbed_measurement_does_not_make_more_rows_cheaper() -> None:
    from dataclasses import replace

    prices = Prices(replace(COSTS, verify_ms={1: 10.0, 8: 7.0, 16: 20.0}))
    assert prices.offer([0.0] * 8, 0, 8).nodes == 0


def test_a_drafter_is_believed_less_where_a_text_is_drawn_hot() -> None:
    factors = [Trust.at(temperature).factor for temperature in (0.0, 0.7, 1.0, 1.25, 1.5, 2.0)]
    assert factors[:3] == [1.0] * 3
    assert factors == sorted(factors, reverse=True)
    assert factors[-1] < factors[-2] < factors[-3] < 0.5
    hot = Trust.at(1.5)
    for _ in range(60):
        hot.see(0.3, right=True)
    assert hot.factor > 1.0


def test_trust_follows_what_was_right() -> None:
    trust = Trust()
    assert trust.factor == 1.0
    for _ in range(50):
        trust.see(0.8, right=False)
    assert trust.factor < 0.3
    for _ in range(200):
        trust.see(0.5, right=True)
    assert trust.factor > 1.0


def test_a_head_that_does_not_pay_is_asked_ever_more_rarely() -> None:
    attention, plain, poor = Attention(PRICES), Offer(0, 1.0, 10.0), Offer(0, 1.0, 10.5)
    asked = []
    for step in range(200):
        if attention.pays(plain):
            asked.append(step)
            attention.see(poor, plain)
    assert len(asked) < 20
    assert asked[-1] - asked[-2] > asked[1] - asked[0]
    for _ in range(8):
        attention.see(Offer(4, 3.0, 12.0), plain)
    assert attention.pays(plain)


@given(values=st.lists(st.floats(0, 1), min_size=1, max_size=5))
def test_hopes_are_no_higher_than_their_parents(values: list[float]) -> None:
    assert all(hope <= max(values) for hope in hopes(values, [1.0] * len(values)))


def test_trees_are_deep_where_the_head_is_sure_and_absent_where_it_is_lost() -> None:
    sure, lost = steps_of(0.05, tokens=200), steps_of(60.0, tokens=200, order=0)
    depths = [max(step.tree.depth for step in steps[1:]) for steps in (sure, lost)]
    assert depths[0] >= 4
    nodes = [sum(step.tree.drafted for step in steps) / len(steps) for steps in (sure, lost)]
    assert nodes[1] < nodes[0] / 3


@settings(deadline=None, max_examples=30)
@given(
    noise=st.sampled_from([0.1, 1.0, 4.0, 60.0]), temperature=st.sampled_from([0.0, 0.7, 1.5]), seed=st.integers(0, 9)
)
def test_by_stored_prices_it_is_hardly_ever_slower_than_plain(noise: float, temperature: float, seed: int) -> None:
    steps = steps_of(noise, temperature=temperature, tokens=200, seed=seed, order=0)[1:]
    tokens, ms = sum(len(step.tokens) for step in steps), sum(map(price, steps))
    assert tokens / ms >= 0.95 / COSTS.verify(1)


def test_the_same_text_has_the_same_trees() -> None:
    first, second = steps_of(1.0), steps_of(1.0)
    assert [step.tree for step in first] == [step.tree for step in second]


def test_plans_ride_along_with_what_was_expected() -> None:
    plans = [step.tree.plan for step in steps_of(0.5) if step.tree.drafted]
    assert plans
    assert all(plan is not None and plan.tokens >= 1.0 and plan.ms > 0.0 and plan.reason for plan in plans)


def test_bounds_hold() -> None:
    target = FakeTarget(order=3)
    drafter = AdaptiveDrafter(FakeHead(target, noise=0.1).as_head(), PRICES)
    session = Session(target, drafter)
    options = GenerateOptions(max_tokens=40, tree=TreeShape(nodes=3, depth=2, width=2))
    for step in generate(session, Prompt((1, 2, 3)), options):
        assert step.tree.drafted <= 3
        assert step.tree.depth <= 2


def test_without_a_head_copies_are_drafted() -> None:
    target = FakeTarget(order=1)
    drafter = AdaptiveDrafter(None, PRICES)
    steps = list(generate(Session(target, drafter), Prompt((1, 2, 3)), GenerateOptions(max_tokens=60, tree=BOUNDS)))
    assert {origin for step in steps for origin in step.tree.origins} == {"", "retrieval"}
    assert not drafter.needs_features
    assert drafter.memory_bytes == 0
    assert drafter.draft(1, TreeShape(nodes=0), Sampling(), Random(0)).drafted == 0


def test_costs_are_measured_once() -> None:
    target = tiny_target("qwen2", "int8")
    first = costs_of(target, None)
    assert first.verify(1) > 0.0
    assert costs_of(target, None).verify_ms == first.verify_ms
    with_head = costs_of(target, tiny_head(target))
    assert with_head.draft_ms
    assert costs_of(target, None).verify_ms == with_head.verify_ms
    assert costs_of(target, tiny_head(target)).draft_ms == with_head.draft_ms
    assert costs_of(target, tiny_head(target, draft_vocab=32)).head != with_head.head
