"""Drafts found in the text itself: where the last few tokens stood before, what followed them is proposed again."""

import math
from collections.abc import Sequence
from random import Random
from typing import ClassVar

from torch import Tensor

from assistant.engine.tree import DraftTree, TreeShape, chain, root_only
from assistant.engine.types import Origin, Prompt, Sampling

_LONGEST = 6
"""tokens of a match beyond which longer ones are not told apart"""


class Lookup:
    """Where every n-gram (n from 1 to 6) of some token sequences was last followed by something.

    Sequences are searched in the order in which they were given, the last one first; it alone can grow.
    """

    def __init__(self, *texts: Sequence[int]) -> None:
        self._texts: list[list[int]] = []
        self._last: dict[tuple[int, ...], tuple[int, int]] = {}
        for text in texts:
            self._texts.append([])
            self.extend(text)

    def extend(self, tokens: Sequence[int]) -> None:
        """Append to the last text."""
        number = len(self._texts) - 1
        text = self._texts[number]
        for token in tokens:
            end = len(text)
            for size in range(1, min(_LONGEST, end) + 1):
                self._last[tuple(text[end - size :])] = (number, end)
            text.append(token)

    def find(self, tail: Sequence[int], count: int) -> tuple[list[int], int]:
        """What followed the longest, then most recent match of the end of `tail`: up to `count` tokens, match length.

        The last token of `tail` is the one that comes next in the last text. A continuation that runs into it goes on
        with itself, so a repetition is carried on.
        """
        for size in range(min(_LONGEST, len(tail)), 0, -1):
            place = self._last.get(tuple(tail[len(tail) - size :]))
            if place is not None:
                return self._read(*place, tail[-1], count), size
        return [], 0

    def _read(self, number: int, start: int, latest: int, count: int) -> list[int]:
        text = self._texts[number]
        found = text[start : start + count]
        # Only the growing text can be a repetition still under way; another one simply ends.
        if number == len(self._texts) - 1 and len(found) < count:
            period = [*found, latest]
            found = [period[i % len(period)] for i in range(count)]
        return found


class NgramDrafter:
    """Prompt lookup over the text before and after the cursor and what was written since."""

    needs_features: ClassVar[bool] = False
    memory_bytes: ClassVar[int] = 0

    def __init__(self) -> None:
        self._lookup = Lookup([])
        self._tail: list[int] = []
        self._skip = 0

    def begin(self, prompt: Prompt, reused: int) -> int:
        """Index the text around the cursor; how much of it the target had seen before does not matter."""
        prefix = prompt.prefix or prompt.ids
        self._lookup = Lookup(prompt.suffix, prefix)
        self._tail = list(prefix[-_LONGEST:])
        self._skip = len(prompt.ids) - reused
        return len(prompt.ids)

    def observe(self, ids: Sequence[int], features: Tensor) -> None:  # noqa: ARG002
        """Index what was written; the prompt's own rows come first and are indexed already."""
        new = ids[self._skip :]
        self._skip = max(0, self._skip - len(ids))
        self._lookup.extend(new)
        self._tail = [*self._tail, *new][-_LONGEST:]

    def draft(self, root: int, shape: TreeShape, sampling: Sampling, rng: Random) -> DraftTree:  # noqa: ARG002
        """One chain, as long as the tree may be deep."""
        tokens, log_values = self.propose(root, min(shape.depth, shape.nodes))
        return chain(root, tokens, log_values, Origin.RETRIEVAL) if tokens else root_only(root)

    def propose(self, root: int, count: int) -> tuple[list[int], list[float]]:
        """Up to `count` tokens after `root`, and the logarithm of each one's path value."""
        tokens, size = self._lookup.find([*self._tail, root], count)
        return tokens, [(i + 1) * _log_confidence(size) for i in range(len(tokens))]


def _log_confidence(size: int) -> float:
    """Assumed acceptance of a token after a match of `size` tokens: longer matches are righter."""
    return math.log(1.0 - 0.5 / max(size, 1))
