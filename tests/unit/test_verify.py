"""Verification: greedy is the longest matching path, sampling is the target's own distribution, exactly."""

import itertools
import math
from random import Random
from unittest.mock import patch

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from assistant.engine import verify as verify_module
from assistant.engine.sampling import probabilities
from assistant.engine.tree import DraftTree, chain, root_only
from assistant.engine.types import Origin, Sampling
from assistant.engine.verify import choices, verify, verify_greedy, verify_sampled
from tests.support.fakes import FakeTarget
from tests.support.laws import Law, continued, distance, outcomes, target_law, tree_logits

VOCAB = 5
SAMPLINGS = [
    Sampling(1.0),
    Sampling(0.5),
    Sampling(1.5),
    Sampling(1.0, top_p=0.8),
    Sampling(1.0, top_k=2),
    Sampling(1.5, top_p=0.7, top_k=3),
    Sampling(0.01),
    Sampling(1e-30),
    Sampling(1.0, top_p=0.0),
]


@st.composite
def trees(draw: st.DrawFn, vocab: int = VOCAB, most: int = 7) -> DraftTree:
    """Any tree whose siblings have distinct tokens."""
    tokens, parents, values = [draw(st.integers(0, vocab - 1))], [-1], [0.0]
    for _ in range(draw(st.integers(0, most))):
        parent = draw(st.integers(0, len(tokens) - 1))
        taken = {tokens[n] for n in range(1, len(tokens)) if parents[n] == parent}
        free = [token for token in range(vocab) if token not in taken]
        if free:
            tokens.append(draw(st.sampled_from(free)))
            parents.append(parent)
            values.append(values[parent] - draw(st.sampled_from([0.0, 0.5, 1.0])))
    return DraftTree(tuple(tokens), tuple(parents), tuple(values), ("", *["head"] * (len(tokens) - 1)))


@given(tree=trees(most=12), data=st.data())
def test_greedy_takes_the_longest_path_of_the_targets_choices(tree: DraftTree, data: st.DataObject) -> None:
    choices = [data.draw(st.integers(0, VOCAB - 1)) for _ in tree.tokens]
    matching = [
        tree.path(node)
        for node in range(len(tree))
        if all(tree.tokens[n] == choices[tree.parents[n]] for n in tree.path(node))
    ]
    longest = max(matching, key=len)
    verdict = verify_greedy(tree, choices)
    assert verdict.path == longest
    end = longest[-1] if longest else 0
    assert verdict.token == choices[end]
    drafted_below = any(parent == end for parent in tree.parents)
    wanted = Origin.TARGET if len(tree) == 1 else Origin.CORRECTION if drafted_below else Origin.BONUS
    assert verdict.origin is wanted


