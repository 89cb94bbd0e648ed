"""A suggestion: another text where nothing of the first may be shown, and none where the target was not sure."""

from collections.abc import Sequence
from itertools import pairwise

import pytest
import torch
from torch import Tensor

from assistant.daemon.choosing import Choice, Shown, suggest
from assistant.daemon.prompt import build_prompt
from assistant.daemon.text import Filter, Policy, Reason, Settings
from assistant.daemon.text.wanted import wanted_names
from assistant.engine.draft import NoDraft
from assistant.engine.review import confidence, deviations, review
from assistant.engine.session import Session
from assistant.engine.types import FinishReason, GenerateOptions, Prompt
from models.fim import detect
from tests.support.fakes import FakeTarget
from tests.support.tiny_tokenizer import tiny_tokenizer

TOKENIZER = tiny_tokenizer()
MIDDLE = TOKENIZER.special("<|fim_middle|>")


class Writing(FakeTarget):
    """A target that writes given texts behind a fill-in-the-middle prompt: each path's next token, by preference."""

    def __init__(self, texts: Sequence[str]) -> None:
        super().__init__(TOKENIZER.vocab_size, limit=600)
        self._paths = [(*TOKENIZER.encode(text), min(TOKENIZER.eos_ids)) for text in texts]

    def logits(self, context: Sequence[int]) -> Tensor:
        scores = torch.zeros(self.spec.vocab_size)
        ids = list(context)
        written = tuple(ids[ids.index(MIDDLE) + 1 :]) if MIDDLE in ids else ()
        for rank, path in enumerate(self._paths):
            if path[: len(written)] == written and len(path) > len(written):
                scores[path[len(written)]] = max(float(scores[path[len(written)]]), 20.0 - 2 * rank)
        return scores


def run(document: str, texts: Sequence[str], choice: Choice | None = None) -> list[Shown]:
    cursor = document.index("‸")
    text = document.replace("‸", "")
    prompt = build_prompt(text, cursor, TOKENIZER, detect(TOKENIZER))

    def new_filter() -> Filter:
        return Policy.begin(text, cursor, "python", Settings())

    options = GenerateOptions(max_tokens=60, stop_ids=TOKENIZER.eos_ids)
    session = Session(Writing(texts), NoDraft())
    steps = suggest(session, prompt, options, TOKENIZER, new_filter, choice=choice or Choice())
    return [shown for shown in steps if shown is not None]


def text_of(steps: Sequence[Shown]) -> str:
    verdict = steps[-1].verdict
    assert verdict is not None
    assert "".join(step.text for step in steps) == verdict.text
    assert all(step.verdict is None for step in steps[:-1])
    return verdict.text


def test_the_first_text_is_shown_where_it_may_be() -> None:
    assert text_of(run("x = 1\n‸\ny = 2\n", ["z = 3\n", "w = 4\n"])) == "z = 3"


def test_another_text_is_tried_where_nothing_of_the_first_is_left() -> None:
    assert text_of(run("x = 1\n‸\ny = 2\n", ["y = 2\n", "y = 5\n"])) == "y = 5"


def test_it_parts_from_the_first_where_the_target_was_least_sure() -> None:
    assert text_of(run("x = 1\n‸\ny = 2\n", ["y = 2\n", "x = 1\n", "zz = 4\n"])) == "zz = 4"


def test_no_more_texts_are_tried_than_are_asked_for() -> None:
    steps = run("x = 1\n‸\ny = 2\n", ["y = 2\n", "y = 5\n"], Choice(attempts=1))
    assert text_of(steps) == ""
    assert steps[-1].verdict is not None
    assert steps[-1].verdict.reason is Reason.REPEATS_NEXT


def test_only_the_last_step_says_that_it_is_the_end() -> None:
    steps = run("x = 1\n‸\ny = 2\n", ["y = 2", "y = 5\n"])
    assert text_of(steps) == "y = 5"
    assert all(shown.step.finish is None for shown in steps[:-1])


def test_generation_ends_as_soon_as_the_policy_has_seen_enough() -> None:
    steps = run("x = 1\n‸\ny = 2\n", ["z = 3\n" + "more = 4\n" * 5])
    assert text_of(steps) == "z = 3"
    assert len(steps) <= len(TOKENIZER.encode("z = 3\n"))


def test_nothing_is_shown_where_the_target_was_not_sure() -> None:
    steps = run("x = 1\n‸\ny = 2\n", ["z = 3\n"], Choice(least_confidence=0.9999999))
    assert text_of(steps) == ""
    verdict = steps[-1].verdict
    assert verdict is not None
    assert verdict.reason is Reason.DOUBTFUL
    assert steps[-1].confidence is not None


