"""When suggestions stay away, how long is waited, and what an item looks like."""

import asyncio
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lsprotocol import types

from lsp.pace import Pace
from lsp.triggers import Rules, Situation, silent, switched_off
from tests.support.lsp_harness import QUICK, URI, Harness
from tests.support.scripted_backend import ScriptedBackend


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EAGLE_ASSIST_HOME", str(tmp_path))


def situation(place: str, *, invoked: bool = False, menu: bool = False) -> Situation:
    before, _, after = place.partition("|")
    return Situation(before, after, invoked, menu)


@pytest.mark.parametrize("place", ["na|me", "x = na|me()", "é|é", "a|_b", "1|2"])
def test_inside_a_word_nothing_is_suggested_unless_asked_for(place: str) -> None:
    assert silent(situation(place), Rules()) == "the cursor is inside a word"
    assert silent(situation(place, invoked=True), Rules()) is None
    assert silent(situation(place), Rules(inside_words=True)) is None


@pytest.mark.parametrize("place", ["|", "name|", "name|)", "f(|)", "x = |name", "|name", "    |"])
def test_elsewhere_something_is(place: str) -> None:
    assert silent(situation(place), Rules()) is None


def test_the_menu_waits_for_as_many_characters_as_are_set() -> None:
    rules = Rules(min_prefix=3)
    assert silent(situation("x = na|", menu=True), rules) == "the word has fewer than 3 characters"
    assert silent(situation("x = nam|", menu=True), rules) is None
    assert silent(situation("x = na|"), rules) is None, "ghost text has no such rule"


@pytest.mark.parametrize(("path", "off"), [("/p/.env", True), ("/p/id_rsa", True), ("/p/a.py", False)])
def test_a_file_that_may_hold_secrets_is_left_alone(path: str, *, off: bool) -> None:
    reason = switched_off(enabled=True, secrets=(".env", "id_rsa*"), path=path)
    assert (reason == "the file may hold secrets") is off


def test_who_types_faster_than_answers_come_is_waited_for() -> None:
    pace = Pace()
    for now in range(0, 1000, 100):
        pace = pace.key(now)
    assert pace.wait_ms(30, 300) == 30, "no answer is known to be slow yet"
    assert pace.answer(50).wait_ms(30, 300) == 30
    slow = pace.answer(400)
    assert slow.wait_ms(30, 300) == pytest.approx(125)
    assert slow.wait_ms(30, 80) == 80
    assert slow.key(5000).wait_ms(30, 300) == 30, "after a pause"


@given(st.lists(st.floats(0, 3000), max_size=20), st.lists(st.floats(0, 10_000), max_size=5), st.floats(0, 500))
def test_the_time_to_wait_stays_within_what_is_set(gaps: list[float], answers: list[float], least: float) -> None:
    pace, now = Pace(), 0.0
    for gap in gaps:
        now += gap
        pace = pace.key(now)
    for answer in answers:
        pace = pace.answer(answer)
    assert least <= pace.wait_ms(least, 300) <= max(least, 300)


def menu_of(text: str, written: str, *, ghost: bool = False, options: object = None) -> types.CompletionList:
    async def scenario() -> types.CompletionList:
        editor = Harness(ScriptedBackend(lambda *_: written), ghost=ghost, options=options)
        editor.open(text)
        return await editor.menu()

    return asyncio.run(scenario())


def test_a_menu_entry_replaces_the_word_on_its_line() -> None:
    found = menu_of("a = 1\nx = pri", "nt(a)\nprint(x)")
    (item,) = found.items
    assert found.is_incomplete
    assert item.label == "print(a) …"
    assert item.filter_text == "pri"
    assert item.sort_text
    assert item.preselect is None
    assert item.insert_text_mode == types.InsertTextMode.AsIs
    assert isinstance(item.text_edit, types.TextEdit)
    assert item.text_edit.new_text == "print(a)\nprint(x)"
    where = item.text_edit.range
    assert (where.start.line, where.start.character, where.end.line, where.end.character) == (1, 4, 1, 7)
    assert isinstance(item.documentation, types.MarkupContent)
    assert "print(a)\nprint(x)" in item.documentation.value


def test_the_menu_is_empty_where_there_is_ghost_text_unless_it_is_wanted() -> None:
    assert menu_of("pri", "nt()", ghost=True).items == []
    assert menu_of("pri", "nt()", ghost=True, options={"editor": {"completion_menu": "on"}}).items
    assert menu_of("pri", "nt()", options={"editor": {"completion_menu": "off"}}).items == []


def test_the_documents_own_line_ends_are_suggested() -> None:
    async def scenario() -> None:
        editor = Harness(ScriptedBackend(lambda *_: "1\ny"))
        editor.open("a\r\nx = ")
        assert await editor.texts() == ["1\r\ny"]

    asyncio.run(scenario())


def test_a_selected_menu_entry_is_completed_as_if_it_stood_there() -> None:
    async def scenario() -> None:
        editor = Harness(ScriptedBackend(lambda before, after: "(x)" if (before, after) == ("a.append", "\n") else "?"))
        editor.open("a.app\n")
        where = types.Range(start=types.Position(0, 2), end=types.Position(0, 5))
        selected = types.SelectedCompletionInfo(range=where, text="append")
        (item,) = await editor.inline(5, selected=selected)
        assert item.range == where
        assert item.insert_text == item.filter_text == "append(x)"
        assert (editor.backend.requests[0].prefix, editor.backend.requests[0].suffix) == ("a.append", "\n")

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("options", "uri", "why"),
    [
        ({"editor": {"enabled": False}}, URI, "suggestions are switched off for this file"),
        ({"languages": {"python": {"enabled": False}}}, URI, "suggestions are switched off for this file"),
        ({"files": {"*.py": {"enabled": False}}}, URI, "suggestions are switched off for this file"),
        (QUICK, "file:///code/.env", "the file may hold secrets"),
    ],
)
def test_a_file_that_is_switched_off_gets_nothing_even_when_asked_for(options: object, uri: str, why: str) -> None:
    async def scenario() -> None:
        editor = Harness(ScriptedBackend(lambda *_: "x"), options=options)
        editor.open("a", uri)
        assert await editor.texts(invoked=True, uri=uri) == []
        assert editor.bridge.report(uri)["why"] == why
        assert editor.statuses()[-1]["why"] == why
        assert editor.backend.texts == {}, "nor does the daemon see it"

    asyncio.run(scenario())