@pytest.mark.parametrize("size", [1, 96, 128, 4096, 49152])
def test_choices_are_argmax_s_whatever_is_equal_or_no_number(size: int) -> None:
    logits = torch.randn(7, size, generator=torch.Generator().manual_seed(size)).round_()
    logits[1] = 0.0
    logits[2] = -math.inf
    logits[3, size // 2] = math.inf
    logits[4, [size // 3, size // 2]] = math.nan
    assert torch.equal(choices(logits), logits.argmax(-1))


def test_greedy_takes_the_first_of_equal_logits_whatever_was_drafted() -> None:
    logits = torch.tensor([[1.0, 3.0, 3.0, 3.0]] * 2)
    assert verify(chain(0, [2], [-0.1], "head"), logits, Sampling(), Random(0)).token == 1
    assert verify(chain(0, [1], [-0.1], "head"), logits, Sampling(), Random(0)).path == (1,)


def same_law(tree: DraftTree, target: FakeTarget, sampling: Sampling, tolerance: float = 1e-6) -> None:
    """What a step below the root writes, and the target's own distribution, are the same up to float32's rounding."""
    length = tree.depth + 1
    context = (1, 2)
    root = [*context, tree.tokens[0]]
    written = outcomes(tree, tree_logits(tree, target.logits, context), sampling)
    wanted = target_law(target.logits, root, sampling, length)
    assert distance(continued(written, target.logits, root, sampling, length), wanted) < tolerance


@pytest.mark.parametrize("sampling", SAMPLINGS, ids=str)
@settings(max_examples=12)
@given(tree=trees(), seed=st.integers(0, 10_000), spread=st.sampled_from([0.0, 1.0, 4.0]))
def test_deterministic_candidates_leave_the_targets_distribution_as_it_is(
    sampling: Sampling, tree: DraftTree, seed: int, spread: float
) -> None:
    if tree.depth > 3:
        return
    same_law(tree, FakeTarget(VOCAB, seed=seed, spread=spread), sampling)


def extreme(rows: dict[int, list[float]]) -> FakeTarget:
    """A target of order 1 with these logits after each token."""
    target = FakeTarget(len(next(iter(rows.values()))), order=1)
    target._known = {(token,): torch.tensor(row) for token, row in rows.items()}
    return target


INF = math.inf


@pytest.mark.parametrize(
    "row",
    [
        [0.0, -INF, -INF, -INF],
        [-INF, 0.0, -INF, -INF],
        [0.0, 0.0, -INF, -INF],
        [-INF, -INF, 1.0, 1.0],
        [0.0, -200.0, -INF, -INF],
        [80.0, 0.0, -80.0, 0.0],
        [0.0, 0.0, 0.0, 0.0],
    ],
)
@pytest.mark.parametrize("sampling", [Sampling(1.0), Sampling(0.5, top_p=0.9), Sampling(1.5, top_k=1)], ids=str)
def test_probabilities_of_0_and_1_and_more_siblings_than_support(row: list[float], sampling: Sampling) -> None:
    target = extreme(dict.fromkeys(range(4), row))
    siblings = DraftTree((0, 0, 1, 2, 3, 1), (-1, 0, 0, 0, 0, 1), (0.0, -0.1, -0.2, -0.3, -0.4, -0.5), ("",) * 6)
    same_law(siblings, target, sampling)


def sampled_chain_law(p_rows: list[Tensor], q_rows: list[Tensor], sampling: Sampling) -> Law:
    """A step's outcomes when its chain is drawn from q: over all chains, each with its probability."""
    vocab = len(p_rows[0])
    law: Law = {}
    for tokens in itertools.product(range(vocab), repeat=len(q_rows)):
        weight = math.prod(float(q[token]) for q, token in zip(q_rows, tokens, strict=True))
        if weight == 0.0:
            continue
        plain = chain(0, tokens, [0.0] * len(tokens), "draft")
        drawn = torch.stack([torch.zeros(vocab), *q_rows])
        tree = DraftTree(plain.tokens, plain.parents, plain.log_values, ("", *["draft"] * len(tokens)), drawn)
        for outcome, share in outcomes(tree, torch.stack(p_rows), sampling).items():
            law[outcome] = law.get(outcome, 0.0) + weight * share
    return law


def first_token(law: Law) -> list[float]:
    return [sum(share for tokens, share in law.items() if tokens[0] == token) for token in range(4)]


@pytest.mark.parametrize(
    ("p", "q"),
    [
        ([0.4, 0.3, 0.2, 0.1], [0.1, 0.2, 0.3, 0.4]),
        ([0.4, 0.3, 0.2, 0.1], [0.4, 0.3, 0.2, 0.1]),
        ([0.5, 0.5, 0.0, 0.0], [0.0, 0.0, 0.5, 0.5]),
        ([1.0, 0.0, 0.0, 0.0], [0.25, 0.25, 0.25, 0.25]),
        ([0.25, 0.25, 0.25, 0.25], [1.0, 0.0, 0.0, 0.0]),
        ([0.0, 1.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0]),
        ([0.7, 0.3, 0.0, 0.0], [1e-30, 1.0, 0.0, 0.0]),
    ],
    ids=["crossed", "equal", "disjoint", "certain target", "certain draft", "both certain", "nearly impossible draft"],
)
def test_a_sampled_chain_leaves_the_targets_distribution_as_it_is(p: list[float], q: list[float]) -> None:
    row, drafted = torch.tensor(p), torch.tensor(q)
    law = sampled_chain_law([row.log()] * 3, [drafted, drafted], Sampling(1.0))
    assert sum(law.values()) == pytest.approx(1.0, abs=1e-6)
    assert first_token(law) == pytest.approx(p, abs=1e-6)
    # Given an accepted first token, the second one follows the target too.
    for first, second in itertools.product(range(4), repeat=2):
        both = sum(share for tokens, share in law.items() if tokens[:2] == (first, second))
        longer = sum(share for tokens, share in law.items() if len(tokens) > 1 and tokens[0] == first)
        assert both == pytest.approx(longer * p[second], abs=1e-6)


@given(
    logits=st.lists(st.floats(-4, 4), min_size=8, max_size=8),
    sampling=st.sampled_from(SAMPLINGS),
)
@settings(max_examples=60)
def test_any_target_and_any_draft_give_the_targets_distribution(logits: list[float], sampling: Sampling) -> None:
    p_row, q_row = torch.tensor(logits[:4]), torch.tensor(logits[4:])
    wanted = probabilities(p_row, sampling).tolist()
    law = sampled_chain_law([p_row] * 2, [probabilities(q_row, sampling)], sampling)
    assert first_token(law) == pytest.approx(wanted, abs=1e-6)


def test_nothing_drafted_draws_from_the_target() -> None:
    row = torch.tensor([0.1, 0.6, 0.3]).log()
    law = outcomes(root_only(0), row[None], Sampling(1.0))
    assert [law[token,] for token in range(3)] == pytest.approx([0.1, 0.6, 0.3])
    assert verify(root_only(0), row[None], Sampling(1.0), Random(0)).origin is Origin.TARGET


def test_real_draws_follow_the_exact_law() -> None:
    """10,000 draws with a seed: every share within 4.5 standard deviations, which 1 seed in 10,000 would fail."""
    target = FakeTarget(VOCAB, seed=5)
    tree = DraftTree((3, 1, 2, 0, 4), (-1, 0, 0, 1, 1), (0.0, -0.1, -0.9, -0.5, -0.6), ("", *["head"] * 4))
    logits = tree_logits(tree, target.logits, (1,))
    sampling = Sampling(1.0)
    law = outcomes(tree, logits, sampling)
    rng, draws = Random(1), 10_000
    counts = dict.fromkeys(law, 0)
    for _ in range(draws):
        verdict = verify_sampled(tree, logits, sampling, rng)
        counts[*(tree.tokens[node] for node in verdict.path), verdict.token] += 1
    for outcome, share in law.items():
        assert abs(counts[outcome] / draws - share) <= 4.5 * math.sqrt(share * (1 - share) / draws) + 1e-9


def without_renormalising(tree: DraftTree, child: int, left: Tensor, rng: Random) -> tuple[bool, Tensor]:
    chance = float(left[tree.tokens[child]])
    return rng.random() < chance, left.index_fill(0, torch.tensor(tree.tokens[child]), 0.0)


def without_removing(tree: DraftTree, child: int, left: Tensor, rng: Random) -> tuple[bool, Tensor]:
    return rng.random() < float(left[tree.tokens[child]]), left


def too_willing(tree: DraftTree, child: int, left: Tensor, rng: Random) -> tuple[bool, Tensor]:
    rest = left.index_fill(0, torch.tensor(tree.tokens[child]), 0.0)
    return rng.random() < 1.05 * float(left[tree.tokens[child]]), rest / rest.sum()


@pytest.mark.parametrize("mutant", [without_renormalising, without_removing, too_willing])
def test_a_biased_verifier_is_caught(mutant: object) -> None:
    tree = DraftTree((3, 1, 2, 0), (-1, 0, 0, 1), (0.0, -0.1, -0.9, -0.5), ("", *["head"] * 3))
    with patch.object(verify_module, "_judge", mutant), pytest.raises(AssertionError):
        same_law(tree, FakeTarget(VOCAB, seed=5, spread=0.5), Sampling(1.0), tolerance=1e-3)
