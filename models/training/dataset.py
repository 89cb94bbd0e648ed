"""Texts with features into batches of like length."""

import random
from collections.abc import Callable, Iterator, Sequence

import torch
from torch import Tensor

from models.training.features import FeatureText
from models.training.unroll import Batch

PROMPT_WEIGHT, PLAIN_WEIGHT = 0.25, 0.5
"""against 1 for what the target wrote: prompts are never drafted, and files only say what a target would think"""

Embed = Callable[[Tensor], Tensor]
"""(n,) ids -> (n, H) the target's input embeddings"""


def epoch(
    texts: Sequence[FeatureText], tokens: int, draft_vocab: Tensor, embed: Embed, rng: random.Random
) -> Iterator[Batch]:
    """Every text once, in batches of about `tokens` tokens, the batches in random order."""
    known = torch.zeros(int(draft_vocab.max()) + 1, dtype=torch.bool)
    known[draft_vocab.cpu()] = True
    order = sorted(range(len(texts)), key=lambda index: (len(texts[index].ids) // 16, rng.random()))
    groups: list[list[int]] = []
    for index in order:
        length = len(texts[index].ids)
        if not groups or (len(groups[-1]) + 1) * length > tokens:
            groups.append([])
        groups[-1].append(index)
    rng.shuffle(groups)
    for group in groups:
        yield collate([texts[index] for index in group], known, embed)


def collate(texts: Sequence[FeatureText], known: Tensor, embed: Embed) -> Batch:
    """Pad texts on the right; (V,) bool `known` is the draft vocabulary, outside of which nothing is asked for.

    The batch lies on the device of the embeddings.
    """
    length = max(len(text.ids) for text in texts)
    ids = torch.zeros((len(texts), length), dtype=torch.int64)
    features = torch.zeros((len(texts), length, texts[0].features.shape[1]), dtype=torch.float16)
    weights = torch.zeros((len(texts), length))
    for row, text in enumerate(texts):
        n = len(text.ids)
        ids[row, :n] = text.ids
        features[row, :n] = text.features
        weights[row, :n] = text_weights(text, known)
    embeddings = embed(ids.flatten()).view(*ids.shape, -1)
    device = embeddings.device
    return Batch(ids.to(device), embeddings, features.to(device), weights.to(device))


def text_weights(text: FeatureText, known: Tensor) -> Tensor:
    """(n,) what each feature counts: by what it predicts, the next token; none where the vocabulary lacks that."""
    n, start = len(text.ids), text.prompt_tokens
    weights = torch.full((n,), PROMPT_WEIGHT if start < n else PLAIN_WEIGHT)
    weights[max(0, start - 1) :] = 1.0 if start < n else PLAIN_WEIGHT
    following = text.ids[1:]
    inside = (following < len(known)) & known[following.clamp_max(len(known) - 1)]
    weights[:-1] *= inside
    # The last token's feature was never computed where the target stopped at it.
    weights[-1] = 0.0
    return weights
