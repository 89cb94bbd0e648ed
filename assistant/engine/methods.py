"""The decoding methods by name: each is a drafter; everything else is the same for all."""

from assistant.engine import builders
from assistant.engine.adaptive import AdaptiveDrafter
from assistant.engine.cost import Costs
from assistant.engine.draft import Drafter, NoDraft
from assistant.engine.eagle import EagleDrafter
from assistant.engine.hybrid import HybridDrafter
from assistant.engine.independent import ModelDrafter
from assistant.engine.measure import costs_of
from assistant.engine.ngram import NgramDrafter
from assistant.engine.policy import Prices
from assistant.engine.tree import TreeShape
from assistant.errors import HeadMismatchError, UsageError
from models.draft_head import DraftHead
from models.target import Target

_BUILDERS = {"eagle1": builders.static, "eagle2": builders.dynamic, "best-first": builders.best_first}

METHODS = ("plain", "ngram", "sps", *_BUILDERS, "hybrid", "adaptive")
_ADAPTIVE_BOUNDS = TreeShape(nodes=32, depth=16)
"""the policy, not the bounds, decides how large its trees are"""
HEAD_METHODS = frozenset({*_BUILDERS, "hybrid"})
"""those that need a draft head"""


def resolve_method(method: str) -> str:
    """What a method's name means: `auto` is `adaptive`, which asks head and retrieval for what pays on this machine."""
    return "adaptive" if method == "auto" else method


def bounds_of(method: str) -> TreeShape:
    """The bounds of a method's trees where nobody gave others."""
    return _ADAPTIVE_BOUNDS if resolve_method(method) == "adaptive" else TreeShape()


def make_drafter(
    method: str,
    target: Target,
    *,
    head: DraftHead | None = None,
    draft: Target | None = None,
    costs: Costs | None = None,
) -> Drafter:
    """A fresh drafter.

    Args:
        method: one of `METHODS`.
        target: that it drafts for.
        head: an EAGLE head, where the method drafts with one or may.
        draft: the draft model of `sps`.
        costs: of this machine, for `adaptive`; None: those that are stored, or, where none are, measured now.

    Raises:
        UsageError: no such method, or what it drafts with is missing.
        HeadMismatchError: the draft model's vocabulary is not the target's.
    """
    if method not in METHODS:
        raise UsageError(f"there is no method {method!r}: choose one of {', '.join(METHODS)}")
    if method == "plain":
        return NoDraft()
    if method == "ngram":
        return NgramDrafter()
    if method == "sps":
        return ModelDrafter(_checked_draft(target, draft))
    if method == "adaptive":
        return AdaptiveDrafter(head, Prices(costs or costs_of(target, head)))
    if head is None:
        raise UsageError(
            f"{method} drafts with an EAGLE head, and none was found for {target.spec.name}: name one with --head"
        )
    if method == "hybrid":
        return HybridDrafter(head)
    return EagleDrafter(head, _BUILDERS[method])


def _checked_draft(target: Target, draft: Target | None) -> Target:
    if draft is None:
        raise UsageError("sps drafts with a second, smaller model: name it with --draft")
    if draft.spec.vocab_size != target.spec.vocab_size:
        raise HeadMismatchError(
            f"{draft.spec.name} cannot draft for {target.spec.name}: "
            f"it knows {draft.spec.vocab_size} tokens and the target {target.spec.vocab_size}"
        )
    return draft
