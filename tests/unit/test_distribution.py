"""Sampling is lossless: what every method writes has the target's own distribution.

Three proofs on tiny random models. The exact one walks through every outcome of every random decision, so its tolerance
is rounding alone. The counted one draws 10,000 times a method and allows what chance allows. The last one runs whole
completions and counts how probable each written token was.
"""

import itertools
import math
from collections import Counter
from collections.abc import Callable, Sequence
from functools import cache
from random import Random
from unittest.mock import patch

import numpy as np
import pytest
import torch
from torch import Tensor

from assistant.engine import independent as independent_module
from assistant.engine import verify as verify_module
from assistant.engine.generate import _begin, _forward_tree, _read, generate
from assistant.engine.independent import ModelDrafter
from assistant.engine.kv_cache import KVCache
from assistant.engine.methods import METHODS, make_drafter
from assistant.engine.sampling import draw, probabilities
from assistant.engine.session import Session
from assistant.engine.tree import DraftTree, TreeShape
from assistant.engine.types import GenerateOptions, Prompt, Sampling
from assistant.engine.verify import verify_sampled
from models.decoder import LeanDecoder
from models.draft_head import DraftHead
from tests.support.fakes import FakeHead, FakeTarget, NearTarget
from tests.support.laws import (
    Counts,
    Law,
    chi_square,
    continued,
    distance,
    divergence,
    outcomes,
    scripted_draws,
    target_law,
    total_variation,
    tree_logits,
)
from tests.support.prices import COSTS
from tests.support.tiny import tiny_head, tiny_target

VOCAB = 5
PROMPT = (1, 2, 3, 1, 2)
SHAPE = TreeShape(nodes=6, depth=2, width=3)
CHAIN = TreeShape(nodes=1, depth=1, width=1)
SAMPLINGS = [
    Sampling(1.0),
    Sampling(0.5),
    Sampling(1.5),
    Sampling(1.0, top_p=0.8),
    Sampling(1.5, top_k=2),
    Sampling(1.5, top_p=0.9, top_k=3),
    Sampling(1.0, top_k=1),
]


@cache
def models() -> tuple[LeanDecoder, DraftHead, LeanDecoder]:
    """A target, a head and a draft model of five tokens, all random."""
    target = tiny_target(vocab_size=VOCAB)
    return target, tiny_head(target, draft_vocab=None), tiny_target(vocab_size=VOCAB, seed=4)


@cache
@torch.inference_mode()
def target_row(context: tuple[int, ...]) -> Tensor:
    """(V,) the target's logits after a context, from a fresh cache."""
    target, ids = models()[0], torch.tensor(context)
    return target.forward(ids, torch.arange(len(ids)), KVCache.of(target.spec), last_only=True).logits[0]


def target_logits(context: Sequence[int]) -> Tensor:
    return target_row(tuple(context))


def prefilled(method: str) -> Session:
    target, head, draft = models()
    session = Session(target, make_drafter(method, target, head=head, draft=draft, costs=COSTS))
    _read(session, PROMPT, _begin(session, Prompt(PROMPT)))
    return session


@torch.inference_mode()
def judged(session: Session, tree: DraftTree) -> Tensor:
    """The target's logits for a tree."""
    base = session.cache.length
    logits = _forward_tree(session, tree, base).logits
    session.cache.rewind(base)
    return logits


@torch.inference_mode()
def step_law(method: str, first: int, sampling: Sampling) -> Law:
    """What one step after the prefill's token writes, exactly; a sampled chain is every chain by its probability."""
    session = prefilled(method)
    if method != "sps":
        tree = session.drafter.draft(first, SHAPE, sampling, Random(0))
        return outcomes(tree, judged(session, tree), sampling)
    law: Law = {}
    for chain in itertools.product(range(VOCAB), repeat=SHAPE.depth):
        with scripted_draws(independent_module, chain):
            tree = session.drafter.draft(first, SHAPE, sampling, Random(0))
        assert tree.draft_probs is not None
        weight = math.prod(float(tree.draft_probs[node, tree.tokens[node]]) for node in range(1, len(tree)))
        if weight > 0.0:
            for tokens, share in outcomes(tree, judged(session, tree), sampling).items():
                law[tokens] = law.get(tokens, 0.0) + weight * share
    return law


