"""The EAGLE-2 tree with what retrieval found grafted in: one ranking for both."""

from collections.abc import Sequence
from random import Random
from typing import ClassVar

import numpy as np
from torch import Tensor

from assistant.engine.builders import chosen, grow_dynamic
from assistant.engine.eagle import EagleDrafter
from assistant.engine.growth import Expand
from assistant.engine.ngram import NgramDrafter
from assistant.engine.tree import DraftTree, TreeShape
from assistant.engine.types import Origin, Prompt, Sampling
from models.draft_head import DraftHead


class HybridDrafter:
    """A head and a lookup that draft for the same tree.

    Retrieval costs nothing and is right in long runs where it is right at all, so its chain may be deeper than the
    head's tree.
    """

    needs_features: ClassVar[bool] = True

    def __init__(self, head: DraftHead) -> None:
        self._eagle = EagleDrafter(head, self._build)
        self._ngram = NgramDrafter()

    @property
    def memory_bytes(self) -> int:
        """Size of the head's cache."""
        return self._eagle.memory_bytes

    def begin(self, prompt: Prompt, reused: int) -> int:
        """Both begin."""
        self._ngram.begin(prompt, reused)
        return self._eagle.begin(prompt, reused)

    def observe(self, ids: Sequence[int], features: Tensor) -> None:
        """Both observe."""
        self._eagle.observe(ids, features)
        self._ngram.observe(ids, features)

    def draft(self, root: int, shape: TreeShape, sampling: Sampling, rng: Random) -> DraftTree:
        """The head's candidates and the chain that retrieval proposes, ranked together."""
        return self._eagle.draft(root, shape, sampling, rng)

    def _build(self, root: int, expand: Expand, shape: TreeShape) -> DraftTree:
        growth = grow_dynamic(root, expand, shape)
        tokens, log_values = self._ngram.propose(root, shape.nodes)
        growth.graft(tokens, np.diff(log_values, prepend=0.0).tolist(), Origin.RETRIEVAL)
        return growth.select(chosen(growth, shape))
