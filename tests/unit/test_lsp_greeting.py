"""What the server says of itself, and what it understands of the editors there are."""

import asyncio
import io
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from lsprotocol import converters, types
from pygls.capabilities import ServerCapabilitiesBuilder

from lsp import items, stdio
from lsp.editor import Editor, read_editor
from lsp.greeting import COMMANDS, greeting
from lsp.launch import greet
from lsp.positions import Encoding
from lsp.server import Server
from tests.support.scripted_backend import ScriptedBackend

ROOT = Path(__file__).parents[2]
GHOST = {"inlineCompletion": {"dynamicRegistration": False}}


def frame(body: bytes) -> bytes:
    return b"Content-Length: %d\r\n\r\n" % len(body) + body


def request(method: str, identity: object = 1, params: object = None) -> bytes:
    return frame(json.dumps({"jsonrpc": "2.0", "id": identity, "method": method, "params": params}).encode())


def answers(data: bytes) -> list[dict[str, Any]]:
    stream, found = io.BytesIO(data), []
    while (body := stdio.read(stream)) is not None:
        found.append(json.loads(body))
    return found


@pytest.mark.parametrize(
    ("capabilities", "encoding", "ghost"),
    [
        pytest.param({"general": {"positionEncodings": ["utf-8", "utf-32", "utf-16"]}}, "utf-8", False, id="helix"),
        pytest.param(
            {"general": {"positionEncodings": ["utf-16"]}, "textDocument": GHOST}, "utf-16", True, id="vscode"
        ),
        pytest.param({"general": {"positionEncodings": ["utf-16"]}}, "utf-16", False, id="sublime"),
        pytest.param({"general": {"positionEncodings": ["utf-32", "utf-8"]}}, "utf-32", False, id="lsp-mode"),
        pytest.param({"textDocument": {"completion": {}}}, "utf-16", False, id="kate"),
        pytest.param({"general": {"positionEncodings": ["utf-7"]}}, "utf-16", False, id="unknown"),
        pytest.param(
            {"general": 1, "textDocument": [], "window": {"workDoneProgress": "x"}}, "utf-16", False, id="odd"
        ),
        pytest.param(None, "utf-16", False, id="none"),
    ],
)
def test_what_editors_declare_is_understood(capabilities: Any, encoding: str, *, ghost: bool) -> None:
    editor = read_editor({"capabilities": capabilities})
    assert (editor.encoding, editor.ghost, editor.progress) == (encoding, ghost, False)


@pytest.mark.parametrize(
    ("params", "folders"),
    [
        ({"workspaceFolders": [{"uri": "file:///a", "name": "a"}, {"uri": "file:///b", "name": "b"}]}, 2),
        ({"rootUri": "file:///a"}, 1),
        ({"workspaceFolders": None, "rootUri": None}, 0),
        ({"workspaceFolders": [3, {"uri": 4}]}, 0),
    ],
)
def test_all_roots_of_a_workspace_are_known(params: dict[str, Any], folders: int) -> None:
    assert len(read_editor(params).folders) == folders


@pytest.mark.parametrize("encoding", list(Encoding))
@pytest.mark.parametrize("ghost", [True, False])
def test_the_quick_answer_is_what_pygls_would_say_of_the_registered_features(
    encoding: Encoding, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, ghost: bool
) -> None:
    monkeypatch.setenv("EAGLE_ASSIST_HOME", str(tmp_path))
    editor = Editor(encoding=encoding, ghost=ghost)

    async def connect(*_: object) -> ScriptedBackend:
        raise AssertionError

    async def registered() -> Any:
        server = Server(editor, stdio.Output(io.BytesIO()), connect)
        manager = server.protocol.fm
        builder: Any = ServerCapabilitiesBuilder(
            types.ClientCapabilities(),
            {*manager.features, *manager.builtin_features},
            manager.feature_options,
            list(manager.commands),
            types.TextDocumentSyncKind.Incremental,
            None,
            encoding.value,
        )
        return builder.build()

    wanted = converters.get_converter().unstructure(asyncio.run(registered()))
    found = greeting(editor)["capabilities"]
    for name in ("positionEncoding", "completionProvider", "inlineCompletionProvider", "executeCommandProvider"):
        assert found[name] == wanted[name], name
    assert found["textDocumentSync"]["change"] == wanted["textDocumentSync"]["change"] == 2
    assert set(COMMANDS) == {items.ACCEPT, items.REJECT}


def test_messages_before_initialize_are_refused_and_it_is_answered_once() -> None:
    written = io.BytesIO()
    source = io.BytesIO(
        b"junk\r\n" + frame(b"{") + request("shutdown", "a") + frame(b"[]") + request("initialize", 2, [])
        + request("initialize", 3, {"capabilities": {}}) + request("shutdown", 4)
    )  # fmt: skip
    editor = greet(source, stdio.Output(written))
    assert editor is not None
    found = answers(written.getvalue())
    assert [(answer["id"], answer.get("error", {}).get("code")) for answer in found] == [
        ("a", -32002), (2, -32602), (3, None),
    ]  # fmt: skip
    assert answers(source.read())[0]["id"] == 4, "what comes after it is left for the server"


@pytest.mark.parametrize(
    "ending", [b"", b"Content-Length: 99\r\n\r\n{}", frame(b'{"jsonrpc":"2.0","method":"exit"}')], ids=str
)
def test_an_editor_that_goes_away_before_initialize_is_no_fault(ending: bytes) -> None:
    assert greet(io.BytesIO(ending), stdio.Output(io.BytesIO())) is None


def test_a_message_longer_than_the_limit_is_skipped_and_the_next_one_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stdio, "MAX_BYTES", 10)
    stream = io.BytesIO(frame(b"x" * 5000) + b"content-length:2\r\nContent-Type: x\r\n\r\nok")
    assert stdio.read(stream) == b"ok"
    assert stdio.read(stream) is None


def test_writing_to_an_editor_that_is_gone_is_no_error() -> None:
    stream = io.BytesIO()
    output = stdio.Output(stream)
    stream.close()
    write: Callable[[bytes], None] = output.write
    write(b"x")
    assert output.broken


def test_until_initialize_is_answered_nothing_heavy_is_loaded() -> None:
    script = (
        "import sys, io, json\nfrom lsp import stdio\nfrom lsp.launch import greet\n"
        "body = json.dumps({'jsonrpc': '2.0', 'id': 1, 'method': 'initialize', 'params': {}}).encode()\n"
        "source = io.BytesIO(b'Content-Length: %d\\r\\n\\r\\n' % len(body) + body)\n"
        "assert greet(source, stdio.Output(io.BytesIO())) is not None\n"
        "print(json.dumps(sorted({name.split('.')[0] for name in sys.modules})))"
    )
    result = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True)
    loaded = set(json.loads(result.stdout))
    assert "lsp" in loaded
    assert not loaded & {"pygls", "lsprotocol", "cattrs", "attrs", "asyncio", "httpx", "msgspec", "torch", "numpy"}
