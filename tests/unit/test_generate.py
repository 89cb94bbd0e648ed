"""Losslessness: whatever drafts, greedy completions are plain decoding's, and end at the same token and character."""

from collections.abc import Iterator, Sequence
from functools import cache
from itertools import islice
from random import Random

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from assistant.engine.generate import generate
from assistant.engine.kv_cache import KVCache
from assistant.engine.methods import HEAD_METHODS, METHODS, make_drafter, resolve_method
from assistant.engine.sampling import probabilities
from assistant.engine.session import Session
from assistant.engine.tree import TreeShape
from assistant.engine.types import FinishReason, GenerateOptions, Origin, Prompt, Sampling, StepResult
from assistant.errors import ContextOverflowError, HeadMismatchError, UsageError
from assistant.metrics import Summary, summarize
from models.decoder import LeanDecoder
from models.draft_head import DraftHead
from models.target import Target
from tests.support.agreeing import agreeing_head, agreeing_target
from tests.support.fakes import FakeHead, FakeTarget, FakeTokenizer, NearTarget
from tests.support.prices import COSTS
from tests.support.tiny import tiny_head, tiny_target

DRAFTING = [method for method in METHODS if method != "plain"]
SHAPES = {
    "default": TreeShape(),
    "one node": TreeShape(nodes=1, depth=1, width=1),
    "deep chain": TreeShape(nodes=8, depth=8, width=1),
    "wide": TreeShape(nodes=30, depth=4, width=10, top_p=0.95, margin=2.5, threshold=1e-4),
    "no reranking": TreeShape(nodes=8, depth=4, width=3, rerank=False),
    "by confidence": TreeShape(nodes=8, depth=4, width=3, rank="confidence"),
    "nothing": TreeShape(nodes=0, depth=0, width=0),
}
PROMPTS = [(1, 2, 3, 4, 5, 6), (7, 8, 9, 7, 8, 9, 7, 8, 9, 7), (11,), tuple(i * i % 90 for i in range(300))]


@cache
def models(precision: str, *, vocab: int | None = None) -> tuple[LeanDecoder, DraftHead, LeanDecoder]:
    """A target, a head and a draft model that are often right."""
    target = agreeing_target(precision)
    return target, agreeing_head(target, draft_vocab=vocab), agreeing_target(precision, layers_seed=3)


def session_of(method: str, target: Target, head: DraftHead, draft: Target) -> Session:
    return Session(target, make_drafter(method, target, head=head, draft=draft, costs=COSTS))


def complete(session: Session, ids: Sequence[int], tokens: int, shape: TreeShape = SHAPES["default"]) -> Summary:
    return summarize(list(generate(session, Prompt(tuple(ids)), GenerateOptions(max_tokens=tokens, tree=shape))))


@cache
def plain_tokens(precision: str, ids: tuple[int, ...], tokens: int) -> tuple[int, ...]:
    target, head, draft = models(precision)
    return complete(session_of("plain", target, head, draft), ids, tokens).token_ids


@pytest.mark.parametrize("shape", list(SHAPES.values()), ids=list(SHAPES))
@pytest.mark.parametrize("method", DRAFTING)
def test_int8_completions_are_plain_decodings_token_by_token(method: str, shape: TreeShape) -> None:
    session = session_of(method, *models("int8"))
    for ids in PROMPTS[:3]:
        assert complete(session, ids, 24, shape).token_ids == plain_tokens("int8", ids, 24)


@pytest.mark.parametrize("method", DRAFTING)
def test_float32_completions_differ_only_where_the_two_best_logits_tie(method: str) -> None:
    target, head, draft = models("float32")
    for ids in PROMPTS:
        written = complete(session_of(method, target, head, draft), ids, 32).token_ids
        plain = plain_tokens("float32", ids, 32)
        if written != plain:
            same = next(i for i in range(32) if written[i] != plain[i])
            context = torch.tensor([*ids, *plain[:same]])
            with torch.inference_mode():
                out = target.forward(context, torch.arange(len(context)), KVCache.of(target.spec), last_only=True)
            best = out.logits[0].topk(2).values
            assert float(best[0] - best[1]) < 1e-4


@pytest.mark.parametrize("method", DRAFTING)
def test_drafts_are_accepted_at_all(method: str) -> None:
    """Without this, losslessness would be easy: these models accept drafts, rejects included, over several levels."""
    summary = complete(session_of(method, *models("float32")), PROMPTS[0], 40)
    assert summary.tokens_per_step > 1.4
    assert len(summary.acceptance_by_depth) > 1
    assert min(summary.acceptance_by_depth) < 1.0


