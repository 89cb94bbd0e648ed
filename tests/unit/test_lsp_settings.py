"""What editors configure, what became of suggestions, and what the user is told."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from assistant import protocol
from assistant.errors import RefusedError
from lsp import outcomes, status
from lsp.outcomes import Counts, load
from lsp.settings import EditorSettings
from tests.support.lsp_harness import URI, Harness, identity_of, settle
from tests.support.scripted_backend import ScriptedBackend


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("EAGLE_ASSIST_HOME", str(tmp_path))
    return tmp_path


@pytest.mark.parametrize(
    "options",
    [
        {"editor": {"debounce_ms": 7}},
        {"editor.debounce_ms": 7},
        {"eagle-assist": {"editor": {"debounce_ms": 7}}},
        {"eagle-assist": {"editor.debounce_ms": 7}},
        {"eagleAssist": {"editor": {"debounce_ms": 7, "enabled": None}}},
    ],
)
def test_settings_are_tables_or_dotted_keys_in_our_section_or_not(options: object) -> None:
    complaints: list[str] = []
    settings = EditorSettings(complaints.append)
    settings.take(options)
    assert settings.of("/a.py", "python").editor.debounce_ms == 7
    assert complaints == []


def test_a_bad_setting_is_said_once_and_its_default_holds_and_the_good_ones_too() -> None:
    complaints: list[str] = []
    settings = EditorSettings(complaints.append)
    for _ in range(2):
        settings.take({"editor": {"debounce_ms": "soon", "debounce_max_ms": 99, "enabeld": True}})
        found = settings.of("/a.py", None)
    assert (found.editor.debounce_ms, found.editor.debounce_max_ms) == (30, 99)
    assert len(complaints) == 2
    assert all("editor" in complaint for complaint in complaints)
    assert settings.values == {"editor.debounce_max_ms": 99}


@pytest.mark.parametrize("options", [None, [], "x", 3, {"editor": [1]}, {"": {"": {"": {"": 1}}}}, {"a\0b": 1}])
def test_nonsense_for_settings_leaves_the_defaults(options: object) -> None:
    settings = EditorSettings(lambda _: None)
    settings.take(options)
    assert settings.of("/a.py", None).editor.debounce_ms == 30


def test_a_broken_file_is_said_once_and_counts_as_absent(home: Path) -> None:
    complaints: list[str] = []
    (home / "config").mkdir()
    (home / "config" / "config.toml").write_text("editor.debounce_ms = 'x'\n")
    settings = EditorSettings(complaints.append)
    settings.take({"editor.debounce_max_ms": 50})
    for path in ("/a.py", "/b.py"):
        found = settings.of(path, None)
        assert (found.editor.debounce_ms, found.editor.debounce_max_ms) == (30, 50)
    assert len(complaints) == 1
    assert "config.toml:1" in complaints[0]


def test_what_becomes_of_suggestions_is_counted_once_each_and_kept_in_a_file(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outcomes, "KEPT_S", 0.01)
    monkeypatch.setattr(outcomes, "SEEN_S", 0.01)

    async def scenario() -> list[protocol.Feedback]:
        editor = Harness(ScriptedBackend(lambda before, _: "ab😀\nsecond" if before.endswith(" ") else "z"))
        editor.open("x ")
        (item,) = await editor.inline()
        identity = identity_of(item)
        editor.bridge.outcomes.partly(identity, 4)
        editor.bridge.outcomes.partly(identity, 4)
        editor.type("ab😀\nsecond")
        editor.bridge.accepted(identity)
        editor.bridge.accepted(identity)
        editor.bridge.rejected(identity)
        await asyncio.sleep(0.05)
        editor.type("\n ")
        await editor.inline()
        await asyncio.sleep(0.05)
        await editor.bridge.end()
        return editor.backend.told

    told = asyncio.run(scenario())
    assert load() == Counts(shown=2, accepted=1, partly=1, rejected=0, kept=1, characters=10)
    assert [feedback.outcome for feedback in told[:5]] == ["shown", "partly", "partly", "accepted", "kept"]
    assert told[1].characters == 3, "UTF-16 units become characters"
    assert "second" not in (home / "state" / "suggestions.json").read_text()


def test_an_editor_that_says_nothing_is_seen_to_accept() -> None:
    async def scenario() -> None:
        editor = Harness(ScriptedBackend(lambda *_: "nt(x)"), ghost=False)
        editor.open("pri")
        await editor.menu()
        editor.type("print(x)", remove=3)
        assert editor.bridge.outcomes.total == Counts(shown=1, accepted=1, characters=5)

    asyncio.run(scenario())


def test_what_the_next_key_sweeps_away_was_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outcomes, "SEEN_S", 0.05)

    async def scenario() -> Counts:
        editor = Harness(ScriptedBackend(lambda *_: "abc"))
        editor.open("")
        for key in "xyz":
            editor.type(key)
            assert await editor.texts() == ["abc"]
        await asyncio.sleep(0.2)
        assert editor.bridge.outcomes.total == Counts(shown=1), "the last one stood"
        editor.type("a")
        assert await editor.texts() == ["bc"]
        await asyncio.sleep(0.2)
        return editor.bridge.outcomes.total

    assert asyncio.run(scenario()) == Counts(shown=1), "what is typed along is no other suggestion"


def test_in_an_editor_that_says_what_it_shows_nothing_else_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outcomes, "SEEN_S", 0.01)

    async def scenario() -> Counts:
        editor = Harness(ScriptedBackend(lambda *_: "abc"))
        editor.open("")
        (first,) = await editor.inline()
        for _ in range(2):
            editor.bridge.seen(identity_of(first))
        editor.type("x")
        assert await editor.texts() == ["abc"]
        await asyncio.sleep(0.05)
        assert editor.bridge.outcomes.total == Counts(shown=1), "the second one was not said to be shown"
        editor.type("y")
        (third,) = await editor.inline()
        editor.bridge.accepted(identity_of(third))
        return editor.bridge.outcomes.total

    assert asyncio.run(scenario()) == Counts(shown=2, accepted=1, characters=3), "what is accepted was seen"


def test_several_editors_add_to_the_same_counts(home: Path) -> None:
    for _ in range(2):
        found = outcomes.Outcomes(lambda _: None)
        found.counts = Counts(shown=2)
        found.save()
        found.save()
    assert load() == Counts(shown=4)
    (home / "state" / "suggestions.json").write_bytes(b"{broken")
    assert load() == Counts()


def test_a_loading_model_is_shown_as_progress_and_as_status() -> None:
    async def scenario() -> Harness:
        editor = Harness(ScriptedBackend(lambda *_: "x"))
        editor.open("a")
        await editor.inline()
        for done in range(2):
            editor.bridge.monitor.observe(protocol.Progress(request="r", stage="loading weights", done=done, total=4))
            await settle()
        assert editor.bridge.report(None)["state"] == "loading"
        editor.bridge.monitor.observe(protocol.Done(request="r", text="", finish="stop"))
        await settle()
        return editor

    editor = asyncio.run(scenario())
    values: list[dict[str, Any]] = [params["value"] for method, params in editor.sent if method == "$/progress"]
    assert [value["kind"] for value in values] == ["begin", "report", "end"]
    assert values[1]["percentage"] == 25
    assert values[1]["message"] == "loading weights"
    assert [found["state"] for found in editor.statuses()][-2:] == ["loading", "ready"]


def test_loading_that_began_with_the_connection_is_followed_to_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(status, "_LOOK_S", 0.0)

    async def scenario(last: str) -> Harness:
        editor = Harness(ScriptedBackend(lambda *_: "x"))
        ready = await editor.backend.status()
        states = iter(["loading", "loading", last])

        async def look() -> protocol.Status:
            state = next(states)
            return protocol.Status(
                pid=1, version="0", socket="", model="m", device="cpu", precision="int8", method="plain",
                loaded=state == "ready", state=state, message="" if state == "ready" else "there is no model x.",
            )  # fmt: skip

        await editor.bridge.monitor.watch(look, ready if last == "none" else await look())
        return editor

    assert asyncio.run(scenario("ready")).statuses()[-1]["state"] == "ready"
    missing = asyncio.run(scenario("degraded"))
    assert missing.shown == ["eagle-assist: there is no model x."]
    assert missing.statuses()[-1]["state"] == "unavailable"


def test_a_completion_that_fails_is_said_once() -> None:
    async def scenario() -> None:
        editor = Harness(ScriptedBackend(lambda *_: ""))
        editor.backend.last = protocol.Failed(request="r", code="model", message="there is no model x.")
        editor.open("a")
        for _ in range(3):
            assert await editor.texts(invoked=True) == []
        assert editor.shown == ["eagle-assist: there is no model x."]
        assert editor.bridge.report(URI)["why"] == "there is no model x."

    asyncio.run(scenario())


def test_why_a_completion_was_held_back_is_told() -> None:
    async def scenario() -> None:
        editor = Harness(ScriptedBackend(lambda *_: ""))
        editor.backend.last = protocol.Done(
            request="r", text="", finish="filtered", reason="it repeated the line above"
        )
        editor.open("a")
        assert await editor.texts() == []
        assert editor.bridge.report(URI)["why"] == "it repeated the line above"

    asyncio.run(scenario())


def test_settings_that_the_daemon_does_not_know_are_said_and_no_obstacle() -> None:
    async def scenario() -> None:
        editor = Harness(ScriptedBackend(lambda *_: "x"))

        async def refuse(_: object) -> None:
            raise RefusedError("config", "there is no key editor.new.")

        editor.backend.configure = refuse  # type: ignore[method-assign, assignment]
        editor.open("a")
        assert await editor.texts() == ["x"]
        assert editor.shown == ["eagle-assist: there is no key editor.new."]

    asyncio.run(scenario())
