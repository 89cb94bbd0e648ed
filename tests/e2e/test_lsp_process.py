"""The real server process, and real daemons with scripted completions, as an editor meets them."""

import contextlib
import json
import os
import random
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from assistant import protocol
from assistant.client import Client
from assistant.errors import DaemonError
from tests.support.lsp_client import INLINE, EditorProcess

ROOT = Path(__file__).parents[2]
URI = "file:///code/project/code.py"
MESSAGES = 10_000
PATIENCE_S = 30.0
QUICK = {"editor": {"debounce_ms": 0, "debounce_max_ms": 0}}


@pytest.fixture
def environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, str]]:
    """A home of the test's own, here and in the server; the daemon that is started there ends with the test."""
    monkeypatch.setenv("EAGLE_ASSIST_HOME", str(tmp_path))
    yield {**os.environ, "EAGLE_ASSIST_HOME": str(tmp_path), "PYTHONPATH": str(ROOT)}
    with contextlib.suppress(DaemonError):
        os.kill(daemon().pid, signal.SIGKILL)


@pytest.fixture
def editor(environment: dict[str, str]) -> Iterator[EditorProcess]:
    """An editor whose server starts a scripted daemon."""
    command = [sys.executable, "-m", "tests.support.lsp_server", "--idle-exit", "60"]
    with EditorProcess(command, environment) as process:
        yield process


def daemon() -> protocol.Status:
    """What the test's daemon says of itself; DaemonError where there is none."""
    with Client.connect("test", start=False) as client:
        return client.status()


def until(reached: Callable[[], bool]) -> None:
    """Wait until something is so."""
    end = time.monotonic() + PATIENCE_S
    while not reached():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_a_whole_session_from_initialize_to_exit(editor: EditorProcess, environment: dict[str, str]) -> None:
    editor.replies["workspace/configuration"] = [{"editor": {"debounce_ms": 1}}]
    workspace = {"configuration": True}
    capabilities = editor.initialize(
        {**INLINE, "workspace": workspace, "general": {"positionEncodings": ["utf-8", "utf-16"]}},
        initializationOptions=QUICK,
        clientInfo={"name": "test-editor"},
    )
    assert capabilities["positionEncoding"] == "utf-8"
    assert "inlineCompletionProvider" in capabilities
    assert "completionProvider" in capabilities
    editor.open(URI, "é = 1\nx = ")
    (item,) = editor.inline(URI, 1, 4)
    assert item["insertText"] == ("é = 1\nx = " * 2)[:12], "what the scripted daemon writes"
    assert item["range"]["start"] == item["range"]["end"] == {"line": 1, "character": 4}
    editor.notify("textDocument/didShowCompletion", {"item": item})
    shown = editor.ask("eagle-assist/status", {"textDocument": {"uri": URI}})["result"]
    assert shown["counts"]["shown"] == 1
    assert shown["stages"]["daemon_ms"] >= shown["stages"]["decode_ms"] >= 0
    editor.change(URI, 2, item["insertText"], (1, 4), (1, 4))
    command = item["command"]
    editor.ask("workspace/executeCommand", {"command": command["command"], "arguments": command["arguments"]})
    status = editor.ask("eagle-assist/status", {"textDocument": {"uri": URI}})["result"]
    assert status["state"] == "ready"
    assert (status["counts"]["shown"], status["counts"]["accepted"]) == (1, 1)
    (client,) = (client for client in daemon().clients if client.name == "test-editor")
    assert client.accepted == 1
    empty = editor.ask(
        "textDocument/completion", {"textDocument": {"uri": URI}, "position": {"line": 0, "character": 0}}
    )
    assert empty["result"]["items"] == []
    assert editor.end() == 0
    assert editor.errors == b"", "nothing is printed"
    counts = json.loads((Path(environment["EAGLE_ASSIST_HOME"]) / "state" / "suggestions.json").read_text())
    assert counts["accepted"] == 1
    assert "test-editor" not in {client.name for client in daemon().clients}, "it took leave"


def test_cancelling_reaches_the_daemon(environment: dict[str, str]) -> None:
    script = ["--idle-exit", "60", "--delay", "1", "--steps", "20"]
    with EditorProcess([sys.executable, "-m", "tests.support.lsp_server", *script], environment) as editor:
        editor.initialize(INLINE, initializationOptions=QUICK)
        editor.open(URI, "a = ")
        until(lambda: editor.ask("eagle-assist/status", {})["result"]["connected"])
        where = {"textDocument": {"uri": URI}, "position": {"line": 0, "character": 4}}
        request = editor.request("textDocument/inlineCompletion", {**where, "context": {"triggerKind": 2}})
        until(lambda: any(client.requests for client in daemon().clients))
        editor.notify("$/cancelRequest", {"id": request})
        assert editor.wait(request)["error"]["code"] == -32800
        until(lambda: daemon().completions == 1)
        assert daemon().steps < 20, "it wrote no further"


