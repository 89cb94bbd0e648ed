"""A real file, written key by key: nothing that is shown is stale, out of place, or there twice."""

import asyncio
import inspect
import random
from pathlib import Path

import pytest

from lsp import documents, session
from tests.support.lsp_harness import URI, Harness
from tests.support.scripted_backend import ScriptedBackend

KEYS = 10_000


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EAGLE_ASSIST_HOME", str(tmp_path))
    monkeypatch.setattr(session, "FLUSH_S", 60)


def source(length: int) -> str:
    """A file of this program, repeated until it is long enough, with other line ends and characters in it."""
    text = inspect.getsource(documents).replace("editor", "éditeur 😀", 40)
    return (text * (length // len(text) + 1))[:length]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "utf-32"])
def test_ten_thousand_keys_show_nothing_stale_and_nothing_twice(encoding: str) -> None:
    """The daemon knows the file and completes it, up to the line's end; now and then it is wrong."""
    target = source(KEYS // 3 + 1)
    dice = random.Random(encoding)

    def write(before: str, after: str) -> str:
        assert before + after == editors[0].document.text, "the daemon sees the text as it is"
        if not target.startswith(before):
            return ""
        rest = target[len(before) :]
        return (rest[: rest.find("\n") + 1 or None] if dice.random() < 0.9 else "wrong") if not after else ""

    async def scenario() -> dict[str, int]:
        editor = Harness(ScriptedBackend(write), encoding=encoding)
        editors.append(editor)
        editor.open("")
        shown = {"full": 0, "wrong": 0, "none": 0}
        for at, key in enumerate(target):
            editor.type(key)
            pending = asyncio.create_task(editor.inline())
            if dice.random() < 0.2:  # the user is quicker than the answer
                await asyncio.sleep(0)
                pending.cancel()
                await asyncio.gather(pending, return_exceptions=True)
                continue
            found = await pending
            assert editor.document.text == target[: at + 1]
            for item in found:
                text = item.insert_text
                assert isinstance(text, str)
                assert item.range is not None
                place = (item.range.end.line, item.range.end.character)
                assert item.range.start == item.range.end
                assert editor.document.offset(place) == at + 1, "it goes where the cursor is"
                if target.startswith(editor.document.text + text):
                    shown["full"] += 1
                else:
                    assert "wrong".endswith(text)
                    shown["wrong"] += 1
            shown["none"] += not found
        return shown

    editors: list[Harness] = []
    shown = asyncio.run(scenario())
    assert shown["full"] > len(target) // 2
    assert shown["wrong"] > 0
    assert shown["none"] < len(target) // 20
    assert len(editors[0].backend.requests) < len(target) // 2, "most keys were typed along"


def test_the_pace_learns_how_long_answers_take() -> None:
    async def scenario() -> None:
        editor = Harness(ScriptedBackend(lambda *_: "x"))
        editor.open("a")
        pace = editor.bridge.sessions[URI].pace
        assert pace.answer_ms is None
        await editor.inline()
        assert editor.bridge.sessions[URI].pace.answer_ms is not None

    asyncio.run(scenario())
