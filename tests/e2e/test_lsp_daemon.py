"""The whole way: an editor's request, the server, a real daemon that it starts, a model, and back."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.lsp_client import INLINE, EditorProcess

ROOT = Path(__file__).parents[2]
URI = "file:///code/project/code.py"
CODE = "def add(first, second):\n    return first + second\n\n\ndef subtract(first, second):\n    "
QUICK = {"editor": {"debounce_ms": 0}}
PATIENCE_S = 120.0


@contextmanager
def whole_way(home: Path, configuration: str) -> Iterator[EditorProcess]:
    """An editor whose server, the user's own command, starts the user's own daemon with a home of its own."""
    (home / "config").mkdir(parents=True)
    (home / "config" / "config.toml").write_text(configuration)
    environment = {**os.environ, "EAGLE_ASSIST_HOME": str(home)}
    program = [sys.executable, "-m", "eagle_assist"]
    try:
        with EditorProcess([*program, "lsp"], environment) as editor:
            editor.initialize({**INLINE, "window": {"workDoneProgress": True}}, initializationOptions=QUICK)
            yield editor
    finally:
        subprocess.run([*program, "daemon", "stop"], env=environment, capture_output=True, check=False, timeout=60)


def ready(editor: EditorProcess) -> None:
    """Wait until the model is loaded."""
    end = time.monotonic() + PATIENCE_S
    while editor.ask("eagle-assist/status", {})["result"]["state"] != "ready":
        assert time.monotonic() < end, editor.notifications
        time.sleep(0.1)


def test_a_tiny_models_completion_is_shown_and_what_is_typed_along_is_its_rest(tmp_path: Path) -> None:
    from tests.support.tiny_folder import write_model

    model = write_model(tmp_path / "tiny")
    with whole_way(tmp_path / "home", f'[model]\nname = "{model}"\nprecision = "float32"\n') as editor:
        editor.open(URI, CODE)
        ready(editor)
        items = editor.inline(URI, 5, 4, invoked=True)
        status = editor.ask("eagle-assist/status", {"textDocument": {"uri": URI}})["result"]
        assert items or status["why"], "a random model writes something, or the reason for silence is known"
        if items and len(items[0]["insertText"]) > 1:
            text = items[0]["insertText"]
            editor.change(URI, 2, text[0], (5, 4), (5, 4))
            line, column = (6, 0) if text[0] == "\n" else (5, 5)
            (rest,) = editor.inline(URI, line, column)
            assert text[0] + rest["insertText"] == text
        assert editor.end() == 0


def test_a_model_that_is_not_there_is_one_clear_message(tmp_path: Path) -> None:
    with whole_way(tmp_path / "home", '[model]\nname = "no-such-model"\n') as editor:
        editor.open(URI, CODE)
        assert editor.inline(URI, 5, 4) == []
        message = editor.until("window/showMessage")["params"]["message"]
        assert "no-such-model" in message
        assert editor.inline(URI, 5, 4, invoked=True) == []
        assert "no-such-model" in editor.ask("eagle-assist/status", {"textDocument": {"uri": URI}})["result"]["why"]
        shown = [found for found in editor.notifications if found["method"] == "window/showMessage"]
        assert len(shown) == 1
        assert editor.end() == 0


@pytest.mark.slow
@pytest.mark.model
def test_the_default_model_writes_what_belongs_there(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / "cache").symlink_to(Path(os.environ["EAGLE_ASSIST_HOME"]) / "cache")
    with whole_way(home, "") as editor:
        editor.open(URI, CODE)
        ready(editor)
        (item,) = editor.inline(URI, 5, 4, invoked=True)
        assert item["insertText"].startswith("return first - second")
        assert item["range"]["start"] == {"line": 5, "character": 4}
        assert editor.end() == 0
