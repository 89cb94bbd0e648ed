"""One sequence and what is kept of it between completions: the target's rows and the drafter's."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from assistant.engine.draft import Drafter
from assistant.engine.kv_cache import KVCache
from assistant.engine.sequences import common_prefix
from assistant.engine.types import Prompt
from models.target import Target


class Session:
    """A target and a drafter working on one document.

    `ids` are the tokens whose rows in the cache are final. A completion that is abandoned half-way leaves rows behind
    them, never wrong ones among them.
    """

    def __init__(self, target: Target, drafter: Drafter) -> None:
        self.target = target
        self.drafter = drafter
        self.cache = KVCache.of(target.spec)
        self.ids: list[int] = []
        self.draft_reused = 0
        """of the prompt that was begun last, the tokens that need no new row in the drafter's cache"""

    @property
    def memory_bytes(self) -> int:
        """Size of the keys and values kept, the drafter's included."""
        return self.cache.memory_bytes + self.drafter.memory_bytes

    def begin(self, prompt: Prompt) -> int:
        """Rewind to what a new prompt shares with what is here; returns how many of its tokens need no new forward."""
        shared = common_prefix(self.ids, prompt.ids)
        # The last token's row is always computed: its logits begin the completion.
        reused = min(shared, len(prompt.ids) - 1)
        if self.drafter.needs_features:
            reused = max(0, min(reused, shared - 1))
        self.cache.rewind(reused)
        del self.ids[reused:]
        self.draft_reused = self.drafter.begin(prompt, reused)
        return reused

    @contextmanager
    def moving(self) -> Iterator[None]:
        """Around whatever moves the caches: where it fails half-way they may disagree, and all is forgotten."""
        try:
            yield
        except BaseException:
            self.ids.clear()
            raise

    def commit(self, base: int, rows: Sequence[int], tokens: Sequence[int]) -> None:
        """Of the rows from `base` on keep these; they hold `tokens`."""
        self.cache.keep(base, rows)
        self.ids += tokens
