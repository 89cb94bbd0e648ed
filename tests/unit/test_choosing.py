"""A suggestion: another text where nothing of the first may be shown, and none where the target was not sure."""

import math
from collections.abc import Sequence

import pytest
import torch
from torch import Tensor

from assistant.daemon.choosing import Choice, Shown, suggest
from assistant.daemon.others import Beginning, Writer
from assistant.daemon.prompt import build_prompt
from assistant.daemon.text import Filter, Policy, Reason, Settings
from assistant.daemon.text.wanted import wanted_names
from assistant.engine.aside import Aside
from assistant.engine.draft import NoDraft
from assistant.engine.generate import generate
from assistant.engine.review import Passage, deviations, log_prob, review
from assistant.engine.session import Session
from assistant.engine.types import FinishReason, GenerateOptions, Prompt, Sampling
from models.fim import detect
from tests.support.fakes import FakeTarget
from tests.support.rooms import models
from tests.support.tiny_tokenizer import tiny_tokenizer

TOKENIZER = tiny_tokenizer()
MIDDLE = TOKENIZER.special("<|fim_middle|>")


class Writing(FakeTarget):
    """A target that writes given texts behind a fill-in-the-middle prompt: each path's next token, by preference.

    Or behind a `plain` one.
    Where it reads text in plain order, it expects what the `documents` that begin so go on with.
    """

    def __init__(
        self, texts: Sequence[str], documents: Sequence[str] = (), plain: Sequence[int] = (), limit: int = 4096
    ) -> None:
        super().__init__(TOKENIZER.vocab_size, limit=limit)
        self._plain = plain
        self._paths = [(*TOKENIZER.encode(text), min(TOKENIZER.eos_ids)) for text in texts]
        self._documents = [document.encode() for document in documents]

    def logits(self, context: Sequence[int]) -> Tensor:
        ids = list(context)
        if self._plain:
            return self._writes(tuple(ids[len(self._plain) :]))
        return self._writes(tuple(ids[ids.index(MIDDLE) + 1 :])) if MIDDLE in ids else self._expects(ids)

    def _writes(self, written: tuple[int, ...]) -> Tensor:
        scores = torch.zeros(self.spec.vocab_size)
        for rank, path in enumerate(self._paths):
            if path[: len(written)] == written and len(path) > len(written):
                scores[path[len(written)]] = max(float(scores[path[len(written)]]), 20.0 - 2 * rank)
        return scores

    def _expects(self, ids: Sequence[int]) -> Tensor:
        scores = torch.zeros(self.spec.vocab_size)
        read = TOKENIZER.join(ids)
        for document in self._documents:
            if document.startswith(read):
                rest = document[len(read) :]
                for token in range(self.spec.vocab_size):
                    spelt = TOKENIZER.token_bytes(token)
                    scores[token] += 20.0 * bool(spelt and rest.startswith(spelt))
        return scores


def run(
    document: str,
    texts: Sequence[str],
    choice: Choice | None = None,
    *,
    belongs: Sequence[str] = (),
    sampling: Sampling | None = None,
    limit: int = 4096,
) -> list[Shown]:
    """A suggestion at ‸ by a target that writes some texts, and expects what follows behind those that belong there.

    `limit` positions are left behind the prompt.
    """
    cursor = document.index("‸")
    text = document.replace("‸", "")
    prompt = build_prompt(text, cursor, TOKENIZER, detect(TOKENIZER))

    def new_filter() -> Filter:
        return Policy.begin(text, cursor, "python", Settings())

    options = GenerateOptions(max_tokens=60, stop_ids=TOKENIZER.eos_ids, sampling=sampling or Sampling())
    expected = [document.replace("‸", one) for one in belongs]
    plain = () if MIDDLE in prompt.ids or not texts else prompt.ids
    target = Writing(texts, expected, plain, limit=len(prompt.ids) + limit)
    session = Session(target, NoDraft())
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
    steps = run("x = 1\n‸\ny = 2\n", ["z = 3\n", "w = 4\n"], Choice(least_confidence=0.999))
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


