"""Which path of a draft tree the target accepts, and the token it adds: one rule for every method.

The outcome has the target's own distribution, whatever was drafted: greedily it is the target's own choice at every
node; with sampling, candidates are accepted and rejected such that accepted and replaced tokens together follow it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

import torch
from torch import Tensor

from assistant.engine.sampling import draw, probabilities
from assistant.engine.tree import DraftTree
from assistant.engine.types import Origin, Sampling

_BLOCK = 128


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the target says of a tree."""

    path: tuple[int, ...]
    """accepted nodes from the root's child downwards"""
    token: int
    """the target's own token after that path"""
    origin: Origin
    """CORRECTION where the path's end had rejected children, BONUS at a leaf, TARGET where nothing was drafted"""


def verify(tree: DraftTree, logits: Tensor, sampling: Sampling, rng: Random) -> Verdict:
    """Judge a tree by the target's (m, V) logits, row i scoring what follows node i."""
    if sampling.greedy:
        return verify_greedy(tree, choices(logits).tolist())
    return verify_sampled(tree, logits, sampling, rng)


def choices(logits: Tensor) -> Tensor:
    """(m, V) -> (m,) ids of each row's largest logit, the first where several are equal, as `argmax` names them.

    torch's argmax goes through a row number by number; its amax takes whole vectors, and narrows the search to a block.
    """
    if logits.shape[1] % _BLOCK:
        return logits.argmax(-1)
    blocks = logits.unflatten(1, (-1, _BLOCK))
    first = blocks.amax(-1).argmax(-1, keepdim=True)
    inside = blocks.take_along_dim(first[..., None], 1).argmax(-1)
    chosen: Tensor = (first * _BLOCK + inside).squeeze(1)
    return chosen


def verify_greedy(tree: DraftTree, choices: Sequence[int]) -> Verdict:
    """The longest path whose every token is the target's choice after its parent; `choices[i]` follows node i."""
    path: list[int] = []
    node = 0
    while True:
        match = [child for child in tree.children[node] if tree.tokens[child] == choices[node]]
        if not match:
            return Verdict(tuple(path), choices[node], _origin(tree, node))
        node = match[0]
        path.append(node)


def verify_sampled(tree: DraftTree, logits: Tensor, sampling: Sampling, rng: Random) -> Verdict:
    """Walk down from the root, accepting a child or drawing from what the rejected ones leave of the distribution.

    Deterministic candidates (no `draft_probs`): accept token x with its probability p(x), else take x out,
    renormalise and try the next sibling. Sampled chains: accept with min(1, p(x) / q(x)), else go on with
    norm(max(0, p - q)) (Leviathan et al. 2023, section 2.3, and appendix A.1 for the proof).
    """
    path: list[int] = []
    node = 0
    while True:
        left = probabilities(logits[node], sampling).double().cpu()
        accepted = None
        for child in tree.children[node]:
            accept, left = _judge(tree, child, left, rng)
            if accept:
                accepted = child
                break
        if accepted is None:
            return Verdict(tuple(path), draw(left, rng), _origin(tree, node))
        node = accepted
        path.append(node)


def _judge(tree: DraftTree, child: int, left: Tensor, rng: Random) -> tuple[bool, Tensor]:
    """Accept one candidate or not, given what is left (V,) of the target's distribution; and what is left then."""
    token = tree.tokens[child]
    if tree.draft_probs is None:
        chance = float(left[token])
        rest = left.index_fill(0, torch.tensor(token), 0.0)
    else:
        drafted = tree.draft_probs[child].double().cpu()
        # The token was drawn from q, so q(x) > 0; a float that underflowed to 0 must not divide.
        chance = float(left[token]) / max(float(drafted[token]), 1e-300)
        rest = (left - drafted).clamp_min_(0.0)
    total = float(rest.sum())
    # Nothing is left when p lies wholly on this candidate (or equals q): rejecting it would be a rounding error.
    if rng.random() < chance or total <= 0.0:
        return True, left
    return False, rest / total


def _origin(tree: DraftTree, node: int) -> Origin:
    if tree.drafted == 0:
        return Origin.TARGET
    return Origin.CORRECTION if tree.children[node] else Origin.BONUS
