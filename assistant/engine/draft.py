"""What the engine asks of a drafter, and the drafter that drafts nothing."""

from collections.abc import Sequence
from random import Random
from typing import ClassVar, Protocol

from torch import Tensor

from assistant.engine.tree import DraftTree, TreeShape, root_only
from assistant.engine.types import Prompt, Sampling


class Drafter(Protocol):
    """Guesses what the target will write. It may be wrong at will: only speed depends on it."""

    @property
    def needs_features(self) -> bool:
        """Whether it reads features: on reuse the row before the first new one is then computed again for its own."""
        ...

    @property
    def memory_bytes(self) -> int:
        """Size of its own keys and values."""
        ...

    def begin(self, prompt: Prompt, reused: int) -> int:
        """A new completion: the first `reused` tokens of the prompt stand as observed before, the rest will follow.

        Returns for how many of the prompt's tokens its own cache needs no new row; all of them where it has none.
        """
        ...

    def observe(self, ids: Sequence[int], features: Tensor) -> None:
        """The target computed these rows and they are final: n token ids in order, and their (n, H) features."""
        ...

    def draft(self, root: int, shape: TreeShape, sampling: Sampling, rng: Random) -> DraftTree:
        """A tree below `root`, the first token after all that was observed. May be the root alone."""
        ...


class NoDraft:
    """Plain decoding: one token a step."""

    needs_features: ClassVar[bool] = False
    memory_bytes: ClassVar[int] = 0

    def begin(self, prompt: Prompt, reused: int) -> int:  # noqa: ARG002
        """Nothing is kept."""
        return len(prompt.ids)

    def observe(self, ids: Sequence[int], features: Tensor) -> None:
        """Nothing is learnt."""

    def draft(self, root: int, shape: TreeShape, sampling: Sampling, rng: Random) -> DraftTree:  # noqa: ARG002
        """The root alone."""
        return root_only(root)