def test_everything_is_shown_at_once_where_it_was_sure_enough() -> None:
    steps = run("x = 1\n‸\ny = 2\n", ["z = 3\n"], Choice(least_confidence=0.1))
    assert text_of(steps) == "z = 3"
    assert steps[-1].text == "z = 3"


def test_a_line_at_a_wrong_indentation_gives_way_to_another() -> None:
    document = "def f():\n    a()\n    if x:\n‸        b()\n        c()\n"
    assert text_of(run(document, ["    z()\n", "        z()\n"])) == "        z()\n"


class TestReview:
    def test_every_token_has_its_probability_and_a_runner_up(self) -> None:
        target = FakeTarget(8, seed=3)
        prompt, tokens = Prompt((1, 2, 3)), [4, 0, 5]
        found = review(Session(target, NoDraft()), prompt, tokens)
        context = list(prompt.ids)
        for one, token in zip(found, tokens, strict=True):
            expected = torch.log_softmax(target.logits(context), dim=-1)
            assert one.token == token
            assert one.log_prob == pytest.approx(float(expected[token]), abs=1e-5)
            others = expected.index_fill(0, torch.tensor(token), -torch.inf)
            assert [other for other, _ in one.others] == others.topk(3).indices.tolist()
            context.append(token)

    def test_a_session_that_knows_the_prompt_computes_the_text_alone(self) -> None:
        target = FakeTarget(8, seed=3)
        session = Session(target, NoDraft())
        review(session, Prompt((1, 2, 3, 4)), [5])
        before = target.rows
        review(session, Prompt((1, 2, 3, 4)), [5, 6, 7])
        assert target.rows - before == 3

    def test_confidence_is_the_geometric_mean(self) -> None:
        found = review(Session(FakeTarget(8), NoDraft()), Prompt((1,)), [2, 3])
        product = torch.tensor([one.log_prob for one in found]).sum().exp()
        assert confidence(found) == pytest.approx(float(product) ** 0.5, rel=1e-5)
        assert confidence([]) == 1.0

    def test_the_most_probable_other_text_comes_first(self) -> None:
        found = review(Session(FakeTarget(8), NoDraft()), Prompt((1,)), [2, 3, 4])
        values = []
        for place, token in deviations(found):
            values.append(sum(one.log_prob for one in found[:place]) + dict(found[place].others)[token])
        assert len(values) == 9
        assert all(left >= right for left, right in pairwise(values))
        assert {place for place, _ in deviations(found, 1)} == {1, 2}


def test_a_withdrawn_request_ends_at_once() -> None:
    session = Session(FakeTarget(TOKENIZER.vocab_size, limit=64), NoDraft())
    steps = suggest(
        session,
        Prompt((1, 2)),
        GenerateOptions(),
        TOKENIZER,
        lambda: Policy.begin("x\n", 2, "python", Settings()),
        cancelled=lambda: True,
    )
    assert [shown.step.finish for shown in steps if shown is not None] == [FinishReason.CANCELLED]


class TestWanted:
    DOCUMENT = "def f(rows):\n‸        print(elem)\n        return elem\n"

    def test_a_text_that_introduces_what_the_next_lines_use_goes_before_one_that_does_not(self) -> None:
        steps = run(self.DOCUMENT, ["    for x in rows:\n", "    for elem in rows:\n"])
        assert text_of(steps) == "    for elem in rows:\n"

    def test_where_none_does_it_stays_at_the_first(self) -> None:
        steps = run(self.DOCUMENT, ["    for x in rows:\n", "    for y in rows:\n"])
        assert text_of(steps) == "    for x in rows:\n"
        assert [shown.step.finish for shown in steps[:-1]] == [None] * (len(steps) - 1)
        assert steps[-1].anew
        assert TOKENIZER.decode(steps[-1].step.tokens).startswith("    for x in rows:")
        assert len(steps[-1].step.tokens) == len(steps[-1].step.origins)

    @pytest.mark.parametrize(
        ("head", "following", "names"),
        [
            ("def f(a):\n", ["    return total + a"], {"total"}),
            ("def f(a):\n", ["    total = a"], set()),
            ("def f(a):\n", ["    total += a"], {"total"}),
            ("def f(a):\n", ["    total = max(total, a)"], {"total"}),
            ("def f(a):\n", ["    for x, y in a:", "        g(x, y)"], set()),
            ("def f(a):\n", ["    return [x for x in a]"], set()),
            ("def f(a):\n", ["    return sorted(a, key=lambda x: x)"], set()),
            ("def f(a):\n", ["    return a.total", "    'text about words'"], set()),
            ("def f(a):\n", ["    import os", "    os.path"], set()),
            ("def f(a):\n", ["    return str(b), c, d"], set()),
        ],
    )
    def test_names_that_nothing_introduces(self, head: str, following: list[str], names: set[str]) -> None:
        assert wanted_names(head, following, "python") == names