@pytest.mark.parametrize("method", sorted(HEAD_METHODS))
@pytest.mark.parametrize("vocab", [1, 5, 48])
def test_a_small_draft_vocabulary_costs_acceptance_only(method: str, vocab: int) -> None:
    session = session_of(method, *models("int8", vocab=vocab))
    assert complete(session, PROMPTS[0], 20).token_ids == plain_tokens("int8", PROMPTS[0], 20)


@pytest.mark.parametrize("family", ["llama", "qwen2", "qwen3"])
@pytest.mark.parametrize("method", DRAFTING)
def test_drafters_that_are_never_right_change_nothing(method: str, family: str) -> None:
    target = tiny_target(family, "int8")
    plain = complete(Session(target, make_drafter("plain", target)), PROMPTS[0], 12).token_ids
    session = session_of(method, target, tiny_head(target), tiny_target(family, "int8", seed=9))
    assert complete(session, PROMPTS[0], 12).token_ids == plain


# --- Ends, on fakes: their rows check themselves, see tests/support/fakes.py


def fake_session(method: str, *, seed: int = 0, limit: int = 96, noise: float = 0.7, order: int = 0) -> Session:
    target = FakeTarget(seed=seed, limit=limit, order=order)
    head = FakeHead(target, noise=noise).as_head()
    return session_of(method, target, head, NearTarget(target, noise=noise))


SPELLINGS = FakeTokenizer((b"a", b"b", b"ab", b"\xc3", b"\xa9", b"ba"))


def run(method: str, prompt: Prompt, options: GenerateOptions, seed: int) -> list[StepResult]:
    return list(generate(fake_session(method, seed=seed), prompt, options, SPELLINGS))


@settings(max_examples=25)
@given(
    seed=st.integers(0, 500),
    limit=st.integers(1, 30),
    stop_ids=st.sets(st.integers(0, 5), max_size=1),
    stops=st.lists(st.text("abé", min_size=2, max_size=5), max_size=2),
    forced=st.sampled_from([b"", b"", b"a", b"ba", b"abab", b"\xc3\xa9a"]),
    ids=st.lists(st.integers(0, 5), min_size=1, max_size=9),
    shape=st.sampled_from(list(SHAPES.values())),
)
def test_every_method_ends_where_plain_decoding_ends(
    seed: int, limit: int, stop_ids: set[int], stops: list[str], forced: bytes, ids: list[int], shape: TreeShape
) -> None:
    prompt = Prompt(tuple(ids), forced=forced)
    options = GenerateOptions(max_tokens=limit, tree=shape, stop_ids=frozenset(stop_ids), stop_strings=tuple(stops))
    plain = summarize(run("plain", prompt, options, seed))
    for method in DRAFTING:
        steps = run(method, prompt, options, seed)
        summary = summarize(steps)
        assert (summary.token_ids, summary.text, summary.finish) == (plain.token_ids, plain.text, plain.finish)
        assert [step.finish is not None for step in steps] == [*[False] * (len(steps) - 1), True]
        check_steps(steps, shape)
        if method != "hybrid":
            written = [sum(len(step.tokens) for step in steps[:place]) for place in range(len(steps))]
            assert all(step.tree.depth < limit - before for step, before in zip(steps[1:], written[1:], strict=True))
    spelt = b"".join(SPELLINGS.token_bytes(token) for token in plain.token_ids)
    assert spelt.startswith(forced) or forced.startswith(spelt)


def check_steps(steps: Sequence[StepResult], shape: TreeShape) -> None:
    """What each step says of itself fits together."""
    before = steps[0].tokens
    for step in steps[1:]:
        assert step.forwards == 1
        assert step.tree.drafted <= shape.nodes
        assert len(step.tokens) == len(step.origins) <= len(step.accepted) + 1
        path = [step.tree.tokens[node] for node in step.accepted]
        assert list(step.tokens[: len(path)]) == path[: len(step.tokens)]
        drafted = {Origin.HEAD, Origin.DRAFT, Origin.RETRIEVAL}
        assert all((origin in drafted) == (place < len(path)) for place, origin in enumerate(step.origins))
        if before:
            assert step.tree.tokens[0] == before[-1]
        before = step.tokens


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("room", [1, 2, 3, 5, 9])
def test_the_contexts_end_is_the_completions_end(method: str, room: int) -> None:
    session = fake_session(method, limit=40)
    ids = [i % 6 for i in range(40 - room)]
    shape = TreeShape(nodes=30, depth=6, width=8)
    summary = complete(session, ids, 100, shape)
    assert summary.finish is FinishReason.LENGTH
    assert summary.tokens == room
    assert summary.token_ids == complete(fake_session("plain", limit=90), ids, room).token_ids


