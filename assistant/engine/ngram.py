"""Drafts found in the text itself and in others that are open: what followed the last few tokens there is proposed."""

import math
from collections.abc import Sequence
from itertools import accumulate
from random import Random
from typing import ClassVar

from torch import Tensor

from assistant.engine.lookup import LONGEST, Lookup, Passages
from assistant.engine.tree import DraftTree, TreeShape, chain, root_only
from assistant.engine.trust import Trust
from assistant.engine.types import Origin, Prompt, Sampling

_TRIED = 160
"""tokens before the cursor on which retrieval is tried, to see what it is worth in this text"""
_ASSUMED = 4.0
"""tries that stand behind the worth assumed beforehand"""


class Worth:
    """How often what followed a match of some tokens followed again, in the text at hand."""

    def __init__(self) -> None:
        # Texts differ by more than lengths do, so what one length teaches counts for the others too.
        self._trust = Trust()
        self._right = [0.0] * (LONGEST + 1)
        self._tries = [0.0] * (LONGEST + 1)

    def see(self, size: int, *, right: bool) -> None:
        """What followed a match of `size` tokens was proposed, and was right or not."""
        self._trust.see(_assumed(size), right=right)
        self._right[size] += right
        self._tries[size] += 1.0

    def log_confidence(self, size: int) -> float:
        """Of a token after a match of `size` tokens."""
        size = min(size, LONGEST)
        before = min(1.0, _assumed(size) * self._trust.factor)
        return math.log((_ASSUMED * before + self._right[size]) / (_ASSUMED + self._tries[size] + 1e-3))


def _assumed(size: int) -> float:
    """Acceptance of a token after a match of `size` tokens: longer matches are righter."""
    return 1.0 - 0.5 / max(size, 1)


class NgramDrafter:
    """Prompt lookup over the text before and after the cursor, what was written since, and a library of other texts."""

    needs_features: ClassVar[bool] = False
    memory_bytes: ClassVar[int] = 0

    def __init__(self) -> None:
        self._lookup = Lookup([])
        self._library: tuple[Passages, ...] = ()
        self._worth = Worth()
        self._tail: list[int] = []
        self._skip = 0

    def begin(self, prompt: Prompt, reused: int) -> int:
        """Index the text around the cursor; how much of it the target had seen before does not matter."""
        prefix = prompt.prefix or prompt.ids
        known = max(0, len(prefix) - _TRIED)
        self._lookup = Lookup(prompt.suffix, prefix[:known])
        self._library = prompt.library
        self._worth = Worth()
        self._tail = list(prefix[max(0, known - LONGEST) : known])
        for token in prefix[known:]:
            self._try(token)
        self._skip = len(prompt.ids) - reused
        return len(prompt.ids)

    def observe(self, ids: Sequence[int], features: Tensor) -> None:  # noqa: ARG002
        """Index what was written; the prompt's own rows come first and are indexed already."""
        new = ids[self._skip :]
        self._skip = max(0, self._skip - len(ids))
        for token in new:
            self._try(token)

    def draft(self, root: int, shape: TreeShape, sampling: Sampling, rng: Random) -> DraftTree:  # noqa: ARG002
        """One chain, as long as the tree may be deep."""
        tokens, log_values = self.propose(root, min(shape.depth, shape.nodes))
        return chain(root, tokens, log_values, Origin.RETRIEVAL) if tokens else root_only(root)

    def propose(self, root: int, count: int) -> tuple[list[int], list[float]]:
        """Up to `count` tokens after `root`, and the logarithm of each one's path value."""
        tokens, size = self._find([*self._tail, root], count)
        # Where a token was right, the match is one longer for the next.
        return tokens, list(accumulate(self._worth.log_confidence(size + i) for i in range(len(tokens))))

    def _find(self, tail: Sequence[int], count: int) -> tuple[list[int], int]:
        """The longest match anywhere; this text wins a tie, then the other one that was edited last."""
        texts: tuple[Lookup | Passages, ...] = (self._lookup, *self._library)
        return max((text.find(tail, count) for text in texts), key=lambda found: found[1])

    def _try(self, token: int) -> None:
        """Propose the next token, see whether this is it, and index it."""
        if self._tail:
            found, size = self._find(self._tail, 1)
            if found:
                self._worth.see(size, right=found[0] == token)
        self._lookup.extend([token])
        self._tail = [*self._tail, token][-LONGEST:]