def test_a_daemon_that_is_killed_is_started_again_without_a_word(editor: EditorProcess) -> None:
    editor.initialize(INLINE, initializationOptions=QUICK)
    editor.open(URI, "a = ")
    assert editor.inline(URI, 0, 4)
    first = daemon().pid
    os.kill(first, signal.SIGKILL)
    editor.change(URI, 2, "1 + ", (0, 4), (0, 4))
    assert editor.inline(URI, 0, 8, invoked=True)
    assert daemon().pid != first
    assert [message for message in editor.notifications if message["method"] == "window/showMessage"] == []


def test_a_daemon_that_cannot_start_is_one_message_and_no_obstacle(environment: dict[str, str]) -> None:
    command = [sys.executable, "-m", "tests.support.lsp_server", "--no-such-option"]
    with EditorProcess(command, environment) as editor:
        editor.initialize(INLINE, initializationOptions=QUICK)
        editor.open(URI, "a = ")
        for version in range(2, 8):
            editor.change(URI, version, "b", (0, 4), (0, 4))
            assert editor.inline(URI, 0, 5) == []
        message = editor.until("window/showMessage")["params"]["message"]
        assert "the daemon could not be started" in message
        assert editor.until("eagle-assist/didChangeStatus", state="unavailable")
        assert editor.end() == 0
        assert len([found for found in editor.notifications if found["method"] == "window/showMessage"]) == 1


def test_before_initialize_and_after_shutdown_requests_are_refused(environment: dict[str, str]) -> None:
    with EditorProcess([sys.executable, "-m", "eagle_assist", "lsp", "--stdio"], environment) as editor:
        assert editor.ask("textDocument/completion", {})["error"]["code"] == -32002
        assert editor.ask("initialize", [])["error"]["code"] == -32602
        editor.notify("textDocument/didOpen", {})
        editor.initialize()
        assert editor.ask("initialize", {"capabilities": {}})["error"]["code"] == -32600
        editor.ask("shutdown")
        assert editor.ask("eagle-assist/status")["error"]["code"] == -32600
        editor.notify("exit")
        assert editor.process.wait(30) == 0


def test_an_editor_that_vanishes_ends_its_server(environment: dict[str, str]) -> None:
    with EditorProcess([sys.executable, "-m", "eagle_assist", "lsp"], environment) as editor:
        editor.initialize()
        assert editor.process.stdin is not None
        editor.process.stdin.close()
        assert editor.process.wait(30) == 1


def test_every_malformed_request_is_answered_with_one_sentence(editor: EditorProcess) -> None:
    editor.initialize(INLINE, initializationOptions=QUICK)
    editor.open(URI, "secret_name = 1")
    bad: list[tuple[str, Any, int]] = [
        ("textDocument/inlineCompletion", {}, -32602),
        ("textDocument/inlineCompletion", None, -32602),
        ("textDocument/completion", {"textDocument": 3, "position": []}, -32602),
        ("workspace/executeCommand", {"command": "rm"}, -32602),
        ("no/such/method", {"text": "secret_name"}, -32601),
    ]
    for method, params, code in bad:
        error = editor.ask(method, params)["error"]
        assert error["code"] == code, method
        assert set(error) == {"code", "message"}
        assert "Traceback" not in error["message"]
        assert "secret_name" not in error["message"]
    assert editor.inline(URI, 99, 99), "a place behind the end counts as the end"
    assert editor.end() == 0


def junk(dice: random.Random) -> bytes:
    """A frame, or what only looks like one."""
    body = dice.choice(
        [
            b"", b"{", b"null", b"[]", b"[1,2]", b'"x"', b"{}", b'{"jsonrpc":"2.0"}', b"\xff\xfe", b"[" * 50_000,
            b'{"jsonrpc":"1.0","id":1,"method":"shutdown"}', b'{"jsonrpc":"2.0","id":{},"method":"shutdown"}',
            b'{"jsonrpc":"2.0","id":[1],"result":3}', b'{"jsonrpc":"2.0","method":7}',
            b'{"jsonrpc":"2.0","id":"nobody","result":{"a":1}}', b'{"jsonrpc":"2.0","id":9,"error":"no"}',
            b'{"jsonrpc":"2.0","method":"$/cancelRequest","params":{"id":12345}}',
            b'{"jsonrpc":"2.0","method":"$/cancelRequest"}', b'{"jsonrpc":"2.0","method":"$/setTrace","params":{}}',
        ]
    )  # fmt: skip
    frame = b"Content-Length: %d\r\n\r\n" % len(body) + body
    return dice.choice([b"", b"", b"", b"Nonsense: 1\r\n\r\n", b"\r\n\r\n", b"Content-Length: x\r\n\r\n"]) + frame


