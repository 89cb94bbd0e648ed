"""A head's worth on texts that it was not trained on."""

from collections.abc import Sequence
from typing import Any

import torch

from models.training.dataset import collate
from models.training.features import FeatureText
from models.training.head import TrainableHead
from models.training.losses import LossWeights, loss_of
from models.training.simulate import Drafting, accepted_lengths, tokens_per_step
from models.training.unroll import unroll

NODES = (4, 8, 16, 60)
_BATCH = 8


@torch.inference_mode()
def top1_by_estimated(
    head: TrainableHead, texts: Sequence[FeatureText], drafting: Drafting, steps: int = 6
) -> list[float]:
    """How often the best draft is the target's best, with 0, 1, ... `steps` - 1 of the head's own features as input.

    Over the places where the target's own next token lies in the draft vocabulary, weighted as in training.
    """
    known = torch.zeros(int(drafting.draft_vocab.max()) + 1, dtype=torch.bool)
    known[drafting.draft_vocab.cpu()] = True
    totals, weight = torch.zeros(steps), 0.0
    ordered = sorted(texts, key=lambda text: len(text.ids))
    for start in range(0, len(ordered), _BATCH):
        batch = collate(ordered[start : start + _BATCH], known, drafting.embed)
        anchors = torch.arange(batch.ids.shape[1] - 1, device=batch.ids.device).expand(len(batch.ids), -1)
        with drafting.autocast():
            _, right = loss_of(unroll(head, batch, anchors, steps), batch, drafting.vocabulary, LossWeights())
        share = float(batch.weights.sum())
        totals += torch.tensor(right) * share
        weight += share
    return (totals / max(weight, 1e-9)).tolist()


@torch.inference_mode()
def simulated(
    head: TrainableHead, texts: Sequence[FeatureText], drafting: Drafting, nodes: Sequence[int] = NODES
) -> dict[str, dict[str, float]]:
    """Tokens per step on what the target wrote, by tree size ("8", "60"): of all texts, each kind and each language."""
    counts: dict[str, list[list[int]]] = {}
    for text in texts:
        if len(text.ids) - text.prompt_tokens < 2:
            continue
        with drafting.autocast():
            lengths = accepted_lengths(head, text, nodes, drafting)
        walked = [tokens_per_step(row) for row in lengths]
        for name in ("all", text.kind, text.language):
            sums = counts.setdefault(name, [[0, 0] for _ in nodes])
            for total, (tokens, steps) in zip(sums, walked, strict=True):
                total[0] += tokens
                total[1] += steps
    return {
        name: {str(count): round(tokens / max(1, steps), 4) for count, (tokens, steps) in zip(nodes, sums, strict=True)}
        for name, sums in counts.items()
    }


def figures(
    head: TrainableHead, texts: Sequence[FeatureText], drafting: Drafting, *, top1_texts: int = 24
) -> dict[str, Any]:
    """What a training log keeps of an evaluation; "score" is tokens per step with the largest tree."""
    tokens = simulated(head, texts, drafting)
    top1 = top1_by_estimated(head, spread(texts, top1_texts), drafting)
    score = tokens.get("all", {}).get(str(NODES[-1]), 0.0)
    return {"tokens_per_step": tokens, "top1_by_estimated": [round(share, 4) for share in top1], "score": score}


def spread(texts: Sequence[FeatureText], count: int) -> list[FeatureText]:
    """`count` texts at most, from the whole of them, so that every kind is there."""
    count = min(count, len(texts))
    return [texts[index * len(texts) // count] for index in range(count)]
