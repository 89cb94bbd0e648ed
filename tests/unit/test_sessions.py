"""Sessions between completions: what is reused is what a fresh session would compute, whatever happened before."""

from dataclasses import dataclass
from functools import cache
from itertools import islice
from random import Random
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from assistant.engine.eagle import EagleDrafter
from assistant.engine.generate import generate
from assistant.engine.hybrid import HybridDrafter
from assistant.engine.kv_cache import KVCache
from assistant.engine.methods import METHODS, make_drafter
from assistant.engine.sequences import common_prefix
from assistant.engine.session import Session
from assistant.engine.tree import TreeShape
from assistant.engine.types import FinishReason, GenerateOptions, Prompt, Sampling
from assistant.metrics import summarize
from models.decoder import LeanDecoder
from models.draft_head import DraftHead
from tests.support.agreeing import agreeing_head, agreeing_target
from tests.support.fakes import FakeHead, FakeTarget, NearTarget
from tests.support.prices import COSTS

SHAPE = TreeShape(nodes=6, depth=3, width=3)


class FaultError(Exception):
    """Something that went wrong in the middle of a forward."""


@dataclass
class Fuse:
    """Makes one forward fail, of all those of a session's models."""

    forwards_left: int = 0
    late: bool = False
    """whether it fails after it has written its rows"""

    def protect(self, model: Any) -> None:
        """Put the fuse into a model."""
        forward = model.forward

        def fragile(*args: Any, **kwargs: Any) -> Any:
            self.forwards_left -= 1
            if self.forwards_left == 0 and not self.late:
                raise FaultError
            result = forward(*args, **kwargs)
            if self.forwards_left == 0:
                raise FaultError
            return result

        model.forward = fragile


# --- On fakes, whose rows check themselves (tests/support/fakes.py)


def fake_session(method: str, fuse: Fuse) -> Session:
    target = FakeTarget(limit=64)
    head = FakeHead(target, noise=0.7)
    draft = NearTarget(target, noise=0.7)
    for model in (target, head, draft):
        fuse.protect(model)
    return Session(target, make_drafter(method, target, head=head.as_head(), draft=draft, costs=COSTS))


@cache
def plain_tokens(ids: tuple[int, ...], tokens: int) -> tuple[int, ...]:
    target = FakeTarget(limit=64)
    session = Session(target, make_drafter("plain", target))
    steps = generate(session, Prompt(ids), GenerateOptions(max_tokens=tokens))
    return summarize(list(steps)).token_ids


@st.composite
def next_prompts(draw: st.DrawFn, ids: list[int], written: list[int]) -> tuple[int, ...]:
    """What an editor asks next: the same, something typed or accepted, something changed on the way, something else."""
    known = [*ids, *written]
    kind = draw(st.sampled_from(["same", "accepted", "typed", "changed", "other"]))
    typed = draw(st.lists(st.integers(0, 5), min_size=1, max_size=4))
    cut = draw(st.integers(0, len(known)))
    asked = {
        "same": ids,
        "accepted": [*ids, *written[: draw(st.integers(0, len(written)))]],
        "typed": [*ids, *typed],
        "changed": [*known[:cut], *typed, *known[cut + 1 :]],
        "other": typed,
    }[kind]
    return tuple(asked[-40:]) if len(asked) > 40 else tuple(asked or typed)


@pytest.mark.parametrize("method", METHODS)
@settings(max_examples=30)
@given(data=st.data())
def test_whatever_happened_before_a_completion_is_a_fresh_sessions(method: str, data: st.DataObject) -> None:
    fuse = Fuse()
    session = fake_session(method, fuse)
    ids, written, failed = [1, 2, 3], list[int](), False
    for _ in range(data.draw(st.integers(2, 6))):
        prompt = data.draw(next_prompts(list(ids), written))
        shared = common_prefix(session.ids, prompt)
        event = data.draw(st.sampled_from(["whole", "whole", "abandon", "cancel", "sample", "fail"]))
        sampling = Sampling(1.0, seed=3) if event == "sample" else Sampling()
        options = GenerateOptions(max_tokens=data.draw(st.integers(1, 12)), tree=SHAPE, sampling=sampling)
        moment = data.draw(st.integers(0, 6))
        looks = iter([*[False] * moment, *[True] * 99])
        withdrawn = (lambda looks=looks: next(looks)) if event == "cancel" else (lambda: False)
        fuse.forwards_left, fuse.late = moment if event == "fail" else 0, data.draw(st.booleans())
        steps = generate(session, Prompt(prompt), options, None, withdrawn)
        results = []
        try:
            for step in islice(steps, moment if event == "abandon" else None):
                results.append(step)  # noqa: PERF402 - what came before a failure counts
        except FaultError:
            assert session.ids == []
            failed = True
        else:
            failed = False
        ids, written = list(prompt), [token for step in results for token in step.tokens]
        if event != "sample":
            assert tuple(written) == plain_tokens(prompt, options.max_tokens)[: len(written)]
            assert failed or event in {"abandon", "cancel"} or len(written) == options.max_tokens
        if results and results[0].prompt_tokens:
            # All that is shared is reused, but for the last row, and one more whose draft hangs on a changed token.
            assert results[0].reused >= min(shared, len(prompt)) - (2 if session.drafter.needs_features else 1)
        held = session.cache._buffer[0, 0, 0, : len(session.ids), 0].tolist()
        assert held == session.ids, "rows are those of the tokens that the session names"


