"""What a head is trained on: the target's next-token distribution and its features."""

from collections.abc import Iterable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from models.training.unroll import Batch, Step, weights_at


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
        logits = F.linear(predicted.to(vocabulary.dtype), vocabulary).float()
        wanted = teacher.flatten(0, 1)[place].float()
        token: Tensor = _SoftCrossEntropy.apply(logits, wanted.softmax(-1), weight)  # type: ignore[no-untyped-call]
        feature = F.smooth_l1_loss(
            predicted.float(), batch.features.flatten(0, 1)[place].float(), reduction="none"
        ).mean(-1)
        total = total + weights.decay**number * (weights.token * token + weights.feature * (feature * weight).sum())
        right.append(float((logits.argmax(-1) == wanted.argmax(-1)).float() @ weight))
    return total, right


class _SoftCrossEntropy(torch.autograd.Function):
    """Sum of weight · H(wanted, softmax(logits)); keeps one matrix for the way back where autograd would keep three."""

    @staticmethod
    def forward(ctx: torch.autograd.function.FunctionCtx, logits: Tensor, wanted: Tensor, weight: Tensor) -> Tensor:
        log_probs = logits.log_softmax(-1)
        loss = -((wanted * log_probs).sum(-1) @ weight)
        ctx.save_for_backward(log_probs.exp_().sub_(wanted).mul_(weight[:, None]))
        return loss

    @staticmethod
    def backward(ctx: torch.autograd.function.FunctionCtx, grad: Tensor) -> tuple[Tensor, None, None]:
        (difference,) = ctx.saved_tensors  # type: ignore[attr-defined]
        return difference * grad, None, None
