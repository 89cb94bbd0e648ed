"""From the start of the process to the server: the editor is answered before the heavy modules are loaded."""

import gc
import json
import os
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, BinaryIO, NoReturn

from lsp import stdio
from lsp.editor import Editor, read_editor
from lsp.greeting import greeting

if TYPE_CHECKING:
    from lsp.backend import Connect

_NOT_INITIALIZED, _PARAMS = -32002, -32602


def serve(connect: "Connect | None" = None) -> NoReturn:
    """Serve one editor over stdio, then end the process. `connect` connects to a daemon, by default the user's own."""
    source, output = stdio.take()
    editor = greet(source, output)
    code = 1 if editor is None else _serve(editor, source, output, connect)
    # Threads may still read, or wait for a daemon to start; nothing that they could bring is worth waiting for.
    sys.stderr.flush()
    os._exit(code)


def _serve(editor: Editor, source: BinaryIO, output: stdio.Output, connect: "Connect | None") -> int:
    gc.disable()  # a third of the time that loading pygls takes
    import asyncio

    from lsp.backend import connect_daemon
    from lsp.server import Server

    gc.enable()
    gc.freeze()

    async def run() -> int:
        return await Server(editor, output, connect or connect_daemon).run(source)

    return asyncio.new_event_loop().run_until_complete(run())


def greet(source: BinaryIO, output: stdio.Output) -> Editor | None:
    """Answer messages until `initialize` came; None where the editor went away before."""
    while (body := stdio.read(source)) is not None:
        message = _parse(body)
        identity, method, params = message.get("id"), message.get("method"), message.get("params")
        if method == "exit":
            return None
        if not isinstance(identity, str | int) or not isinstance(method, str):
            continue
        if method != "initialize":
            output.send({"id": identity, "error": _error(_NOT_INITIALIZED, "initialize comes first")})
        elif not isinstance(params, Mapping):
            output.send({"id": identity, "error": _error(_PARAMS, "initialize needs parameters")})
        else:
            editor = read_editor(params)
            output.send({"id": identity, "result": greeting(editor)})
            return editor
    return None


def _parse(body: bytes) -> dict[str, Any]:
    """A message; without content where it is none."""
    try:
        message = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    return message if isinstance(message, dict) else {}


def _error(code: int, sentence: str) -> dict[str, Any]:
    return {"code": code, "message": sentence}