def test_an_identical_request_computes_its_last_rows_only() -> None:
    target = FakeTarget()
    for method, rows in (("plain", 1), ("ngram", 1), ("eagle2", 1)):
        session = Session(target, make_drafter(method, target, head=FakeHead(target).as_head(), costs=COSTS))
        prompt, options = Prompt((1, 2, 3, 4, 5, 4, 3, 2)), GenerateOptions(max_tokens=1)
        list(generate(session, prompt, options))
        before = target.rows
        (step,) = generate(session, prompt, options)
        assert target.rows - before == rows
        assert (step.reused, step.prompt_tokens) == (8 - rows, 8)


def test_a_long_prompt_can_be_withdrawn_between_its_chunks_and_goes_on_from_there() -> None:
    target = FakeTarget(limit=900, order=2)
    session = Session(target, make_drafter("eagle2", target, head=FakeHead(target).as_head()))
    prompt = Prompt(tuple(i % 5 for i in range(600)))
    looks = iter([False, True])
    (step,) = generate(session, prompt, GenerateOptions(), None, lambda: next(looks))
    assert step.finish is FinishReason.CANCELLED
    assert len(session.ids) == 256
    first = next(generate(session, prompt, GenerateOptions(max_tokens=3, tree=SHAPE)))
    assert first.reused == 255


# --- On real forwards: the rows themselves


@cache
def models(precision: str) -> tuple[LeanDecoder, DraftHead]:
    target = agreeing_target(precision)
    return target, agreeing_head(target)


def rows_of(drafter: Any) -> KVCache:
    """A head's own cache."""
    eagle = drafter._eagle if isinstance(drafter, HybridDrafter) else drafter
    assert isinstance(eagle, EagleDrafter)
    return eagle._cache


def live(session: Session, random: Random) -> None:
    """Some completions of one document: accepted, rejected, abandoned, typed over; 250 rows outgrow a first cache."""
    ids = [random.randrange(96) for _ in range(random.choice([3, 40, 250]))]
    for _ in range(4):
        sampling = Sampling(random.choice([0.0, 0.0, 0.8]), seed=random.randrange(99))
        options = GenerateOptions(max_tokens=random.randrange(1, 14), tree=SHAPE, sampling=sampling)
        steps = list(islice(generate(session, Prompt(tuple(ids)), options), random.choice([1, 3, 99])))
        ids += [token for step in steps for token in step.tokens][: random.randrange(9)]
        if random.random() < 0.5:
            del ids[max(1, len(ids) - random.randrange(12)) :]
            ids.append(random.randrange(96))


@torch.inference_mode()
def prefilled(target: LeanDecoder, ids: list[int]) -> tuple[KVCache, Tensor]:
    """A fresh cache of these tokens, and their features."""
    fresh = KVCache.of(target.spec)
    out = target.forward(torch.tensor(ids), torch.arange(len(ids)), fresh, last_only=True)
    return fresh, out.features


@torch.inference_mode()
def following(target: LeanDecoder, cache_: KVCache) -> Tensor:
    """Logits of two more rows."""
    out = target.forward(torch.tensor([5, 6]), torch.arange(2) + cache_.length, cache_)
    cache_.rewind(cache_.length - 2)
    return out.logits


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("precision", ["int8", "float32"])
@pytest.mark.parametrize("method", ["ngram", "eagle1", "eagle2", "hybrid"])
def test_the_targets_cache_is_a_fresh_prefills(method: str, precision: str, seed: int) -> None:
    target, head = models(precision)
    session = Session(target, make_drafter(method, target, head=head, costs=COSTS))
    live(session, Random(seed))
    assert session.cache.length == len(session.ids)
    fresh, _ = prefilled(target, session.ids)
    left, right = following(target, session.cache), following(target, fresh)
    if target.spec.batch_exact:
        assert torch.equal(left, right)
        size = len(session.ids)
        assert torch.equal(session.cache._buffer[..., :size, :], fresh._buffer[..., :size, :])
    else:
        assert torch.allclose(left, right, rtol=0.0, atol=1e-5)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("method", ["eagle1", "eagle2", "best-first", "hybrid"])
def test_the_heads_cache_is_a_fresh_one_fed_with_true_features(method: str, seed: int) -> None:
    target, head = models("float32")
    session = Session(target, make_drafter(method, target, head=head, costs=COSTS))
    live(session, Random(seed))
    _, features = prefilled(target, session.ids)
    fresh = make_drafter(method, target, head=head, costs=COSTS)
    fresh.begin(Prompt(tuple(session.ids)), 0)
    with torch.inference_mode():
        fresh.observe(session.ids, features)
        trees = [drafter.draft(7, SHAPE, Sampling(), Random(0)) for drafter in (session.drafter, fresh)]
    size = len(session.ids)
    assert rows_of(session.drafter).length == rows_of(fresh).length == size
    left, right = (rows_of(drafter)._buffer[..., :size, :] for drafter in (session.drafter, fresh))
    assert torch.allclose(left, right, rtol=1e-5, atol=1e-5)
    if method != "hybrid":
        # The two lookups of a hybrid saw different texts.
        assert trees[0].tokens == trees[1].tokens
        assert trees[0].log_values == pytest.approx(trees[1].log_values, abs=1e-4)


def test_rows_of_a_draft_left_in_place_would_be_noticed() -> None:
    """The test above can fail: rows computed from the head's own guesses are not those of true features."""
    target, head = models("float32")
    _, features = prefilled(target, [1, 2, 3, 4])
    caches = [KVCache.of(head.spec) for _ in range(2)]
    guessed = features.clone()
    guessed[2] = head.forward(torch.tensor([2, 3]), features[:2], torch.arange(2), KVCache.of(head.spec)).features[1]
    for rows, fed in zip(caches, (features, guessed), strict=True):
        head.forward(torch.tensor([2, 3, 4]), fed[:3], torch.arange(3), rows)
    left, right = (rows._buffer[..., :3, :] for rows in caches)
    assert not torch.allclose(left, right, rtol=1e-5, atol=1e-5)
