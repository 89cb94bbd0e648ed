"""From logits to a token: temperature, top-k, top-p, and one draw."""

from random import Random

import torch
from torch import Tensor

from assistant.engine.types import Sampling


def probabilities(logits: Tensor, sampling: Sampling) -> Tensor:
    """The distribution that `sampling` draws from: (V,) float32 logits -> (V,) float32 probabilities.

    Temperature first, then top-k, then top-p on what top-k left, as most engines do. At temperature 0 all probability
    is on the first of the most probable tokens. At least one token always keeps its probability.
    """
    if sampling.greedy:
        return torch.zeros_like(logits).index_fill_(0, logits.argmax(), 1.0)
    # Lowered first: divided by a temperature near 0, a large logit would be infinite, and the softmax not a number.
    probs = torch.softmax((logits.float() - logits.max()) / sampling.temperature, dim=-1)
    if sampling.top_k > 0 or sampling.top_p < 1.0:
        probs = _truncate(probs, sampling)
    return probs


def _truncate(probs: Tensor, sampling: Sampling) -> Tensor:
    # A stable sort breaks ties by index, so that equal logits give equal sets on every run.
    ordered, order = torch.sort(probs, descending=True, stable=True)
    if sampling.top_k > 0:
        ordered[sampling.top_k :] = 0.0
    if sampling.top_p < 1.0:
        ordered = ordered / ordered.sum()
        before = torch.cumsum(ordered, dim=-1) - ordered
        ordered[1:] = torch.where(before[1:] < sampling.top_p, ordered[1:], 0.0)
    return torch.zeros_like(probs).scatter_(0, order, ordered / ordered.sum())


def draw(probs: Tensor, rng: Random) -> int:
    """One token from (V,) non-negative weights, which need not sum to 1; takes one number from `rng`."""
    cumulative = torch.cumsum(probs.double(), dim=-1)
    point = rng.random() * float(cumulative[-1])
    token = int(torch.searchsorted(cumulative, point, right=True))
    # Rounding can put the point at the very end, behind the last token that has any weight.
    return token if token < len(probs) else int(probs.nonzero()[-1])