@pytest.mark.parametrize("method", METHODS)
def test_a_prompt_that_leaves_no_room_is_the_users_error(method: str) -> None:
    with pytest.raises(ContextOverflowError, match="40 tokens and the context of fake holds 40"):
        complete(fake_session(method, limit=40), [0] * 40, 1)
    with pytest.raises(UsageError, match="no prompt"):
        complete(fake_session(method), [], 1)
    with pytest.raises(UsageError, match="not 0"):
        complete(fake_session(method), [1], 0)


def test_a_draft_model_with_a_shorter_context_drafts_until_it_is_full() -> None:
    target = FakeTarget(limit=90)
    session = Session(target, make_drafter("sps", target, draft=NearTarget(target, noise=0.3, limit=20)))
    summary = complete(session, [1, 2, 3], 60)
    assert summary.token_ids == complete(fake_session("plain"), [1, 2, 3], 60).token_ids
    assert 1.0 < summary.tokens_per_step < 2.0


def test_a_draft_model_draws_from_what_the_target_would_draw_from() -> None:
    target = FakeTarget()
    draft, sampling = NearTarget(target), Sampling(0.7, top_p=0.9, top_k=3)
    drafter = make_drafter("sps", target, draft=draft)
    drafter.begin(Prompt((1, 2)), 2)
    tree = drafter.draft(3, TreeShape(depth=2), sampling, Random(0))
    assert tree.draft_probs is not None
    for node in (1, 2):
        wanted = probabilities(draft.logits([1, 2, *tree.tokens[:node]]), sampling)
        assert torch.equal(tree.draft_probs[node], wanted)
        assert wanted[tree.tokens[node]] > 0.0


def test_each_token_says_where_it_comes_from() -> None:
    kinds = {method: set[Origin]() for method in METHODS}
    for method in METHODS:
        for step in run(method, Prompt((1, 2, 1, 2)), GenerateOptions(max_tokens=60), seed=4):
            kinds[method] |= set(step.origins)
    own = {Origin.TARGET, Origin.CORRECTION, Origin.BONUS}
    assert kinds["plain"] == {Origin.TARGET}
    assert kinds["sps"] - own == {Origin.DRAFT}
    assert all(kinds[method] - own == {Origin.HEAD} for method in ("eagle1", "eagle2", "best-first"))
    assert kinds["hybrid"] - own <= {Origin.HEAD, Origin.RETRIEVAL}
    assert {Origin.CORRECTION, Origin.BONUS} <= kinds["eagle2"]


@pytest.mark.parametrize("method", METHODS)
def test_the_same_seed_gives_the_same_draws(method: str) -> None:
    def drawn(seed: int) -> tuple[int, ...]:
        options = GenerateOptions(max_tokens=30, sampling=Sampling(1.0, seed=seed))
        return summarize(list(generate(fake_session(method), Prompt((1, 2)), options))).token_ids

    assert drawn(1) == drawn(1)
    assert len({drawn(seed) for seed in range(4)}) > 1


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("after", [0, 1, 2, 4])
def test_a_cancelled_completion_says_so_and_is_a_beginning_of_the_whole(method: str, after: int) -> None:
    looks: Iterator[bool] = iter([*[False] * after, *[True] * 50])
    steps = list(generate(fake_session(method), Prompt((1, 2, 3)), GenerateOptions(), None, lambda: next(looks)))
    summary = summarize(steps)
    assert summary.finish is FinishReason.CANCELLED
    assert summary.forwards == max(0, after - 1)
    whole = complete(fake_session("plain"), (1, 2, 3), 90).token_ids
    assert whole[: summary.tokens] == summary.token_ids
    assert (after == 0) == (summary.tokens == 0)


def test_cancelling_gives_back_text_that_was_held() -> None:
    options = GenerateOptions(stop_strings=("zz" * 40, "a" * 300))
    session = fake_session("plain", seed=1)
    steps = list(islice(generate(session, Prompt((1,)), options, SPELLINGS, lambda: len(session.ids) > 12), 100))
    text = "".join(step.text for step in steps)
    tokens = [token for step in steps for token in step.tokens]
    assert text == b"".join(SPELLINGS.token_bytes(token) for token in tokens).decode("utf-8", "replace")


def test_methods_that_lack_what_they_draft_with_are_the_users_error() -> None:
    target = FakeTarget()
    for method in HEAD_METHODS:
        with pytest.raises(UsageError, match="--head"):
            make_drafter(method, target)
    with pytest.raises(UsageError, match="--draft"):
        make_drafter("sps", target)
    with pytest.raises(UsageError, match="no method 'medusa'"):
        make_drafter("medusa", target)
    with pytest.raises(HeadMismatchError, match="7 tokens and the target 6"):
        make_drafter("sps", target, draft=FakeTarget(7))
    assert resolve_method("auto") == "adaptive"
    assert resolve_method("plain") == "plain"