def anything(dice: random.Random, depth: int = 0) -> Any:
    """A JSON value."""
    if depth < 3 and dice.random() < 0.4:
        names = ["textDocument", "uri", "text", "position", "line", "character", "contentChanges", "range", "x"]
        return {dice.choice(names): anything(dice, depth + 1) for _ in range(dice.randint(0, 3))}
    return dice.choice([None, True, -1, 0, 3, 2**40, 1.5, "x", "\ud83d", URI, [], [{}], {}])


def place(dice: random.Random) -> dict[str, int]:
    return {"line": dice.choice([0, 0, 1, 2, 7, 2**31 - 1]), "character": dice.choice([0, 1, 3, 9, 2**31 - 1])}


class Chaos:
    """An editor gone mad: any message at any time."""

    methods = (
        "textDocument/didOpen", "textDocument/didChange", "textDocument/didClose", "textDocument/completion",
        "textDocument/inlineCompletion", "workspace/didChangeConfiguration", "workspace/executeCommand",
        "workspace/didChangeWorkspaceFolders", "eagle-assist/status", "initialized", "initialize",
        "textDocument/didPartiallyAcceptCompletion", "textDocument/didSave", "textDocument/hover",
    )  # fmt: skip
    uris = (URI, "file:///code/project/other.py", "untitled:1")

    def __init__(self, editor: EditorProcess, seed: int) -> None:
        self.asked: list[int] = []
        self._editor = editor
        self._dice = random.Random(seed)
        self._deeds = {
            self.junk: 10, self.nonsense: 15, self.nonsense_request: 15, self.open: 5, self.change: 43,
            self.close: 2, self.complete: 7, self.cancel: 3,
        }  # fmt: skip

    def act(self) -> None:
        (deed,) = self._dice.choices(list(self._deeds), list(self._deeds.values()))
        deed()

    def junk(self) -> None:
        self._editor.bytes(junk(self._dice))

    def nonsense(self) -> None:
        self._editor.notify(self._dice.choice(self.methods), anything(self._dice))

    def nonsense_request(self) -> None:
        self.asked.append(self._editor.request(self._dice.choice(self.methods), anything(self._dice)))

    def open(self) -> None:
        text = self._dice.choice(["", "a\r\nb", "é😀\n\n", "x = 1\n" * 20])
        self._editor.open(self._dice.choice(self.uris), text)

    def change(self) -> None:
        text = self._dice.choice(["", "a", "\n", "😀", "\r\n", "\ud83d", "word"])
        edit = {"range": {"start": place(self._dice), "end": place(self._dice)}, "text": text}
        changes = [edit, {"text": "all"}][: self._dice.randint(1, 2)]
        document = {"uri": self._dice.choice(self.uris), "version": self._dice.randint(0, 9)}
        self._editor.notify("textDocument/didChange", {"textDocument": document, "contentChanges": changes})

    def close(self) -> None:
        self._editor.notify("textDocument/didClose", {"textDocument": {"uri": self._dice.choice(self.uris)}})

    def complete(self) -> None:
        where = {"textDocument": {"uri": self._dice.choice(self.uris)}, "position": place(self._dice)}
        params = {**where, "context": {"triggerKind": 2}}
        self.asked.append(self._editor.request("textDocument/inlineCompletion", params))

    def cancel(self) -> None:
        if self.asked:
            self._editor.notify("$/cancelRequest", {"id": self._dice.choice(self.asked)})


def test_ten_thousand_messages_in_any_order_leave_no_exception_and_a_server_that_works(
    editor: EditorProcess, environment: dict[str, str]
) -> None:
    editor.initialize(INLINE, initializationOptions=QUICK)
    chaos = Chaos(editor, 7)
    for _ in range(MESSAGES):
        chaos.act()
    for request in chaos.asked:
        answer = editor.wait(request)
        assert ("result" in answer) != ("error" in answer)
        assert answer.get("error", {}).get("code", -32600) in {-32600, -32601, -32602, -32800}
    editor.open(URI, "a = ")
    assert editor.inline(URI, 0, 4, invoked=True)
    assert editor.end() == 0
    assert editor.errors == b""
    shown = [message["params"] for message in editor.notifications if message["method"] == "window/showMessage"]
    assert not any("Error" in params["message"] or "Traceback" in params["message"] for params in shown)
    assert not (Path(environment["EAGLE_ASSIST_HOME"]) / "state" / "faults.log").exists(), "no fault was recorded"
