"""What a target thinks of a text that it has written: the probability of each token, and of the runner-up."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch

from assistant.engine.session import Session
from assistant.engine.types import Prompt

_OTHERS = 3


@dataclass(frozen=True, slots=True)
class Reviewed:
    """One token of a text."""

    token: int
    log_prob: float
    others: tuple[tuple[int, float], ...]
    """the most probable tokens but for this one, with the logarithms of their probabilities"""


@torch.inference_mode()
def review(session: Session, prompt: Prompt, tokens: Sequence[int]) -> list[Reviewed]:
    """Each of `tokens`, n of them, behind a prompt, in one forward of n rows where the session holds the prompt.

    The session holds the prompt and the text but for its last token afterwards.
    """
    with session.moving():
        start = session.begin(prompt)
        ids = (*prompt.ids, *tokens[:-1])
        rows = torch.tensor(ids[start:], device=session.target.spec.device)
        positions = torch.arange(start, len(ids), device=rows.device)
        session.cache.reserve(len(ids))
        forward = session.target.forward(rows, positions, session.cache)
        session.commit(start, range(len(rows)), ids[start:])
        session.drafter.observe(ids[start:], forward.features)
    scores = torch.log_softmax(forward.logits[-len(tokens) :].float(), dim=-1)
    best = scores.topk(min(_OTHERS + 1, scores.shape[-1]), dim=-1)
    found = []
    for row, token in enumerate(tokens):
        ranked = zip(best.indices[row].tolist(), best.values[row].tolist(), strict=True)
        others = tuple((other, value) for other, value in ranked if other != token)
        found.append(Reviewed(token, float(scores[row, token]), others[:_OTHERS]))
    return found


def confidence(reviewed: Sequence[Reviewed]) -> float:
    """The geometric mean of the tokens' probabilities; 1 for no token."""
    return math.exp(sum(one.log_prob for one in reviewed) / max(1, len(reviewed)))


def deviations(reviewed: Sequence[Reviewed], first: int = 0) -> list[tuple[int, int]]:
    """Where another text may part from this one, from place `first` on, and by which token; the most probable first."""
    scores = []
    path = 0.0
    for place, one in enumerate(reviewed):
        if place >= first:
            scores += [(-(path + value), place, token) for token, value in one.others]
        path += one.log_prob
    return [(place, token) for _, place, token in sorted(scores)]