@pytest.mark.parametrize("document", ["def f(row):\n‸", "def f(row):\n‸\n    return 1\n"], ids=["file's end", "long"])
def test_nothing_is_added_to_a_remark_that_was_shown(document: str) -> None:
    """Only a remark was written, and it was shown while it was: another text would stand behind it."""
    remark = "    # a remark" + " that is rather long" * document.count("return") + " about it"
    assert len(TOKENIZER.encode(remark)) > 32 or "return" not in document
    steps = run(document, [remark + "\n", "    x = 0\n"], belongs=["    x = 0"])
    assert text_of(steps) == remark
    assert any(step.text for step in steps[:-1])
    assert not steps[-1].anew


def test_a_text_that_was_drawn_is_not_overruled() -> None:
    document = TestWhatFollows.DOCUMENT
    steps = run(
        document,
        [TestWhatFollows.NOT + "\n", TestWhatFollows.FITS + "\n"],
        belongs=[TestWhatFollows.FITS],
        sampling=Sampling(temperature=0.01, seed=1),
    )
    assert text_of(steps) == TestWhatFollows.NOT
    assert not steps[-1].anew


@pytest.mark.parametrize("limit", [20, 40, 60, 1100])
def test_a_search_that_finds_no_room_loses_no_text(limit: int) -> None:
    first = "z = " + "1 + " * 4 + "1\n"
    steps = run("x = 1\n‸\ny = 2\n", [first, "w = 4\n"], Choice(least_confidence=0.01), limit=limit)
    assert text_of(steps).startswith("z = 1")
    assert text_of(run("x = 1\n‸\ny = 2\n", ["y = 2\n", "y = 5\n"], limit=limit)) in {"", "y = 5"}


