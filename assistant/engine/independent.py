"""Drafting with an independent small model: speculative sampling (Leviathan et al. 2023, section 2)."""

from collections.abc import Sequence
from random import Random
from typing import ClassVar

import torch
from torch import Tensor

from assistant.engine.kv_cache import KVCache
from assistant.engine.sampling import draw, probabilities
from assistant.engine.sequences import common_prefix
from assistant.engine.tree import DraftTree, TreeShape
from assistant.engine.types import Origin, Prompt, Sampling
from models.target import Target

_CHUNK = 512


class ModelDrafter:
    """A chain of tokens drawn from a draft model whose vocabulary is the target's.

    With sampling, each token is drawn from the draft's distribution q under the same temperature, top-k and top-p as
    the target, and q travels with it for the ratio rule. The chain's length is fixed before anything is drawn:
    dropping a token that was drawn and looked at would bias the output.
    """

    needs_features: ClassVar[bool] = False

    def __init__(self, draft: Target) -> None:
        self._draft = draft
        self._cache = KVCache.of(draft.spec)
        self._cached: list[int] = []
        self._true: list[int] = []

    @property
    def memory_bytes(self) -> int:
        """Size of the draft model's cache."""
        return self._cache.memory_bytes

    def begin(self, prompt: Prompt, reused: int) -> int:
        """The prompt's first `reused` tokens stand; the rest comes by `observe`."""
        self._true = list(prompt.ids[:reused])
        return common_prefix(self._cached, prompt.ids)

    def observe(self, ids: Sequence[int], features: Tensor) -> None:  # noqa: ARG002
        """Remember the tokens; the draft model reads them at the next draft."""
        self._true += ids

    def draft(self, root: int, shape: TreeShape, sampling: Sampling, rng: Random) -> DraftTree:
        """A chain of `depth` tokens, or fewer where `nodes` or the draft's context is smaller."""
        room = self._cache.limit - len(self._true) - 1
        count = max(0, min(shape.depth, shape.nodes, room))
        tokens, log_values, rows = [root], [0.0], [torch.zeros(0)]
        logits = self._read([*self._true, root]) if count else None
        for _ in range(count):
            assert logits is not None
            probs = probabilities(logits, sampling)
            token = int(logits.argmax()) if sampling.greedy else draw(probs, rng)
            confidence = torch.softmax(logits.float(), dim=-1)[token] if sampling.greedy else probs[token]
            tokens.append(token)
            log_values.append(float(torch.tensor(log_values[-1]) + confidence.log().clamp(-60.0, 0.0).cpu()))
            rows.append(probs)
            if len(tokens) <= count:
                logits = self._read([*self._cached, token])
        drawn = None
        if not sampling.greedy and count:
            rows[0] = torch.zeros_like(rows[1])
            drawn = torch.stack(rows)
        parents = tuple(range(-1, count))
        return DraftTree(tuple(tokens), parents, tuple(log_values), ("", *[Origin.DRAFT] * count), drawn)

    def _read(self, tokens: list[int]) -> Tensor:
        """Bring the draft's cache to exactly these tokens; (V,) logits after the last."""
        known = min(common_prefix(self._cached, tokens), len(tokens) - 1)
        self._cache.rewind(known)
        del self._cached[known:]
        for start in range(known, len(tokens), _CHUNK):
            ids = torch.tensor(tokens[start : start + _CHUNK], device=self._draft.spec.device)
            positions = torch.arange(start, start + len(ids), device=ids.device)
            logits = self._draft.forward(ids, positions, self._cache, last_only=True).logits
            self._cached += tokens[start : start + _CHUNK]
        return logits[0]
