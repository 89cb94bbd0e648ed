"""The text policy on real code: given what people wrote in a hole and then what follows, it stops where they did."""

from pathlib import Path

import pytest

from assistant.bench.digging import KINDS, Source, dig
from assistant.bench.duplicates import repeats_what_follows
from assistant.bench.holes import Hole
from assistant.daemon.text import Policy, Settings, Verdict

ROOT = Path(__file__).parents[2]
FOLDERS = ("assistant", "models", "lsp", "tui")
_LEAST = 0.95
"""of the holes; the rest are lines that stand twice near each other, and statements that go on over lines"""


def holes() -> list[Hole]:
    paths = sorted(path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py"))
    sources = [Source("here", f"here/{path.relative_to(ROOT).as_posix()}", path.read_text()) for path in paths]
    return dig(sources, 40, seed=5)


def shown(hole: Hole, written: str) -> Verdict:
    begun = Policy.begin(hole.prefix + hole.suffix, len(hole.prefix), hole.language, Settings())
    return begun.take(written, final=True, stopped=False)


@pytest.fixture(name="dug", scope="module")
def fixture_dug() -> list[Hole]:
    found = holes()
    assert {hole.kind for hole in found} == set(KINDS)
    assert len(found) > 200
    return found


def test_it_stops_where_the_author_did(dug: list[Hole]) -> None:
    met = [hole for hole in dug if shown(hole, hole.answer + hole.suffix[:400]).text.strip() == hole.answer.strip()]
    assert len(met) >= _LEAST * len(dug)


def test_nothing_is_shown_of_a_model_that_only_repeats_what_follows(dug: list[Hole]) -> None:
    for hole in dug:
        verdict = shown(hole, hole.suffix[:400])
        assert not repeats_what_follows(hole.prefix, verdict.text, hole.suffix), hole.name


def test_the_authors_text_is_never_counted_as_a_repetition_of_the_rest_of_its_line(dug: list[Hole]) -> None:
    for hole in dug:
        if hole.kind in {"mid-line", "in-brackets"}:
            assert not repeats_what_follows(hole.prefix, shown(hole, hole.answer + hole.suffix[:400]).text, hole.suffix)
