"""The head run on its own outputs, as at drafting: the step that makes it fit to go deep.

HASS (Zhang et al. 2024, section 3.2) and the training-time test of EAGLE-3 (Li et al. 2025, section 3.1): at step s the
row of token i + s takes the head's own feature, sees the true rows up to i and, of its own chain, the rows since.

Chains start at a sample of positions, the anchors, not at all of them: neighbouring chains teach much the same, and a
step over a third of the rows costs a third.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from models.training.head import TrainableHead
from models.training.layer import Keys


@dataclass(frozen=True, slots=True)
class Batch:
    """Texts of like length, padded on the right."""

    ids: Tensor
    """(B, n) int64"""
    embeddings: Tensor
    """(B, n, H) of those ids"""
    features: Tensor
    """(B, n, H) the target's"""
    weights: Tensor
    """(B, n) what it counts to predict this token's feature, that is the token after it; 0 on padding"""


@dataclass(frozen=True, slots=True)
class Step:
    """What the head predicts after s of its own features."""

    predicted: Tensor
    """(B, m, H)"""
    at: Tensor
    """(B, m) which feature of the text is meant"""


def unroll(head: TrainableHead, batch: Batch, anchors: Tensor | None, steps: int) -> Iterator[Step]:
    """Step 0 at every position, then steps 1 to `steps` - 1 of the chains that start at `anchors`.

    Args:
        head: in training or evaluation.
        batch: B texts of n tokens.
        anchors: (B, m) positions of step 0 whose outputs are fed back; None ends after step 0.
        steps: how many.

    A chain that leaves its text goes on in the padding, where weights are 0.
    """
    length = batch.ids.shape[1]
    positions = torch.arange(length - 1, device=batch.ids.device).expand(len(batch.ids), -1)
    predicted, true_rows = head(batch.embeddings[:, 1:], batch.features[:, :-1], positions)
    yield Step(predicted, positions + 1)
    if anchors is None:
        return
    chain: Keys = true_rows
    own = predicted.gather(1, _wide(anchors, predicted))
    seen = positions[:, None, :] <= anchors[:, :, None]
    itself = torch.eye(anchors.shape[1], dtype=torch.bool, device=anchors.device).expand(len(anchors), -1, -1)
    for step in range(1, steps):
        at = anchors + step
        inside = at.clamp_max(length - 2)
        embeddings = batch.embeddings.gather(1, _wide(inside + 1, batch.embeddings))
        mask = torch.cat((seen, itself.repeat(1, 1, step)), -1)
        own, chain = head(embeddings, own, at, chain, mask)
        yield Step(own, at + 1)


def choose_anchors(weights: Tensor, count: int, generator: torch.Generator) -> Tensor:
    """(B, n) weights -> (B, count) positions drawn by weight: those whose outputs predict tokens that count."""
    chances = weights[:, 1:].clamp_min(0).cpu() + 1e-6
    return torch.multinomial(chances, count, replacement=True, generator=generator).to(weights.device)


def weights_at(batch: Batch, step: Step) -> Tensor:
    """(B, m) weights of a step's predictions, 0 outside the text."""
    last = batch.ids.shape[1] - 1
    return batch.weights.gather(1, step.at.clamp_max(last)) * (step.at <= last)


def _wide(index: Tensor, like: Tensor) -> Tensor:
    return index[..., None].expand(-1, -1, like.shape[-1])
