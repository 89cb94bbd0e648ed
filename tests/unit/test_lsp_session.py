"""The latest request wins, nothing stale is shown, and the daemon may come and go."""

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path

import pytest

from assistant import protocol
from assistant.errors import DaemonUnavailableError, RefusedError
from lsp import link, session
from lsp.documents import Change, Document
from lsp.link import Link
from lsp.mirror import Mirror
from lsp.positions import Encoding
from tests.support.lsp_harness import URI, Harness, identity_of, settle, until
from tests.support.scripted_backend import ScriptedBackend, died

Scenario = Callable[[], Coroutine[None, None, None]]


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EAGLE_ASSIST_HOME", str(tmp_path))


def run(scenario: Scenario) -> None:
    asyncio.run(asyncio.wait_for(scenario(), 20))


def echo(before: str, after: str) -> str:
    """A completion that tells exactly which text it belongs to."""
    return f"<{len(before)}:{before[-3:]}|{after[:3]}:{len(after)}>"


def test_a_suggestion_is_for_the_text_as_it_is_now() -> None:
    async def scenario() -> None:
        editor = Harness(ScriptedBackend(echo))
        editor.open("abc\ndef")
        assert await editor.texts(3) == ["<3:abc|\nde:4>"]
        editor.type("X", 0)
        assert await editor.texts(4) == ["<4:abc|\nde:4>"]
        assert editor.backend.opened == 1, "an edit is sent as an edit"

    run(scenario)