@pytest.mark.parametrize("sampling", SAMPLINGS, ids=str)
@pytest.mark.parametrize("method", METHODS)
def test_the_first_four_tokens_have_exactly_the_targets_distribution(method: str, sampling: Sampling) -> None:
    law: Law = {}
    first_probs = probabilities(target_logits(PROMPT), sampling).double().tolist()
    for first, weight in enumerate(first_probs):
        if weight > 0.0:
            context = (*PROMPT, first)
            step = continued(step_law(method, first, sampling), target_logits, context, sampling, 3)
            law |= {(first, *tokens): weight * share for tokens, share in step.items()}
    assert sum(law.values()) == pytest.approx(1.0, abs=1e-5)
    # float32 rounds logits and softmax; nothing else separates the two.
    assert distance(law, target_law(target_logits, PROMPT, sampling, 4)) < 1e-5


# --- Counted: 10,000 draws a method

DRAWS = 10_000
STATISTICS = (total_variation, divergence, chi_square)


@cache
def pair_law(sampling: Sampling) -> Counts:
    """(V²,) the target's distribution of its first two tokens."""
    law = target_law(target_logits, PROMPT, sampling, 2)
    return np.array([law.get(pair, 0.0) for pair in itertools.product(range(VOCAB), repeat=2)])


@cache
def allowed(sampling: Sampling) -> tuple[float, ...]:
    """The largest value of each statistic in 4,000 experiments of 10,000 draws from the law itself, and of plain
    against plain: a right method exceeds one of them in one of 4,000 seeds, and the seeds here are fixed."""
    law, random = pair_law(sampling), np.random.default_rng(0)
    runs = random.multinomial(DRAWS, law, size=4000).astype(np.float64)
    single = [max(statistic(run, law) for run in runs) for statistic in STATISTICS]
    return (*single, max(total_variation(a, b / DRAWS) for a, b in itertools.pairwise(runs)))


@cache
def trees_after(method: str, sampling: Sampling) -> dict[int, tuple[DraftTree, Tensor]]:
    """Every first token's tree with the target's logits for it."""
    found = {}
    for first in range(VOCAB):
        session = prefilled(method)
        with torch.inference_mode():
            tree = session.drafter.draft(first, SHAPE, sampling, Random(0))
        found[first] = tree, judged(session, tree)
    return found


class Drafts(FakeTarget):
    """The draft model's logits, remembered by context, so that thousands of chains can be drawn from them."""

    def __init__(self) -> None:
        super().__init__(VOCAB, order=99)

    @torch.inference_mode()
    def logits(self, context: Sequence[int]) -> Tensor:
        key = tuple(context)
        if key not in self._known:
            draft, ids = models()[2], torch.tensor(key)
            out = draft.forward(ids, torch.arange(len(ids)), KVCache.of(draft.spec), last_only=True)
            self._known[key] = out.logits[0]
        return self._known[key]


def drawn_pairs(method: str, sampling: Sampling, seed: int) -> Counts:
    """(V²,) counts of the first two tokens in 10,000 completions."""
    rng, counts = Random(seed), np.zeros(VOCAB * VOCAB)
    first_law = probabilities(target_logits(PROMPT), sampling)
    drafter = ModelDrafter(Drafts())
    drafter.begin(Prompt(PROMPT), len(PROMPT))
    for _ in range(DRAWS):
        first = draw(first_law, rng)
        if method == "sps":
            tree = drafter.draft(first, CHAIN, sampling, rng)
            logits = tree_logits(tree, target_logits, PROMPT)
        else:
            tree, logits = trees_after(method, sampling)[first]
        verdict = verify_sampled(tree, logits, sampling, rng)
        second = tree.tokens[verdict.path[0]] if verdict.path else verdict.token
        counts[first * VOCAB + second] += 1
    return counts


PLAIN_SEED = 77


@cache
def plain_pairs(sampling: Sampling) -> Counts:
    return drawn_pairs("plain", sampling, PLAIN_SEED)


