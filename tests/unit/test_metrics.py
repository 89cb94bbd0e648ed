"""A completion's steps folded into figures."""

import pytest

from assistant.engine.generate import generate
from assistant.engine.methods import make_drafter
from assistant.engine.session import Session
from assistant.engine.tree import DraftTree, TreeShape, chain, root_only
from assistant.engine.types import FinishReason, GenerateOptions, Origin, Prompt, StepResult
from assistant.metrics import acceptance_by_depth, summarize
from tests.support.fakes import FakeHead, FakeTarget


def step(tree: DraftTree, accepted: tuple[int, ...], tokens: int, *, finish: FinishReason | None = None) -> StepResult:
    return StepResult(
        tokens=(5,) * tokens,
        origins=(Origin.HEAD,) * tokens,
        text="x" * tokens,
        tree=tree,
        accepted=accepted,
        draft_ms=2.0,
        verify_ms=3.0,
        finish=finish,
    )


PREFILL = StepResult(
    (5,), (Origin.TARGET,), "p", root_only(1), (), forwards=0, prefill_ms=7.0, prompt_tokens=9, reused=4
)
LINE = chain(1, [2, 3], [-0.1, -0.2], "head")
FORK = DraftTree((1, 2, 3, 4), (-1, 0, 0, 1), (0.0, -0.1, -0.2, -0.3), ("", *["head"] * 3))


def test_a_completion_in_figures() -> None:
    steps = [PREFILL, step(LINE, (1, 2), 3), step(FORK, (2,), 2), step(root_only(1), (), 1, finish=FinishReason.LENGTH)]
    summary = summarize(steps)
    assert summary.tokens == len(summary.token_ids) == 7
    assert summary.text == "pxxxxxx"
    assert summary.forwards == 3
    assert summary.tokens_per_step == 2.0
    assert (summary.prompt_tokens, summary.reused) == (9, 4)
    assert (summary.prefill_ms, summary.draft_ms, summary.verify_ms) == (7.0, 6.0, 9.0)
    assert summary.finish is FinishReason.LENGTH


def test_acceptance_counts_only_steps_that_had_a_draft_at_that_depth() -> None:
    # Depth 1: 3 tried, 2 accepted. Depth 2: tried below node 1 of LINE alone, for node 2 of FORK has no child.
    steps = [PREFILL, step(LINE, (1, 2), 3), step(FORK, (2,), 2), step(FORK, (), 1), step(root_only(1), (), 1)]
    assert acceptance_by_depth(steps) == pytest.approx((2 / 3, 1.0))
    assert acceptance_by_depth([*steps, step(LINE, (1,), 2)]) == pytest.approx((3 / 4, 0.5))
    deep = chain(1, [2, 3, 4, 5], [-0.1, -0.2, -0.3, -0.4], "head")
    assert acceptance_by_depth([step(deep, (1, 2, 3), 4)]) == (1.0, 1.0, 1.0, 0.0)


def test_nothing_or_a_prefill_alone() -> None:
    assert summarize([]).tokens_per_step == 0.0
    assert summarize([]).finish is None
    assert summarize([PREFILL]).tokens_per_step == 0.0
    assert summarize([PREFILL]).acceptance_by_depth == ()


def test_the_figures_of_a_real_completion_agree_with_one_another() -> None:
    target = FakeTarget(seed=3)
    session = Session(target, make_drafter("eagle2", target, head=FakeHead(target, noise=0.7).as_head()))
    options = GenerateOptions(max_tokens=40, tree=TreeShape(nodes=6, depth=3, width=3))
    steps = list(generate(session, Prompt((1, 2, 3)), options))
    summary = summarize(steps)
    assert summary.tokens == 40
    assert summary.forwards == len(steps) - 1
    assert summary.tokens_per_step == pytest.approx(39 / summary.forwards)
    accepted = [origin for one in steps for origin in one.origins if origin is Origin.HEAD]
    assert 0 < len(accepted) < 40
    # Every step but the cut last one brings its accepted path and one token more.
    assert all(len(one.tokens) == len(one.accepted) + 1 for one in steps[:-1])
    assert summary.acceptance_by_depth[0] > 0.3
