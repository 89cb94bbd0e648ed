"""From the engine's values to the protocol's."""

from collections.abc import Callable, Sequence

import msgspec

from assistant import protocol
from assistant.daemon.choosing import Shown
from assistant.engine.tree import DraftTree, Plan

Spell = Callable[[int], bytes]


def step(request: str, index: int, shown: Shown, choice: protocol.Choice | None, spell: Spell) -> protocol.Step:
    """A step as clients see it.

    Args:
        request: its id.
        index: 0 for the prefill's.
        shown: the engine's, and what of it may be shown.
        choice: how large a tree it was allowed; None for a prefill.
        spell: the bytes of a token.
    """
    result = shown.step
    return protocol.Step(
        request=request,
        index=index,
        text=shown.text,
        tokens=result.tokens,
        texts=texts(result.tokens, spell),
        origins=tuple(str(origin) for origin in result.origins),
        tree=_tree(result.tree, result.accepted, spell) if result.tree.drafted else None,
        choice=None if choice is None else _with_plan(choice, result.tree.plan),
        prefill_ms=result.prefill_ms,
        draft_ms=result.draft_ms,
        verify_ms=result.verify_ms,
        prompt_tokens=result.prompt_tokens,
        reused=result.reused,
        draft_reused=result.draft_reused,
        forwards=result.forwards,
        finish=None if result.finish is None else result.finish.value,
        anew=shown.anew,
    )


def _tree(tree: DraftTree, accepted: tuple[int, ...], spell: Spell) -> protocol.Tree:
    return protocol.Tree(
        tokens=tree.tokens,
        texts=texts(tree.tokens, spell),
        parents=tree.parents,
        values=tree.log_values,
        origins=tree.origins,
        accepted=accepted,
    )


def _with_plan(choice: protocol.Choice, plan: Plan | None) -> protocol.Choice:
    """The bounds, and what the policy made of them."""
    if plan is None:
        return choice
    reason = "; ".join(part for part in (choice.reason, plan.reason) if part)
    return msgspec.structs.replace(
        choice, reason=reason, expected_tokens=plan.tokens, expected_ms=plan.ms, levels=plan.levels, trust=plan.trust
    )


def texts(tokens: Sequence[int], spell: Spell) -> tuple[str, ...]:
    """Each token's own text; half a character is U+FFFD."""
    return tuple(spell(token).decode("utf-8", "replace") for token in tokens)
