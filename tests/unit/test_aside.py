"""Rows beside a session's own: what they see, that nothing else sees them, and that they change no bit of anything."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from assistant.engine.aside import Aside, after
from assistant.engine.draft import NoDraft
from assistant.engine.generate import generate
from assistant.engine.review import Passage, confidence, deviations, log_prob, review
from assistant.engine.session import Session
from assistant.engine.types import GenerateOptions, Prompt
from assistant.errors import ContextOverflowError
from tests.support.fakes import FakeTarget
from tests.support.rooms import models

PROMPT = Prompt((1, 2, 3, 4))


def session_of(target: FakeTarget, tokens: int = 5) -> Session:
    """A session that holds a prompt and most of what its target wrote."""
    session = Session(target, NoDraft())
    list(generate(session, PROMPT, GenerateOptions(max_tokens=tokens)))
    return session


class TestAside:
    @settings(max_examples=60, deadline=None)
    @given(st.data())
    def test_every_node_sees_a_beginning_of_the_text_and_its_own_path(self, data: st.DataObject) -> None:
        target = FakeTarget(8, seed=3)
        session = session_of(target)
        text, aside = list(session.ids), Aside(session)
        contexts: list[list[int]] = []
        for _ in range(data.draw(st.integers(1, 3))):
            tokens, parents = [], []
            for _ in range(data.draw(st.integers(1, 4))):
                token = data.draw(st.integers(0, 7))
                roots = [after(rows) for rows in range(len(text) + 1)]
                parent = data.draw(st.sampled_from([*roots, *range(len(contexts))]))
                contexts.append([*(text[:~parent] if parent < 0 else contexts[parent]), token])
                tokens.append(token)
                parents.append(parent)
            logits = aside.grow(tokens, parents)
            expected = torch.stack([target.logits(context) for context in contexts[-len(tokens) :]])
            assert torch.equal(logits, expected)
        assert aside.size == len(contexts)
        assert session.ids == text

    def test_a_session_goes_on_as_if_nothing_had_been(self) -> None:
        target = FakeTarget(8, seed=3)
        session = session_of(target)
        Aside(session).grow([5, 6, 7], [after(2), 0, after(6)])
        found = [token for step in generate(session, PROMPT, GenerateOptions(max_tokens=12)) for token in step.tokens]
        fresh = generate(Session(target, NoDraft()), PROMPT, GenerateOptions(max_tokens=12))
        assert found == [token for step in fresh for token in step.tokens]

    def test_more_than_the_context_holds_is_refused_and_the_session_starts_afresh(self) -> None:
        session = session_of(FakeTarget(8, limit=12))
        aside = Aside(session)
        with pytest.raises(ContextOverflowError):
            aside.grow([1] * (aside.room + 1), [after(1)] * (aside.room + 1))
        assert session.ids == []

    @pytest.mark.parametrize("precision", ["float32", "int8"])
    def test_a_model_answers_as_for_the_text_alone(self, precision: str) -> None:
        target, _ = models(precision)
        session = Session(target, NoDraft())
        prompt = Prompt(tuple(range(20, 60)))
        list(generate(session, prompt, GenerateOptions(max_tokens=6)))
        aside = Aside(session)
        first = aside.grow([7, 8], [after(17), after(42)])
        second = aside.grow([9, 10, 11], [0, 1, 2])
        for logits, context in (
            (first[0], [*session.ids[:17], 7]),
            (second[0], [*session.ids[:17], 7, 9]),
            (second[2], [*session.ids[:17], 7, 9, 11]),
            (second[1], [*session.ids[:42], 8, 10]),
        ):
            alone = Session(target, NoDraft())
            ids, positions = torch.tensor(context), torch.arange(len(context))
            expected = target.forward(ids, positions, alone.cache, last_only=True).logits[0]
            if target.spec.batch_exact:
                assert torch.equal(logits, expected)
            else:
                assert torch.allclose(logits, expected, atol=1e-4)


class TestReview:
    def test_every_token_has_its_probability_and_runners_up(self) -> None:
        target = FakeTarget(8, seed=3)
        session = session_of(target)
        tokens = (4, 0, 5)
        (found,) = review(Aside(session), [Passage(3, tokens)], others=3)
        context = list(PROMPT.ids[:3])
        for one, token in zip(found, tokens, strict=True):
            expected = torch.log_softmax(target.logits(context), dim=-1)
            assert one.token == token
            assert one.log_prob == pytest.approx(float(expected[token]), abs=1e-5)
            others = expected.index_fill(0, torch.tensor(token), -torch.inf)
            assert [other for other, _ in one.others] == others.topk(3).indices.tolist()
            context.append(token)

    def test_passages_share_the_rows_of_what_they_begin_with(self) -> None:
        target = FakeTarget(8, seed=3)
        session = session_of(target)
        before = target.rows
        together = review(
            Aside(session), [Passage(4, (5, 6, 7)), Passage(4, (5, 6, 1)), Passage(4, (5, 2, 7)), Passage(2, (5,))]
        )
        assert target.rows - before == 5
        apart = [review(Aside(session), [one])[0] for one in (Passage(4, (5, 2, 7)), Passage(2, (5,)))]
        assert [[(one.token, one.log_prob, one.others) for one in found] for found in together[2:]] == [
            [(one.token, one.log_prob, one.others) for one in found] for found in apart
        ]

    def test_a_text_may_go_on_behind_any_of_its_tokens(self) -> None:
        target = FakeTarget(8, seed=3)
        aside = Aside(session_of(target))
        (found,) = review(aside, [Passage(4, (5, 6, 7))])
        logits = aside.grow([1], [found[2].node])
        assert torch.equal(logits[0], target.logits([*PROMPT.ids, 5, 6, 1]))

    def test_confidence_is_the_geometric_mean(self) -> None:
        (found,) = review(Aside(session_of(FakeTarget(8))), [Passage(1, (2, 3))])
        product = torch.tensor([one.log_prob for one in found]).sum().exp()
        assert confidence(log_prob(found), 2) == pytest.approx(float(product) ** 0.5, rel=1e-5)
        assert confidence(0.0, 0) == 1.0

    def test_the_most_probable_other_text_comes_first(self) -> None:
        (found,) = review(Aside(session_of(FakeTarget(8))), [Passage(1, (2, 3, 4))], others=3)
        values = deviations(found)
        for value, place, token in values:
            assert value == pytest.approx(log_prob(found[:place]) + dict(found[place].others)[token])
        assert len(values) == 9
        assert values == sorted(values, key=lambda one: -one[0])
        assert {place for _, place, _ in deviations(found, 1)} == {1, 2}
