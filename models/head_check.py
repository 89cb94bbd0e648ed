"""A short teacher-forced test of a draft head: does it predict this target, and would another reading fit better?

Heads differ in conventions that no tensor's shape tells: which token goes with which feature, which half of `fc` takes
it, the rotary base. A head that is read wrongly works without error and is hardly ever right.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from models.draft_head import DraftHead
from models.target import Cache, Target

_DEPTH = 4
_ANCHORS = 12
_GOOD = 0.15
"""share of right guesses that no head reaches by chance, and that every trained one does"""
_CLEARLY = 1.25

NewCache = Callable[[Any], Cache]
"""spec -> an empty cache"""


@dataclass(frozen=True, slots=True)
class Convention:
    """One way to read a head."""

    name: str
    config: Mapping[str, Any]
    state: Mapping[str, Tensor]
    shift: int = 1
    """row i takes token i + shift"""
    first: int = 0
    """position of row 0"""


@dataclass(frozen=True, slots=True)
class HeadCheck:
    """What the test found."""

    verdict: str
    """good; weak: it is seldom right; misread: another convention is right far more often"""
    top1_by_depth: tuple[float, ...]
    """how often the best draft is the target's best, after 0, 1, ... of the head's own features"""
    better_convention: str | None
    conventions: Mapping[str, float]
    """top-1 at the first depth of every reading that was tried"""


def check_head(
    config: Mapping[str, Any],
    state: Mapping[str, Tensor],
    target: Target,
    texts: Sequence[Sequence[int]],
    new_cache: NewCache,
) -> HeadCheck:
    """Run target and head over texts that the target is familiar with.

    Args:
        config: the head's config.json.
        state: its tensors.
        target: that it is meant for.
        texts: token ids, some dozens each at least.
        new_cache: see `NewCache`.

    Raises:
        HeadMismatchError: a tensor does not fit the target.
    """
    seen = [_Seen.of(target, ids, new_cache) for ids in texts]
    tops = {
        convention.name: _first_top1(convention, target, seen, new_cache)
        for convention in _conventions(config, state, target)
    }
    given = next(iter(tops))
    own = Convention(given, config, state)
    by_depth = _top1_by_depth(own, target, seen, new_cache)
    best = max(tops, key=lambda name: tops[name])
    better = best if tops[best] > max(_CLEARLY * tops[given], tops[given] + 0.02) else None
    verdict = "misread" if better else "good" if tops[given] >= _GOOD else "weak"
    return HeadCheck(verdict, by_depth, better, tops)


def _conventions(config: Mapping[str, Any], state: Mapping[str, Tensor], target: Target) -> Iterator[Convention]:
    """As the head says first, then one thing changed at a time."""
    own = Convention("as given", config, state)
    yield own
    yield replace(own, name="the token of its own place, not the next one", shift=0)
    yield replace(own, name="positions from 1", first=1)
    halves = state["fc.weight"].chunk(2, 1)
    yield replace(
        own, name="fc takes the feature first", state={**state, "fc.weight": torch.cat(halves[::-1], 1).contiguous()}
    )
    said = float(config.get("rope_theta") or 10000.0)
    shape = getattr(target, "config", None)
    for theta in sorted({10000.0, 1000000.0, float(getattr(shape, "rope_theta", 10000.0))} - {said}):
        yield replace(own, name=f"rope_theta {theta:g}", config={**config, "rope_theta": theta})


@dataclass(frozen=True, slots=True)
class _Seen:
    """A text as the target saw it."""

    ids: Tensor
    features: Tensor
    best: Tensor
    """(n,) the target's own next token after each"""

    @classmethod
    def of(cls, target: Target, ids: Sequence[int], new_cache: NewCache) -> "_Seen":
        device = target.spec.device
        tokens = torch.tensor(list(ids), device=device)
        forward = target.forward(tokens, torch.arange(len(tokens), device=device), new_cache(target.spec))
        return cls(tokens, forward.features, forward.logits.argmax(-1))


def _first_top1(convention: Convention, target: Target, seen: Sequence[_Seen], new_cache: NewCache) -> float:
    head = DraftHead.from_state(convention.config, convention.state, target)
    right = total = 0
    for text in seen:
        rows = len(text.ids) - 1
        tokens = text.ids[convention.shift : convention.shift + rows]
        positions = torch.arange(rows, device=tokens.device) + convention.first
        out = head.forward(tokens, text.features[:-1], positions, new_cache(head.spec))
        guesses = head.to_target_ids(out.logits.argmax(-1))
        right += int((guesses == text.best[1:]).sum())
        total += rows
    return right / max(1, total)


def _top1_by_depth(
    convention: Convention, target: Target, seen: Sequence[_Seen], new_cache: NewCache
) -> tuple[float, ...]:
    head = DraftHead.from_state(convention.config, convention.state, target)
    right, total = [0] * _DEPTH, 0
    for text in seen:
        last = len(text.ids) - _DEPTH - 1
        for anchor in range(last // _ANCHORS, last, max(1, last // _ANCHORS)):
            total += 1
            cache = new_cache(head.spec)
            rows = torch.arange(anchor + 1, device=text.ids.device)
            out = head.forward(text.ids[1 : anchor + 2], text.features[: anchor + 1], rows, cache, last_only=True)
            for depth in range(_DEPTH):
                at = anchor + depth + 1
                guess = int(head.to_target_ids(out.logits[-1].argmax(-1)))
                right[depth] += guess == int(text.best[at])
                # The text's own token goes in, so that every depth is judged at a place that the target knows.
                token, place = text.ids[at + 1 : at + 2], torch.tensor([at], device=text.ids.device)
                out = head.forward(token, out.features[-1:], place, cache)
    return tuple(count / max(1, total) for count in right)
