"""What a head is trained on: the target's next-token distribution and its features."""

from collections.abc import Iterable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from models.training.unroll import Batch, Step, weights_at

_ROWS = 256
"""rows whose logits are held at once"""


@dataclass(frozen=True, slots=True)
class LossWeights:
    """How the parts add up."""

    token: float = 1.0
    """soft cross-entropy through the target's frozen head (EAGLE, Li et al. 2024, section 4.2: 0.1 there)"""
    feature: float = 0.5
    """smooth L1 on features (the same section: 1.0 there)"""
    decay: float = 0.8
    """a later step counts decay^s (EAGLE-3, Li et al. 2025)"""


def loss_of(
    steps: Iterable[Step], batch: Batch, vocabulary: Tensor, weights: LossWeights
) -> tuple[Tensor, list[float]]:
    """The weighted sum over steps, and each step's share of positions whose best token is the target's.

    Args:
        steps: what the head predicts.
        batch: what the target says.
        vocabulary: (k, H) rows of the target's head for the draft vocabulary.
        weights: of the parts.
    """
    with torch.no_grad():
        teacher = F.linear(batch.features.to(vocabulary.dtype), vocabulary)
    total = torch.zeros((), device=batch.ids.device)
    right: list[float] = []
    for number, step in enumerate(steps):
        chosen = weights_at(batch, step).flatten().nonzero()[:, 0]
        if not len(chosen):
            right.append(0.0)
            continue
        weight = weights_at(batch, step).flatten()[chosen]
        weight = weight / weight.sum()
        at = step.at.clamp_max(batch.ids.shape[1] - 1)
        place = (torch.arange(len(at), device=at.device)[:, None] * batch.ids.shape[1] + at).flatten()[chosen]
        predicted = step.predicted.flatten(0, 1)[chosen]
        token, hits = _soft_cross_entropy(predicted, vocabulary, teacher.flatten(0, 1), place, weight)
        feature = F.smooth_l1_loss(
            predicted.float(), batch.features.flatten(0, 1)[place].float(), reduction="none"
        ).mean(-1)
        total = total + weights.decay**number * (weights.token * token + weights.feature * (feature * weight).sum())
        right.append(float(hits))
    return total, right


class _SoftCrossEntropy(torch.autograd.Function):
    """Sum of weight · H(softmax(teacher), softmax(vocabulary · predicted)), and the weight of rows with the best token.

    A few rows at a time, with their gradient at once: logits over a vocabulary are never held for all rows, which would
    take most of the memory and of the time to move it.
    """

    @staticmethod
    def forward(
        ctx: torch.autograd.function.FunctionCtx,
        predicted: Tensor,
        vocabulary: Tensor,
        teacher: Tensor,
        place: Tensor,
        weight: Tensor,
    ) -> tuple[Tensor, Tensor]:
        rows = predicted.to(vocabulary.dtype)
        gradient = torch.empty_like(rows)
        loss, hits = weight.new_zeros(()), weight.new_zeros(())
        for start in range(0, len(rows), _ROWS):
            part = slice(start, start + _ROWS)
            logits = F.linear(rows[part], vocabulary).float()
            wanted = teacher[place[part]].float().softmax(-1)
            most, best = logits.amax(-1, keepdim=True), wanted.max(-1, keepdim=True).indices
            hits += (logits.gather(-1, best) == most).float()[:, 0] @ weight[part]
            agreement = torch.linalg.vecdot(wanted, logits)
            odds = logits.sub_(most).exp_()
            total = odds.sum(-1, keepdim=True)
            loss += ((total.log() + most)[:, 0] - agreement) @ weight[part]
            difference = odds.mul_(weight[part, None] / total).addcmul_(wanted, weight[part, None], value=-1)
            gradient[part] = difference.to(vocabulary.dtype) @ vocabulary
        ctx.save_for_backward(gradient.to(predicted.dtype))
        ctx.mark_non_differentiable(hits)
        return loss, hits

    @staticmethod
    def backward(ctx: torch.autograd.function.FunctionCtx, *grads: Tensor) -> tuple[Tensor, None, None, None, None]:
        (gradient,) = ctx.saved_tensors  # type: ignore[attr-defined]
        return gradient * grads[0], None, None, None, None


def _soft_cross_entropy(*inputs: Tensor) -> tuple[Tensor, Tensor]:
    applied: tuple[Tensor, Tensor] = _SoftCrossEntropy.apply(*inputs)  # type: ignore[no-untyped-call]
    return applied
