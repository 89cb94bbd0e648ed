"""The tree fitted to text and machine: each step asks of head and retrieval what pays, by `policy`, and no more."""

import math
from collections.abc import Sequence
from dataclasses import replace
from random import Random

from torch import Tensor

from assistant.engine.builders import worth_verifying
from assistant.engine.eagle import EagleDrafter
from assistant.engine.growth import Children, Expand, Growth
from assistant.engine.ngram import NgramDrafter
from assistant.engine.policy import Attention, Offer, Prices, hopes
from assistant.engine.tree import DraftTree, Plan, TreeShape, root_only
from assistant.engine.trust import Trust
from assistant.engine.types import Origin, Prompt, Sampling
from models.draft_head import DraftHead

_NOTHING = "nothing found that is worth verifying"
_COPIED = "copied text, as far as it promises to pay"
_RESTS = "the head has not paid lately"
_DEEPER = "another level would not pay"
_BOUND = "as deep as it may be"


class AdaptiveDrafter:
    """Retrieval and, where there is one, a head, whose candidates compete by expected tokens a millisecond.

    A completion begins with what the head's calibration says and with retrieval's priors; what the target then accepts
    corrects both, for this text.
    """

    def __init__(self, head: DraftHead | None, prices: Prices) -> None:
        self.needs_features = head is not None
        self._eagle = None if head is None else EagleDrafter(head, self._grow)
        self._ngram = NgramDrafter()
        self._prices = prices
        self._trust: Trust | None = None
        self._attention = Attention(prices)
        self._copy: tuple[list[int], list[float]] = ([], [])
        self._drafted: DraftTree | None = None
        self._accepted: list[int] = []

    @property
    def memory_bytes(self) -> int:
        """Size of the head's cache."""
        return 0 if self._eagle is None else self._eagle.memory_bytes

    def begin(self, prompt: Prompt, reused: int) -> int:
        """Forget what the last text taught: the same prompt has the same trees."""
        self._trust, self._attention, self._drafted = None, Attention(self._prices), None
        known = self._ngram.begin(prompt, reused)
        return known if self._eagle is None else self._eagle.begin(prompt, reused)

    def observe(self, ids: Sequence[int], features: Tensor) -> None:
        """Both observe; the ids after a draft's root are what was accepted of it."""
        if self._drafted is not None:
            self._accepted = list(ids[1:])
        self._ngram.observe(ids, features)
        if self._eagle is not None:
            self._eagle.observe(ids, features)

    def draft(self, root: int, shape: TreeShape, sampling: Sampling, rng: Random) -> DraftTree:
        """The tree that promises the most tokens a millisecond; perhaps the root alone."""
        if self._trust is None:
            self._trust = Trust.at(sampling.temperature)
        self._judge(root, self._trust)
        if not (shape.nodes and shape.depth):
            return root_only(root)
        self._copy = self._ngram.propose(root, min(shape.nodes, shape.depth))
        without = self._prices.offer([math.exp(value) for value in self._copy[1]], 0, shape.nodes)
        if self._eagle is not None and self._attention.pays(without):
            tree = self._eagle.draft(root, shape, sampling, rng)
            assert tree.plan is not None
            self._attention.see(Offer(tree.drafted, tree.plan.tokens, tree.plan.ms), without)
        else:
            resting = self._eagle is not None and not without.nodes
            tree = self._plan(Growth(root, shape.rank), shape, 0, _RESTS if resting else _COPIED)
        self._drafted = tree
        return tree

    def _grow(self, root: int, expand: Expand, shape: TreeShape) -> DraftTree:
        """Level by level, as long as the next level promises to pay for itself."""
        growth = Growth(root, shape.rank)
        trusted = _Trusted(expand, self._factor)
        frontier, levels = [0], 0
        while True:
            added = growth.grow(frontier, trusted, shape)
            levels += 1
            values = [math.exp(value) for value in growth.log_values[1:]]
            offer = self._prices.offer(values, levels, shape.nodes)
            if levels == shape.depth:
                return self._plan(growth, shape, levels, _BOUND)
            frontier = self._promising(growth, growth.best(added, shape.width), offer)
            if not frontier:
                return self._plan(growth, shape, levels, _DEEPER)
            below = hopes(
                [math.exp(growth.log_values[n]) for n in frontier],
                [math.exp(growth.log_values[n] - growth.log_values[growth.parents[n]]) for n in frontier],
            )
            if self._prices.offer([*values, *below], levels + 1, shape.nodes).rate <= offer.rate:
                return self._plan(growth, shape, levels, _DEEPER)

    @property
    def _factor(self) -> float:
        return 1.0 if self._trust is None else self._trust.factor

    def _promising(self, growth: Growth, nodes: Sequence[int], offer: Offer) -> list[int]:
        """Those nodes below which a child can be worth a row."""
        floor = self._prices.worth_of_row(offer)
        return [n for n in nodes if math.exp(growth.log_values[n]) > floor]

    def _plan(self, growth: Growth, shape: TreeShape, levels: int, reason: str) -> DraftTree:
        """What is verified of the head's candidates and of the text that retrieval found."""
        tokens, log_values = self._copy
        steps = [value - before for value, before in zip(log_values, [0.0, *log_values], strict=False)]
        growth.graft(tokens, steps, Origin.RETRIEVAL)
        candidates = [n for n in range(1, len(growth)) if worth_verifying(growth, n, shape)]
        offer = self._prices.offer([math.exp(growth.log_values[n]) for n in candidates], levels, shape.nodes)
        tree = growth.select(growth.best(candidates, offer.nodes))
        plan = Plan(
            offer.tokens, offer.ms, levels, self._factor, reason if tree.drafted or reason is _RESTS else _NOTHING
        )
        return replace(tree, plan=plan)

    def _judge(self, root: int, trust: Trust) -> None:
        """Compare the last tree with what the target wrote: the accepted path and `root`, its own token after that."""
        tree, self._drafted = self._drafted, None
        if tree is None or tree.plan is None:
            return
        factor, node = tree.plan.trust, 0
        for token in [*self._accepted, root]:
            drafts = [n for n in tree.children[node] if tree.origins[n] == Origin.HEAD]
            if drafts:
                predicted = min(1.0, sum(tree.confidence(n) for n in drafts) / factor)
                trust.see(predicted, right=any(tree.tokens[n] == token for n in drafts))
            node = next((n for n in tree.children[node] if tree.tokens[n] == token), -1)
            if node < 0:
                break


class _Trusted:
    """A head's proposals with its confidences corrected by what they were worth in this text."""

    def __init__(self, expand: Expand, factor: float) -> None:
        self._expand = expand
        self._shift = math.log(factor)

    def __call__(self, growth: Growth, nodes: Sequence[int]) -> list[Children]:
        found = self._expand(growth, nodes)
        return [Children(one.tokens, [min(0.0, p + self._shift) for p in one.log_probs]) for one in found]
