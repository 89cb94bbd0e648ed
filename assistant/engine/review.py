"""What a target thinks of texts: the probability of each token, and of the runners-up."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch

from assistant.engine.aside import Aside, after


@dataclass(frozen=True, slots=True)
class Passage:
    """A text that follows a beginning of a session's."""

    rows: int
    """tokens of the session that stand before it, 1 or more; those behind them it does not see"""
    tokens: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Reviewed:
    """One token of a text."""

    token: int
    log_prob: float
    others: tuple[tuple[int, float], ...]
    """the most probable tokens but for this one, with the logarithms of their probabilities"""
    node: int
    """of the aside, that it follows"""


def review(aside: Aside, passages: Sequence[Passage], *, others: int = 0) -> list[list[Reviewed]]:
    """Each token of each passage, in one forward with a row for every token that two passages do not share.

    Args:
        aside: where the rows are put.
        passages: of one token or more each.
        others: so many of the most probable other tokens are found for each.

    Raises:
        ContextOverflowError: they do not fit behind the session's text (`Aside.room`).
    """
    first = aside.size
    tokens: list[int] = []
    parents: list[int] = []
    nodes: dict[tuple[int, int], int] = {}

    def node(token: int, parent: int) -> int:
        if (parent, token) not in nodes:
            nodes[parent, token] = first + len(tokens)
            tokens.append(token)
            parents.append(parent)
        return nodes[parent, token]

    paths = []
    for passage in passages:
        path = [node(aside.text[passage.rows - 1], after(passage.rows - 1))]
        for token in passage.tokens[:-1]:
            path.append(node(token, path[-1]))
        paths.append(path)
    judged = _Judged(aside.grow(tokens, parents), first, others)
    return [judged.path(path, passage.tokens) for path, passage in zip(paths, passages, strict=True)]


class _Judged:
    """What a forward says of the tokens behind its nodes.

    Args:
        logits: (n, V).
        first: the first of the nodes.
        others: how many of the most probable tokens are known.
    """

    def __init__(self, logits: torch.Tensor, first: int, others: int) -> None:
        self._logits, self._first = logits.float(), first
        self._whole = self._logits.logsumexp(-1)
        self._ranked: list[list[tuple[int, float]]] | None = None
        if others:
            best = self._logits.topk(min(others + 1, logits.shape[-1]), dim=-1)
            values = (best.values - self._whole[:, None]).tolist()
            self._ranked = [list(zip(*row, strict=True)) for row in zip(best.indices.tolist(), values, strict=True)]

    def path(self, nodes: Sequence[int], tokens: Sequence[int]) -> list[Reviewed]:
        """Tokens that follow nodes, one each."""
        rows = [node - self._first for node in nodes]
        values = (self._logits[rows, list(tokens)] - self._whole[rows]).tolist()
        return [
            Reviewed(token, value, self._others(row, token), node)
            for token, value, row, node in zip(tokens, values, rows, nodes, strict=True)
        ]

    def _others(self, row: int, token: int) -> tuple[tuple[int, float], ...]:
        if self._ranked is None:
            return ()
        return tuple((other, value) for other, value in self._ranked[row] if other != token)[
            : len(self._ranked[row]) - 1
        ]


def log_prob(reviewed: Sequence[Reviewed]) -> float:
    """The logarithm of a text's probability."""
    return sum(one.log_prob for one in reviewed)


def confidence(log_probability: float, tokens: int) -> float:
    """The geometric mean of the probabilities of so many tokens; 1 for none."""
    return math.exp(log_probability / max(1, tokens))


def deviations(reviewed: Sequence[Reviewed], first: int = 0) -> list[tuple[float, int, int]]:
    """Where another text may part from this one, from place `first` on, the most probable first.

    Each is the logarithm of its beginning's probability, the place, and the token there.
    """
    scores = []
    path = 0.0
    for place, one in enumerate(reviewed):
        if place >= first:
            scores += [(path + value, place, token) for token, value in one.others]
        path += one.log_prob
    return sorted(scores, key=lambda found: (-found[0], *found[1:]))
