"""Which tree a step verifies: the one that promises the most tokens a millisecond on this machine.

A step with draft nodes of path values v writes 1 + sum(v) tokens on average (the target's own, and each draft with the
probability that it is accepted) and takes T_draft(levels) + T_verify(nodes + 1). Both sides are known before anything
is verified, so the best number of nodes is found by trying all. Sure text comes out deep and narrow, unsure text
shallow, and where no draft is worth its row the step is a plain one.

Everything is a function of the stored costs and of the text: no clock is read, so the same text has the same trees.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from assistant.engine.cost import Costs

_MOST = 512
_WARM = 3.0
"""steps that a head is believed to be worth its while before anything was seen"""
_MOST_SKIPPED = 32
_HOPES = (0.6, 0.13, 0.06)
"""what the best children of a node are worth before the head was asked (acceptance by rank, see `builders`)"""


@dataclass(frozen=True, slots=True)
class Offer:
    """The best a step can do with some candidates."""

    nodes: int
    """drafts to verify, the most valuable ones"""
    tokens: float
    """expected of the step"""
    ms: float
    """expected of the step"""

    @property
    def rate(self) -> float:
        """Tokens a millisecond."""
        return self.tokens / self.ms


class Prices:
    """A step's price, from what was measured."""

    def __init__(self, costs: Costs) -> None:
        # More rows never cost less, whatever a disturbed measurement says.
        self._verify = np.maximum.accumulate([costs.verify(rows) for rows in range(1, _MOST + 3)])
        self._costs = costs

    @property
    def plain_ms(self) -> float:
        """Of a step without drafts."""
        return float(self._verify[0])

    def draft_ms(self, levels: int) -> float:
        """Of asking the head for so many levels."""
        return self._costs.draft(levels)

    def offer(self, values: Sequence[float], levels: int, most: int) -> Offer:
        """The best step that verifies some of the candidates.

        Args:
            values: path values (probabilities) of the candidates, in any order.
            levels: of the head, that were or will be asked for.
            most: nodes at most.
        """
        best = np.sort(np.asarray(values, dtype=np.float64))[::-1][: min(most, _MOST)]
        tokens = 1.0 + np.concatenate(([0.0], np.cumsum(best)))
        ms = self._verify[: len(tokens)] + self.draft_ms(levels)
        nodes = int(np.argmax(tokens / ms))
        return Offer(nodes, float(tokens[nodes]), float(ms[nodes]))

    def worth_of_row(self, offer: Offer) -> float:
        """The path value above which one more node would pay in a step like this one."""
        return offer.rate * float(self._verify[offer.nodes + 1] - self._verify[offer.nodes])


class Attention:
    """Whether the head is worth asking at all.

    Where its steps promised less than others it is not, and is tried again after longer and longer pauses, since text
    changes.
    """

    def __init__(self, prices: Prices) -> None:
        self._tokens = _WARM * 1.2
        self._ms = _WARM * prices.plain_ms
        self._skipped = 0
        self._pause = 0

    def pays(self, otherwise: Offer) -> bool:
        """Whether to ask the head, where a step without it is as good as `otherwise`."""
        if self._tokens / self._ms >= otherwise.rate:
            return True
        self._skipped += 1
        return self._skipped > self._pause

    def see(self, offer: Offer, otherwise: Offer) -> None:
        """A step with the head promised `offer`; without it there would have been `otherwise`."""
        self._tokens = (1 - 1 / _WARM) * self._tokens + offer.tokens
        self._ms = (1 - 1 / _WARM) * self._ms + offer.ms
        self._skipped = 0
        self._pause = 0 if offer.rate > otherwise.rate else min(2 * self._pause + 1, _MOST_SKIPPED)


def hopes(values: Sequence[float], confidences: Sequence[float]) -> list[float]:
    """Path values of what another level would bring below nodes of these path values and confidences.

    Confidence runs in families: below a node that the head was sure of it mostly stays sure.
    """
    best, *others = _HOPES
    found = [value * (best + confidence) / 2 for value, confidence in zip(values, confidences, strict=True)]
    return found + [value * share for value in values for share in others]
