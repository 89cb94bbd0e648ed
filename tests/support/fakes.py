"""Fakes for the engine: models whose answers are pure functions of the tokens that they are shown.

Their cache rows hold tokens and positions, so every forward checks what a real model would silently get wrong: that
each row sees exactly its own sequence, in order, without gap, and that a draft head is fed with the target's features.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from models.calibration import Calibrations
from models.draft_head import DraftHead, HeadForward
from models.target import Cache, Forward, TargetSpec

_LAYERS = 2
_FEATURES = 4
"""(token, position, fingerprint of the context, 1 for a guess)"""


def fake_spec(vocab: int, limit: int, head_dim: int) -> TargetSpec:
    """The spec of a fake target or head."""
    return TargetSpec(
        name="fake",
        vocab_size=vocab,
        hidden_size=_FEATURES,
        layers=_LAYERS,
        kv_heads=1,
        head_dim=head_dim,
        max_positions=limit,
        precision="float32",
        dtype=torch.float32,
        device=torch.device("cpu"),
        batch_exact=True,
    )


class FakeTarget:
    """Logits are random numbers that depend on the last `order` tokens of the context (0: on all of them)."""

    def __init__(self, vocab: int = 6, *, seed: int = 0, limit: int = 96, order: int = 0, spread: float = 1.5) -> None:
        self.spec = fake_spec(vocab, limit, 2)
        self.rows = 0
        """rows computed so far"""
        self._seed = seed
        self._order = order
        self._spread = spread
        self._known: dict[tuple[int, ...], Tensor] = {}

    def logits(self, context: Sequence[int]) -> Tensor:
        """(V,) what follows a context."""
        key = tuple(context[-self._order :])
        if key not in self._known:
            random = np.random.default_rng([self._seed, *key])
            self._known[key] = torch.from_numpy(random.standard_normal(self.spec.vocab_size) * self._spread).float()
        return self._known[key]

    def forward(
        self, ids: Tensor, positions: Tensor, cache: Cache, mask: Tensor | None = None, *, last_only: bool = False
    ) -> Forward:
        new = torch.stack([ids, positions], dim=1).float()
        contexts = [rows[:, 0].astype(int).tolist() for rows in seen(new, cache, mask)]
        cache.advance(len(new))
        self.rows += len(new)
        logits = torch.stack([self.logits(context) for context in contexts])
        return Forward(logits[-1:] if last_only else logits, torch.tensor([feature(c) for c in contexts]))

    def embed(self, ids: Tensor) -> Tensor:
        raise NotImplementedError

    def head_rows(self, ids: Tensor) -> Tensor:
        raise NotImplementedError


class NearTarget(FakeTarget):
    """Another target's logits with noise: a draft model that is often right."""

    def __init__(self, near: FakeTarget, *, noise: float = 1.0, seed: int = 1, limit: int | None = None) -> None:
        super().__init__(near.spec.vocab_size, seed=seed, limit=limit or near.spec.max_positions, spread=noise)
        self._near = near

    def logits(self, context: Sequence[int]) -> Tensor:
        return self._near.logits(context) + super().logits(context)


class FakeHead:
    """A draft head with a target's logits, noise added, over every token or those of a draft vocabulary."""

    def __init__(
        self, target: FakeTarget, *, noise: float = 1.0, seed: int = 2, draft_vocab: Sequence[int] | None = None
    ) -> None:
        self.spec = fake_spec(target.spec.vocab_size, target.spec.max_positions, 2 + _FEATURES)
        self.draft_vocab = None if draft_vocab is None else torch.tensor(draft_vocab)
        self.calibrations = Calibrations()
        self._near = NearTarget(target, noise=noise, seed=seed)

    def forward(
        self,
        ids: Tensor,
        features: Tensor,
        positions: Tensor,
        cache: Cache,
        mask: Tensor | None = None,
        *,
        last_only: bool = False,
    ) -> HeadForward:
        new = torch.cat([torch.stack([ids, positions], dim=1).float(), features], dim=1)
        contexts = [_fed_truly(rows.tolist()) for rows in seen(new, cache, mask)]
        cache.advance(len(new))
        logits = torch.stack([self._near.logits(context) for context in contexts])
        if self.draft_vocab is not None:
            logits = logits[:, self.draft_vocab]
        guesses = [[*feature(context)[:2], 0.0, 1.0] for context in contexts]
        return HeadForward(torch.tensor(guesses), logits[-1:] if last_only else logits)

    def to_target_ids(self, draft_ids: Tensor) -> Tensor:
        return draft_ids if self.draft_vocab is None else self.draft_vocab[draft_ids]

    def as_head(self) -> DraftHead:
        """What the engine takes it for."""
        return cast(DraftHead, self)


def seen(new: Tensor, cache: Cache, mask: Tensor | None) -> list[NDArray[np.float32]]:
    """Write (n, D) rows and answer, for each, the rows that it sees, by position, itself the last.

    The second number of a row is its position; those that one row sees must be 0, 1, 2, ... without gap.
    """
    n = len(new)
    for layer in range(_LAYERS):
        rows, values = cache.write(layer, new[None], -new[None])
        assert torch.equal(rows, -values)
    past = cache.length
    table = rows[0].numpy()
    sees = np.ones((n, past + n), dtype=np.bool_)
    part = np.tril(np.ones((n, n), dtype=np.bool_)) if mask is None else mask.numpy()
    sees[:, past + n - part.shape[1] :] = part
    found = []
    for i in range(n):
        assert sees[i, past + i], "a row sees itself"
        visible = table[sees[i]]
        visible = visible[visible[:, 1].argsort()]
        assert visible[:, 1].tolist() == list(range(len(visible))), "a row sees each position before it once"
        assert visible[-1].tolist() == table[past + i].tolist(), "a row is the last that it sees"
        found.append(visible)
    return found


def feature(context: Sequence[int]) -> list[float]:
    """What the fake target's feature of a context's last token is."""
    # Whole numbers below 2^24 are exact in float32; Python's hash of integers is the same in every run.
    fingerprint = hash(tuple(context)) % 16_777_213
    return [float(context[-1]), float(len(context) - 1), float(fingerprint), 0.0]


def _fed_truly(rows: list[list[float]]) -> list[int]:
    """The context that a head's rows describe; a row of drafts may follow true rows, never the other way round."""
    context = [int(rows[0][2])]
    drafting = False
    for token, position, *given in rows:
        assert given[:2] == [context[-1], position], "a feature belongs to the token before"
        if given[3] == 1.0:
            drafting = True
        else:
            assert not drafting, "a true row sees no row of a draft"
            assert given == feature(context), "the target's own feature"
        context.append(int(token))
    return context


@dataclass(frozen=True, slots=True)
class FakeTokenizer:
    """Tokens are byte strings, by id; an empty one is a special token."""

    spellings: tuple[bytes, ...]

    def token_bytes(self, token: int) -> bytes:
        return self.spellings[token]

    def completions_of(self, forced: bytes) -> list[int]:
        return [
            token
            for token, spelling in enumerate(self.spellings)
            if spelling and (spelling.startswith(forced) or forced.startswith(spelling))
        ]


def tiny_cache_spec(limit: int) -> SimpleNamespace:
    """A cache spec of two layers, two heads and three numbers a head."""
    return SimpleNamespace(
        layers=2, kv_heads=2, head_dim=3, max_positions=limit, dtype=torch.float32, device=torch.device("cpu")
    )
