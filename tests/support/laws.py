"""Exact distributions of what verification gives, by walking through every outcome of every random decision."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from random import Random
from typing import cast
from unittest.mock import patch

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from assistant.engine import verify as verify_module
from assistant.engine.sampling import probabilities
from assistant.engine.tree import DraftTree
from assistant.engine.types import Sampling

Law = dict[tuple[int, ...], float]
"""token sequence -> probability"""

Counts = NDArray[np.float64]
"""how often each outcome came up, or how probable it is"""

Logits = Callable[[Sequence[int]], Tensor]
"""context -> (V,) logits of what follows"""


class _Coins:
    """Stands in for `Random`: its number answers comparisons by a script, and keeps the probability of the answers."""

    def __init__(self, script: list[bool]) -> None:
        self.script = script
        self.thrown = 0
        self.weight = 1.0

    def random(self) -> "_Coins":
        return self

    def __lt__(self, chance: float) -> bool:
        if self.thrown == len(self.script):
            self.script.append(True)
        answer = self.script[self.thrown]
        self.thrown += 1
        chance = min(max(chance, 0.0), 1.0)
        self.weight *= chance if answer else 1.0 - chance
        return answer


def outcomes(tree: DraftTree, logits: Tensor, sampling: Sampling) -> Law:
    """What a step writes below the tree's root: accepted tokens and the target's own, with exact probabilities."""
    law: Law = defaultdict(float)
    script: list[bool] = []
    while True:
        coins = _Coins(script)
        lefts: list[Tensor] = []

        def capture(left: Tensor, _rng: object, lefts: list[Tensor] = lefts) -> int:
            lefts.append(left / left.sum())
            return 0

        with patch.object(verify_module, "draw", capture):
            verdict = verify_module.verify_sampled(tree, logits, sampling, cast(Random, coins))
        accepted = tuple(tree.tokens[node] for node in verdict.path)
        if coins.weight > 0.0:
            for token, share in enumerate(lefts[0].tolist()):
                law[*accepted, token] += coins.weight * share
        while script and not script[-1]:
            script.pop()
        if not script:
            return dict(law)
        script[-1] = False


def target_law(logits: Logits, context: Sequence[int], sampling: Sampling, length: int) -> Law:
    """The target's own distribution of the next `length` tokens."""
    law: Law = {(): 1.0}
    for _ in range(length):
        law = {
            (*tokens, token): weight * share
            for tokens, weight in law.items()
            for token, share in enumerate(probabilities(logits([*context, *tokens]), sampling).double().tolist())
            if weight * share > 0.0
        }
    return law


def continued(law: Law, logits: Logits, context: Sequence[int], sampling: Sampling, length: int) -> Law:
    """Cut sequences to `length` tokens, and let the target go on with those that are shorter."""
    full: Law = defaultdict(float)
    for tokens, weight in law.items():
        if len(tokens) >= length:
            full[tokens[:length]] += weight
            continue
        rest = target_law(logits, [*context, *tokens], sampling, length - len(tokens))
        for more, share in rest.items():
            full[tokens + more] += weight * share
    return dict(full)


def distance(a: Law, b: Law) -> float:
    """Total variation between two laws."""
    return sum(abs(a.get(key, 0.0) - b.get(key, 0.0)) for key in a.keys() | b.keys()) / 2


@contextmanager
def scripted_draws(module: object, tokens: Sequence[int]) -> Iterator[None]:
    """Within this, what `module` draws is this script."""
    script = iter(tokens)
    with patch.object(module, "draw", lambda _probs, _rng: next(script)):
        yield


def tree_logits(tree: DraftTree, logits: Logits, context: Sequence[int]) -> Tensor:
    """(m, V) what follows each node, for a tree whose root stands after `context`."""
    rows = [[*context, tree.tokens[0], *(tree.tokens[n] for n in tree.path(node))] for node in range(len(tree))]
    return torch.stack([logits(row) for row in rows])


def total_variation(counts: Counts, law: Counts) -> float:
    """Half the summed differences between the counted shares and the law."""
    return float(np.abs(counts / counts.sum() - law).sum() / 2)


def divergence(counts: Counts, law: Counts) -> float:
    """KL divergence of the counted shares from the law."""
    shares = counts / counts.sum()
    seen = shares > 0
    return float((shares[seen] * np.log(shares[seen] / law[seen])).sum())


def chi_square(counts: Counts, law: Counts) -> float:
    """Pearson's statistic."""
    expected = law * counts.sum()
    return float(((counts - expected) ** 2 / expected).sum())