class TestWhatFollows:
    DOCUMENT = "def f(rows):\n‸\n    for row in rows:\n        print(row)\n"
    FITS, NOT = "    rows = g(rows)", "    x = 0"

    def test_the_text_that_the_following_lines_belong_to_is_shown(self) -> None:
        steps = run(self.DOCUMENT, [self.NOT + "\n", self.FITS + "\n"], belongs=[self.FITS])
        assert text_of(steps) == self.FITS
        assert steps[-1].anew
        assert TOKENIZER.decode(steps[-1].step.tokens).startswith(self.FITS)
        assert len(steps[-1].step.tokens) == len(steps[-1].step.origins)
        assert [shown.step.finish for shown in steps[:-1]] == [None] * (len(steps) - 1)

    def test_the_first_stays_where_they_follow_it_as_well(self) -> None:
        steps = run(
            self.DOCUMENT, [self.FITS + "\n", "    rows = h(rows)\n"], belongs=[self.FITS, "    rows = h(rows)"]
        )
        assert text_of(steps) == self.FITS
        assert not steps[-1].anew

    def test_a_first_text_that_cannot_be_bettered_costs_one_forward_more(self) -> None:
        steps = run(self.DOCUMENT, [self.FITS + "\n"], belongs=[self.FITS])
        assert steps[-1].step.forwards == 2
        alone = run(self.DOCUMENT, [self.FITS + "\n"], Choice(attempts=1))
        assert text_of(steps) == text_of(alone)

    def test_an_improbable_text_is_not_shown_although_they_would_follow_it(self) -> None:
        texts = [self.NOT + "\n", *["    aa\n"] * 60, self.FITS + "\n"]
        assert text_of(run(self.DOCUMENT, texts, belongs=[self.FITS])) == self.NOT

    def test_where_nothing_follows_nothing_is_compared(self) -> None:
        steps = run("def f(rows):\n‸\n", [], belongs=[self.FITS + "\n"])
        assert text_of(steps).startswith(self.FITS)
        assert steps[-1].step.forwards == 1

    def test_within_a_line_the_text_is_shown_while_it_is_written(self) -> None:
        steps = run("x = ‸\ny = 2\n", [" 1 + zz + 3 + a4\n"], belongs=["1 + b"])
        assert text_of(steps) == "1 + zz + 3 + a4"
        assert sum(bool(step.text) for step in steps) > 2

    def test_a_long_text_is_shown_while_it_is_written(self) -> None:
        long = "    if a:\n" + "".join(f"        a{index} = {index}\n" for index in range(9))
        steps = run(self.DOCUMENT, [long, self.FITS + "\n"], belongs=[self.FITS])
        assert text_of(steps).startswith("    if a:\n        a0 = 0\n")
        assert sum(bool(step.text) for step in steps) > 2

    def test_other_texts_are_what_the_target_writes_behind_their_beginnings(self) -> None:
        target, _ = models("int8")
        prompt, options = Prompt(tuple(range(20, 50))), GenerateOptions(max_tokens=9)
        session = Session(target, NoDraft())
        first = [token for step in generate(session, prompt, options) for token in step.tokens]
        writer = Writer(session, prompt, options, TOKENIZER, lambda: Policy.begin("", 0, "plaintext", Settings()))
        aside = Aside(session)
        (reviewed, plain) = review(aside, [Passage(30, tuple(first)), Passage(20, tuple(first))], others=6)
        starts = [
            Beginning((*first[:place], token), value, known[place].node, known is plain)
            for known in (reviewed, plain)
            for value, place, token in deviations(known)[:6]
        ]
        *_, finished = writer.write(aside, starts, -math.inf)
        assert len(finished) == len(starts)
        for text in finished:
            rows = 20 if text.plain else 30
            begun = next(
                one.tokens
                for one in starts
                if one.plain is text.plain and tuple(text.tokens[: len(one.tokens)]) == one.tokens
            )
            longer = Prompt(prompt.ids[:rows] + begun)
            alone = generate(Session(target, NoDraft()), longer, GenerateOptions(max_tokens=9))
            expected = [*begun, *(token for step in alone for token in step.tokens)]
            assert text.tokens == expected[: len(text.tokens)]
            (known,) = review(Aside(session), [Passage(rows, tuple(text.tokens))])
            assert text.log_prob == pytest.approx(log_prob(known), abs=1e-4)

    def test_a_line_that_only_the_text_before_it_suggests_is_tried(self) -> None:
        """The target would end the function too early, whatever it writes; read in plain order, it goes on."""
        document = "def f(rows):\n    if rows:\n        print(rows)\n‸\n        return self\n"
        fits = "    else:"
        steps = run(document, ["    return rows\n\n", "    return\n\n"], belongs=[fits])
        assert text_of(steps).rstrip() == fits
        assert steps[-1].anew

    def test_typed_indentation_parts_no_texts_but_the_word_behind_it_does(self) -> None:
        document = "def f(rows):\n    ‸\n    for row in rows:\n        print(row)\n"
        steps = run(document, ["    x = 0\n", "    rows = g(rows)\n"], belongs=["rows = g(rows)"])
        assert text_of(steps) == "rows = g(rows)"

    def test_a_remark_alone_gives_way_to_code(self) -> None:
        texts = ["    # a\n    print(row)\n", "    x = 0\n"]
        assert text_of(run("def f(row):\n‸\n    print(row)\n", texts)) == "    x = 0"

    def test_a_withdrawn_request_gets_its_first_text(self) -> None:
        session = Session(
            Writing([self.NOT + "\n", self.FITS + "\n"], [self.DOCUMENT.replace("‸", self.FITS)]), NoDraft()
        )
        cursor = self.DOCUMENT.index("‸")
        text = self.DOCUMENT.replace("‸", "")
        prompt = build_prompt(text, cursor, TOKENIZER, detect(TOKENIZER))
        withdrawn = False
        steps = suggest(
            session,
            prompt,
            GenerateOptions(max_tokens=60, stop_ids=TOKENIZER.eos_ids),
            TOKENIZER,
            lambda: Policy.begin(text, cursor, "python", Settings()),
            cancelled=lambda: withdrawn,
        )
        seen: list[Shown] = []
        for shown in steps:
            withdrawn = shown is None
            seen += [] if shown is None else [shown]
        assert withdrawn is False
        assert text_of(seen) == self.NOT


class TestWanted:
    DOCUMENT = "def f(rows):\n‸        print(elem)\n        return elem\n"

    def test_a_text_that_introduces_what_the_next_lines_use_goes_before_one_that_does_not(self) -> None:
        steps = run(self.DOCUMENT, ["    for x in rows:\n", "    for elem in rows:\n"])
        assert text_of(steps) == "    for elem in rows:\n"

    def test_where_none_does_it_stays_at_the_first(self) -> None:
        steps = run(self.DOCUMENT, ["    for x in rows:\n", "    for y in rows:\n"])
        assert text_of(steps) == "    for x in rows:\n"
        assert [shown.step.finish for shown in steps[:-1]] == [None] * (len(steps) - 1)
        assert not any(step.anew for step in steps)

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