def test_an_edit_comes_along_with_the_request(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        editor = Harness(ScriptedBackend(echo))
        editor.open("abc")
        await editor.texts(3)
        monkeypatch.setattr(editor.backend, "change_document", None)  # would cost a request of its own
        for length, typed in enumerate("XYZ", start=4):
            editor.type(typed)
            assert await editor.texts(length) == [f"<{length}:{'abcXYZ'[length - 3 : length]}|:0>"]
        assert editor.backend.opened == 1

    run(scenario)


def test_edits_whose_request_was_cut_off_are_never_made_twice() -> None:
    async def scenario() -> None:
        backend, document = ScriptedBackend(echo), Document("file:///a.py", "python", 1, "abc", Encoding.UTF16)
        mirror = Mirror(document)

        def typed(text: str) -> None:
            place = (0, len(document.text))
            mirror.changed(document.apply([Change(text, place, place)], None))

        async def ask() -> None:
            since, edits = await mirror.bring(backend)
            request = protocol.Complete(
                path=document.path, version=document.revision, since=since, edits=edits, cursor=len(document.text)
            )
            async for _ in backend.complete(request):
                pass

        await ask()
        typed("X")
        await ask()  # the daemon has it, and nobody knows
        typed("Y")
        with pytest.raises(RefusedError, match="another version"):
            await ask()
        mirror.forget()
        await ask()
        assert backend.texts[document.path] == (document.revision, document.text)
        assert document.text == "abcXY"

    run(scenario)


def test_a_newer_request_overtakes_the_one_before_and_withdraws_it_at_once() -> None:
    async def scenario() -> None:
        editor = Harness(ScriptedBackend(echo))
        editor.open("a")
        editor.backend.gate.clear()
        first = asyncio.create_task(editor.texts())
        await settle()
        editor.type("b")
        second = asyncio.create_task(editor.texts())
        await settle()
        assert first.done()
        assert first.result() == []
        assert editor.backend.withdrawn == ["r1"]
        editor.backend.gate.set()
        assert await second == ["<2:ab|:0>"]

    run(scenario)


def test_a_cancelled_request_is_withdrawn_from_the_daemon_at_once() -> None:
    async def scenario() -> None:
        editor = Harness(ScriptedBackend(echo))
        editor.open("a")
        editor.backend.gate.clear()
        request = asyncio.create_task(editor.inline())
        await settle()
        assert len(editor.backend.requests) == 1
        request.cancel()
        await settle()
        assert request.cancelled()
        assert editor.backend.withdrawn == ["r1"]
        editor.backend.gate.set()
        assert await editor.texts() == ["<1:a|:0>"]

    run(scenario)


def test_typing_along_a_suggestion_asks_nobody_again() -> None:
    async def scenario() -> None:
        editor = Harness(ScriptedBackend(lambda *_: "return x"))
        editor.open("def f(x): ")
        assert await editor.texts() == ["return x"]
        for typed, rest in (("r", "eturn x"), ("etu", "rn x"), ("rn ", "x")):
            editor.type(typed)
            assert await editor.texts() == [rest]
        editor.type("", remove=3)
        assert await editor.texts() == ["rn x"], "going back along it is the same"
        assert len(editor.backend.requests) == 1
        editor.type("!")
        assert await editor.texts() == ["return x"]
        assert len(editor.backend.requests) == 2

    run(scenario)


def test_an_answer_that_the_user_typed_along_meanwhile_is_trimmed_and_served() -> None:
    async def scenario() -> None:
        editor = Harness(ScriptedBackend(lambda *_: "return x"))
        editor.open("f: ")
        editor.backend.gate.clear()
        request = asyncio.create_task(editor.inline())
        await settle()
        editor.type("ret")
        editor.backend.gate.set()
        (item,) = await request
        assert item.insert_text == "urn x"
        assert item.range is not None
        assert (item.range.start.line, item.range.start.character) == (0, 6)

    run(scenario)


@pytest.mark.parametrize(("text", "offset"), [("x", None), ("ret", 0), ("other", None)])
def test_an_answer_for_a_text_that_changed_otherwise_is_dropped(text: str, offset: int | None) -> None:
    async def scenario() -> None:
        editor = Harness(ScriptedBackend(lambda *_: "return x"))
        editor.open("f: ")
        editor.backend.gate.clear()
        request = asyncio.create_task(editor.texts())
        await settle()
        editor.type(text, offset)
        editor.backend.gate.set()
        assert await request == []
        assert editor.bridge.report(URI)["why"] == "the text has changed meanwhile"

    run(scenario)


def test_a_request_joins_the_one_before_when_what_came_of_it_leads_there() -> None:
    async def scenario() -> None:
        editor = Harness(ScriptedBackend(lambda *_: "return x", pieces=2))
        editor.open("f: ")
        first = asyncio.create_task(editor.texts())
        await editor.backend.step.wait()
        editor.backend.gate.clear()
        editor.type("re")
        second = asyncio.create_task(editor.texts())
        await settle()
        assert first.result() == []
        editor.backend.gate.set()
        assert await second == ["turn x"]
        assert len(editor.backend.requests) == 1
        assert editor.backend.withdrawn == []

    run(scenario)


@pytest.mark.parametrize("debounce", [0, 5])
def test_ghost_text_and_menu_of_one_place_are_answered_by_one_completion(debounce: int) -> None:
    async def scenario() -> None:
        options = {"editor": {"completion_menu": "on", "debounce_ms": debounce, "debounce_max_ms": debounce}}
        editor = Harness(ScriptedBackend(echo), options=options)
        editor.open("a")
        ghost, menu = await asyncio.gather(editor.texts(), editor.menu())
        assert ghost == ["<1:a|:0>"]
        assert [item.label for item in menu.items] == ["a<1:a|:0>"]
        assert len(editor.backend.requests) == 1
        editor.type("!")
        editor.backend.gate.clear()
        first, second = asyncio.create_task(editor.texts()), asyncio.create_task(editor.menu())
        await asyncio.sleep(0.02)
        first.cancel()
        await settle()
        assert editor.backend.withdrawn == [], "somebody still waits for it"
        editor.backend.gate.set()
        assert (await second).items

    run(scenario)


def test_requests_in_a_row_wait_for_the_last_key(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        editor = Harness(ScriptedBackend(echo), options={"editor.debounce_ms": 40, "editor.debounce_max_ms": 50})
        monkeypatch.setattr(session, "FLUSH_S", 60)
        editor.open("a")
        requests = []
        for key in "bcd":
            editor.type(key)
            requests.append(asyncio.create_task(editor.texts()))
            await asyncio.sleep(0.002)
        assert [await request for request in requests] == [[], [], ["<4:bcd|:0>"]]
        assert len(editor.backend.requests) == 1

    run(scenario)


def test_a_request_by_key_does_not_wait_for_the_next_one() -> None:
    async def scenario() -> None:
        editor = Harness(
            ScriptedBackend(echo), options={"editor.debounce_ms": 10_000, "editor.debounce_max_ms": 10_000}
        )
        editor.open("a")
        assert await editor.texts(invoked=True) == ["<1:a|:0>"]

    run(scenario)


def test_a_dismissed_suggestion_is_not_served_again() -> None:
    async def scenario() -> None:
        answers = iter(["first", "second"])
        editor = Harness(ScriptedBackend(lambda *_: next(answers)))
        editor.open("a ")
        (item,) = await editor.inline()
        editor.bridge.rejected(identity_of(item))
        assert await editor.texts() == ["second"]
        assert editor.bridge.outcomes.total.rejected == 1

    run(scenario)


def test_a_daemon_that_forgot_the_document_is_told_it_again() -> None:
    async def scenario() -> None:
        editor = Harness(ScriptedBackend(echo))
        editor.open("a")
        await editor.texts()
        editor.backend.texts.clear()
        editor.type("b")
        assert await editor.texts() == ["<2:ab|:0>"]
        assert editor.backend.opened == 2

    run(scenario)


def test_another_daemon_than_before_gets_settings_and_documents_anew() -> None:
    async def scenario() -> None:
        editor = Harness(ScriptedBackend(echo))
        editor.open("a")
        await editor.texts()
        editor.backend.forget()
        editor.backend.settings = {}
        editor.type("b")
        assert await editor.texts() == ["<2:ab|:0>"]
        assert editor.backend.settings == {"editor.debounce_ms": 0, "editor.debounce_max_ms": 0}

    run(scenario)


def test_a_document_that_the_daemon_finds_too_large_is_completed_from_its_surroundings() -> None:
    async def scenario() -> None:
        editor = Harness(ScriptedBackend(echo))

        async def refuse(*_: object) -> None:
            raise RefusedError("too_large", "a document holds so many characters at most.")

        editor.backend.open_document = refuse  # type: ignore[method-assign, assignment]
        editor.open("a" * 300_000 + "xyz")
        (text,) = await editor.texts()
        assert text.endswith(":xyz|:0>")
        request = editor.backend.requests[0]
        assert request.prefix is not None
        assert 100_000 < len(request.prefix) < 300_000

    run(scenario)


def test_a_daemon_that_died_is_said_once_and_comes_back_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(link, "_FIRST_RETRY_S", 0.0)

    async def scenario() -> None:
        editor = Harness(ScriptedBackend(echo))
        editor.open("a")
        await editor.texts()
        editor.backend.failure = died()
        editor.refusal = DaemonUnavailableError("the daemon could not be started: no room.")
        for key in "bcd":
            editor.type(key)
            assert await editor.texts() == []
        assert editor.shown == ["eagle-assist: the daemon could not be started: no room."]
        assert editor.bridge.report(URI)["state"] == "unavailable"
        assert editor.bridge.report(URI)["why"] == "the daemon could not be started: no room."
        editor.backend.failure = editor.refusal = None
        editor.backend.forget()
        editor.type("e")
        assert await editor.texts(invoked=True) == ["<5:cde|:0>"]
        assert editor.bridge.report(URI)["state"] == "ready"
        assert len(editor.shown) == 1

    run(scenario)


def test_a_daemon_that_dies_in_the_middle_of_an_answer_is_asked_again() -> None:
    async def scenario() -> None:
        editor = Harness(ScriptedBackend(echo))
        editor.open("a")
        editor.backend.gate.clear()
        request = asyncio.create_task(editor.texts())
        await settle()
        editor.backend.failure = died()
        editor.backend.gate.set()
        await until(lambda: len(editor.connections) > 1)
        editor.backend.failure = None
        assert await request == ["<1:a|:0>"]
        assert editor.shown == []

    run(scenario)


def test_a_connection_that_failed_is_not_tried_with_every_key() -> None:
    async def scenario() -> None:
        editor = Harness(ScriptedBackend(echo))
        editor.refusal = DaemonUnavailableError("none.")
        editor.open("a")
        for key in "bcdefg":
            editor.type(key)
            assert await editor.texts() == []
        assert len(editor.connections) == 1
        await editor.texts(invoked=True)
        assert len(editor.connections) == 2, "who asks by a key wants to know now"

    run(scenario)


def test_while_the_daemon_starts_requests_do_not_hang(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(link, "PATIENCE_S", 0.01)

    async def scenario() -> None:
        editor = Harness(ScriptedBackend(echo))
        connected = asyncio.Event()

        async def slow(*_: object) -> ScriptedBackend:
            await connected.wait()
            return editor.backend

        editor.bridge.link._connect = slow
        editor.open("a")
        assert await editor.texts() == []
        assert editor.bridge.report(URI)["why"] == "the daemon is being started"
        connected.set()
        await settle()
        assert await editor.texts() == ["<1:a|:0>"]

    run(scenario)


def test_a_pause_brings_the_daemons_copy_up_to_date_for_other_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "FLUSH_S", 0.001)

    async def scenario() -> None:
        editor = Harness(ScriptedBackend(echo))
        editor.open("a")
        editor.type("b")
        path = editor.document.path
        await until(lambda: editor.backend.texts.get(path, (0, ""))[1] == "ab")
        editor.bridge.close(URI)
        await until(lambda: path not in editor.backend.texts)

    run(scenario)


def test_the_workspace_is_told_with_the_connection() -> None:
    async def scenario() -> None:
        editor = Harness(ScriptedBackend(echo))
        editor.open("a")
        await editor.texts()
        editor.bridge.move(["file:///one", "file:///two"], [])
        await editor.texts(invoked=True)
        editor.type("!")
        await editor.texts()
        assert editor.connections == [("test-editor", ()), ("test-editor", ("/one", "/two"))]
        assert isinstance(editor.bridge.link, Link)

    run(scenario)
