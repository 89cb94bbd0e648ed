"""How many tokens a step would bring: EAGLE-2 trees (Li et al. 2024b, section 4) drawn at every place of a text.

What the target writes greedily is known beforehand, so that no target has to run: a draft is accepted exactly where it
is the text. All places of a text are drafted at once, as a batch.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from models.training.features import FeatureText
from models.training.head import Keys, TrainableHead


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

    def children(self, features: Tensor) -> tuple[Tensor, Tensor]:
        """(S, w, H) -> the best tokens (S, w, width) and their log-probabilities, float32."""
        logits = F.linear(features.to(self.vocabulary.dtype), self.vocabulary).float()
        best = logits.log_softmax(-1).topk(min(self.width, logits.shape[-1]), -1)
        return self.draft_vocab[best.indices], best.values


@torch.inference_mode()
def accepted_lengths(head: TrainableHead, text: FeatureText, nodes: Sequence[int], drafting: Drafting) -> Tensor:
    """How many drafts the target accepts after each token that it wrote.

    Returns:
        (len(nodes), S): by tree size, for the roots ids[prompt_tokens], ids[prompt_tokens + 1], ...
    """
    roots = torch.arange(max(text.prompt_tokens, 1), len(text.ids) - 1)
    length = len(text.ids)
    embeddings = drafting.embed(text.ids)[None]
    features = text.features[None].to(embeddings.dtype)
    first, rows = head(embeddings[:, 1:], features[:, :-1], torch.arange(length - 1)[None])
    places = roots - 1
    past = Keys(*(part.expand(len(places), -1, -1, -1) for part in (rows.keys, rows.values)))
    seen = torch.arange(length - 1)[None] <= places[:, None]
    values, path = _grow(head, drafting, _Roots(first[0, places][:, None], past, seen, places, text.ids))
    order = values.argsort(dim=-1, descending=True, stable=True).argsort(-1)
    place = order.gather(1, path.clamp_min(0)).masked_fill(path < 0, values.shape[1])
    return torch.stack([(place < count).long().cumprod(1).sum(1) for count in nodes])


@dataclass(frozen=True, slots=True)
class _Roots:
    """S places of one text from which trees grow."""

    features: Tensor
    """(S, 1, H) what the head predicts for each root"""
    past: Keys
    seen: Tensor
    """(S, rows of `past`) bool"""
    places: Tensor
    """(S,) the position of each root's row"""
    ids: Tensor


def _grow(head: TrainableHead, drafting: Drafting, roots: _Roots) -> tuple[Tensor, Tensor]:
    """Log values of all candidates (S, c), and at each depth the candidate that is the text's, or -1: (S, depth)."""
    count = len(roots.places)
    values, path = [], []
    past, frontier = roots.past, roots.features
    value = torch.zeros((count, 1))
    on_path = torch.zeros(count, dtype=torch.int64)
    ancestors = torch.zeros((count, 1, 0), dtype=torch.bool)
    total = 0
    for level in range(drafting.depth):
        tokens, log_probs = drafting.children(frontier)
        candidates = (value[..., None] + log_probs).flatten(1)
        at = roots.places + 2 + level
        wanted = roots.ids[at.clamp_max(len(roots.ids) - 1)]
        hit = (tokens == wanted[:, None, None]) & (at < len(roots.ids))[:, None, None]
        hit &= (torch.arange(tokens.shape[1]) == on_path[:, None])[..., None]
        found = hit.flatten(1)
        index = torch.where(found.any(1), found.long().argmax(1), -1)
        path.append(torch.where(index < 0, -1, index + total))
        values.append(candidates)
        total += candidates.shape[1]
        if level + 1 == drafting.depth:
            break
        best = candidates.topk(drafting.width, -1)
        kept, parents = best.indices, best.indices // tokens.shape[2]
        on_path = torch.where(index[:, None] == kept, torch.arange(kept.shape[1]), -1).amax(1)
        on_path = torch.where(index < 0, -1, on_path)
        value, chosen = best.values, tokens.flatten(1).gather(1, kept)
        before = ancestors.gather(1, parents[..., None].expand(-1, -1, ancestors.shape[2]))
        itself = torch.eye(kept.shape[1], dtype=torch.bool).expand(count, -1, -1)
        ancestors = torch.cat((before, itself), -1)
        mask = torch.cat((roots.seen[:, None].expand(-1, kept.shape[1], -1), ancestors), -1)
        embeddings = drafting.embed(chosen.flatten()).view(*chosen.shape, -1)
        came = frontier.gather(1, parents[..., None].expand(-1, -1, frontier.shape[2]))
        positions = (roots.places + 1 + level)[:, None].expand(-1, kept.shape[1])
        frontier, past = head(embeddings, came, positions, past, mask)
    return torch.cat(values, 1), torch.stack(path, 1)


def tokens_per_step(lengths: Tensor) -> tuple[int, int]:
    """Walk a text by what is accepted: (S,) lengths -> tokens written and steps taken."""
    place, steps = 0, 0
    while place < len(lengths):
        place += int(lengths[place]) + 1
        steps += 1
    return min(place, len(lengths)), steps
