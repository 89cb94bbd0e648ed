"""How many tokens a step would bring: EAGLE-2 trees (Li et al. 2024b, section 4) drawn at every place of a text.

What the target writes greedily is known beforehand, so that no target has to run: a draft is accepted exactly where it
is the text. All places of a text are drafted at once, as a batch.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate

import torch
import torch.nn.functional as F
from torch import Tensor

from models.training.features import FeatureText
from models.training.head import TrainableHead
from models.training.layer import Keys


@dataclass(frozen=True, slots=True)
class Drafting:
    """All that drafting needs besides the head, and the trees' bounds."""

    vocabulary: Tensor
    """(k, H) rows of the target's head"""
    draft_vocab: Tensor
    """(k,) their target ids"""
    embed: Callable[[Tensor], Tensor]
    depth: int = 6
    width: int = 8

    @property
    def device(self) -> torch.device:
        """Where all of it lies."""
        return self.vocabulary.device

    def autocast(self) -> torch.autocast:
        """Matrix products in the vocabulary's precision, as in training."""
        return torch.autocast(self.device.type, torch.bfloat16, enabled=self.vocabulary.dtype == torch.bfloat16)

    def children(self, features: Tensor, temperature: float = 1.0) -> tuple[Tensor, Tensor]:
        """(S, w, H) -> the best tokens (S, w, width) and their log-probabilities, float32."""
        logits = F.linear(features.to(self.vocabulary.dtype), self.vocabulary).float() / temperature
        best = logits.topk(min(self.width, logits.shape[-1]), -1)
        return self.draft_vocab[best.indices], best.values - logits.logsumexp(-1, keepdim=True)


@dataclass(frozen=True, slots=True)
class Level:
    """One level of S trees grown at once."""

    values: Tensor
    """(S, c) log path values of its candidates"""
    right: Tensor
    """(S,) which of them is the text's own token below the text's own path, or -1"""
    confidences: Tensor
    """(S, width) probabilities of the children of the node on the text's path; without meaning unless `followed`"""
    tokens: Tensor
    """(S, width) those children's target ids"""
    hits: Tensor
    """(S, width) bool: which of those children is the text's token"""
    followed: Tensor
    """(S,) bool: whether the text's path was expanded this far"""


@torch.inference_mode()
def grow(head: TrainableHead, text: FeatureText, drafting: Drafting, temperature: float = 1.0) -> list[Level]:
    """EAGLE-2's expansion below every token that the target wrote: ids[prompt_tokens], ids[prompt_tokens + 1], ..."""
    device, length = drafting.device, len(text.ids)
    roots = torch.arange(max(text.prompt_tokens, 1), length - 1, device=device)
    ids, every = text.ids.to(device), torch.arange(length - 1, device=device)
    embeddings = drafting.embed(ids)[None]
    features = text.features[None].to(device, embeddings.dtype)
    first, rows = head(embeddings[:, 1:], features[:, :-1], every[None])
    places, count = roots - 1, len(roots)
    frontier = _Frontier(
        features=first[0, places][:, None],
        values=torch.zeros((count, 1), device=device),
        on_path=torch.zeros(count, dtype=torch.int64, device=device),
        past=Keys(*(part.expand(count, -1, -1, -1) for part in (rows.keys, rows.values))),
        seen=(every[None] <= places[:, None])[:, None],
    )
    levels = []
    for depth in range(drafting.depth):
        tokens, log_probs = drafting.children(frontier.features, temperature)
        level = _judge(frontier, tokens, log_probs, ids, places + 2 + depth)
        levels.append(level)
        if depth + 1 < drafting.depth:
            frontier = _expand(head, drafting, frontier, level, tokens, places + 1 + depth)
    return levels


def accepted_lengths(head: TrainableHead, text: FeatureText, nodes: Sequence[int], drafting: Drafting) -> Tensor:
    """How many drafts the target accepts after each token that it wrote, when the best `nodes` candidates are verified.

    Returns:
        (len(nodes), S): by tree size, for the roots ids[prompt_tokens], ids[prompt_tokens + 1], ...
    """
    levels = grow(head, text, drafting)
    values = torch.cat([level.values for level in levels], 1)
    rank = values.argsort(dim=-1, descending=True, stable=True).argsort(-1)
    starts = [0, *accumulate(level.values.shape[1] for level in levels)]
    places = []
    for start, level in zip(starts, levels, strict=False):
        place = rank.gather(1, (level.right + start).clamp_min(0)[:, None])[:, 0]
        places.append(place.masked_fill(level.right < 0, values.shape[1]))
    place = torch.stack(places, 1)
    return torch.stack([(place < count).long().cumprod(1).sum(1) for count in nodes])


@dataclass(frozen=True, slots=True)
class _Frontier:
    """The nodes of S trees that are expanded next, w each."""

    features: Tensor
    """(S, w, H) what the head predicts for them"""
    values: Tensor
    """(S, w) log path values"""
    on_path: Tensor
    """(S,) which of them is the text's, or -1"""
    past: Keys
    seen: Tensor
    """(S, w, rows of `past`) bool: true rows, ancestors and themselves"""


def _judge(frontier: _Frontier, tokens: Tensor, log_probs: Tensor, ids: Tensor, at: Tensor) -> Level:
    """Compare the children (S, w, width) of a frontier with the text's tokens at the (S,) places `at`."""
    followed = (frontier.on_path >= 0) & (at < len(ids))
    pick = frontier.on_path.clamp_min(0)[:, None, None].expand(-1, 1, tokens.shape[2])
    children = tokens.gather(1, pick)[:, 0]
    hits = (children == ids[at.clamp_max(len(ids) - 1), None]) & followed[:, None]
    right = frontier.on_path * tokens.shape[2] + hits.long().argmax(1)
    values = (frontier.values[..., None] + log_probs).flatten(1)
    confidences = log_probs.gather(1, pick)[:, 0].exp()
    return Level(values, torch.where(hits.any(1), right, -1), confidences, children, hits, followed)


def _expand(
    head: TrainableHead, drafting: Drafting, before: _Frontier, level: Level, tokens: Tensor, positions: Tensor
) -> _Frontier:
    """Run the best `width` candidates of a level."""
    best = level.values.topk(min(drafting.width, level.values.shape[1]), -1)
    kept, parents = best.indices, best.indices // tokens.shape[2]
    count, width = kept.shape
    device = kept.device
    own = torch.where(level.right[:, None] == kept, torch.arange(width, device=device), -1).amax(1)
    seen = before.seen.expand(count, before.features.shape[1], -1)
    seen = seen.gather(1, parents[..., None].expand(-1, -1, seen.shape[2]))
    seen = torch.cat((seen, torch.eye(width, dtype=torch.bool, device=device).expand(count, -1, -1)), -1)
    chosen = tokens.flatten(1).gather(1, kept)
    embeddings = drafting.embed(chosen.flatten()).view(count, width, -1)
    came = before.features.gather(1, parents[..., None].expand(-1, -1, before.features.shape[2]))
    features, past = head(embeddings, came, positions[:, None].expand(-1, width), before.past, seen)
    return _Frontier(features, best.values, torch.where(level.right < 0, -1, own), past, seen)


def tokens_per_step(lengths: Tensor) -> tuple[int, int]:
    """Walk a text by what is accepted: (S,) lengths -> tokens written and steps taken."""
    place, steps = 0, 0
    while place < len(lengths):
        place += int(lengths[place]) + 1
        steps += 1
    return min(place, len(lengths)), steps