def check_counts(counts: Counts, sampling: Sampling) -> None:
    """No further from the target's law, and from a plain run, than plain runs are."""
    law = pair_law(sampling)
    *single, between_two = allowed(sampling)
    for statistic, most in zip(STATISTICS, single, strict=True):
        assert statistic(counts, law) <= most
    assert total_variation(counts, plain_pairs(sampling) / DRAWS) <= between_two
    # The drafted token alone: five classes, whose noise is below 0.01.
    seconds, law_of_seconds = counts.reshape(VOCAB, VOCAB).sum(0), law.reshape(VOCAB, VOCAB).sum(0)
    assert total_variation(seconds, law_of_seconds) < 0.01


@pytest.mark.parametrize("method", METHODS)
def test_ten_thousand_draws_are_as_near_to_the_target_as_plain_ones(method: str) -> None:
    sampling = Sampling(1.0)
    check_counts(drawn_pairs(method, sampling, seed=METHODS.index(method)), sampling)


def too_willing(tree: DraftTree, child: int, left: Tensor, rng: Random) -> tuple[bool, Tensor]:
    """A biased rule: a candidate gets a fifth more than its due."""
    rest = left.index_fill(0, torch.tensor(tree.tokens[child]), 0.0)
    return rng.random() < 1.2 * float(left[tree.tokens[child]]), rest / rest.sum()


def no_residual(tree: DraftTree, child: int, left: Tensor, rng: Random) -> tuple[bool, Tensor]:
    """A biased rule for sampled chains: after a rejection, the target's distribution as it was."""
    assert tree.draft_probs is not None
    token = tree.tokens[child]
    return rng.random() < float(left[token]) / float(tree.draft_probs[child][token]), left


@pytest.mark.parametrize(("method", "rule"), [("eagle2", too_willing), ("sps", no_residual)])
def test_ten_thousand_draws_catch_a_biased_rule(method: str, rule: Callable[..., tuple[bool, Tensor]]) -> None:
    sampling = Sampling(1.0)
    with patch.object(verify_module, "_judge", rule):
        counts = drawn_pairs(method, sampling, seed=0)
    with pytest.raises(AssertionError):
        check_counts(counts, sampling)


# --- Whole completions


def rank_scores(method: str, tokens: int, sampling: Sampling) -> list[float]:
    """How often the target's r-th most probable token was written, in standard deviations from what it should be.

    Given what stands before it, token r has its probability p(r) in every place; so the counts are sums of independent
    chances with known mean and variance, whatever the context.
    """
    target = FakeTarget(6, seed=1, limit=160, order=3)
    head = FakeHead(target, noise=1.0).as_head()
    session = Session(target, make_drafter(method, target, head=head, draft=NearTarget(target, noise=1.0), costs=COSTS))
    counts, mean, variance = Counter[int](), np.zeros(6), np.zeros(6)
    for run in range(tokens // 100):
        prompt = (run % 6, 2, 3)
        options = GenerateOptions(
            max_tokens=100, tree=TreeShape(nodes=5, depth=3, width=3), sampling=Sampling(1.0, seed=run)
        )
        context = list(prompt)
        for step in generate(session, Prompt(prompt), options):
            for token in step.tokens:
                probs = probabilities(target.logits(context), sampling).double()
                order = probs.argsort(descending=True).tolist()
                counts[order.index(token)] += 1
                ranked = probs[order].numpy()
                mean, variance = mean + ranked, variance + ranked * (1 - ranked)
                context.append(token)
    return [(counts[rank] - mean[rank]) / math.sqrt(variance[rank]) for rank in range(6)]


@pytest.mark.parametrize("method", METHODS)
def test_whole_completions_write_tokens_as_often_as_they_are_probable(method: str) -> None:
    # 4 standard deviations in one of six classes: 1 seed in 2,600 would fail, and the seeds are fixed.
    assert max(map(abs, rank_scores(method, 1200, Sampling(1.0)))) < 4.0


def test_whole_completions_drawn_from_something_else_are_caught() -> None:
    assert max(map(abs, rank_scores("eagle2", 1200, Sampling(0.8)))) > 4.0
