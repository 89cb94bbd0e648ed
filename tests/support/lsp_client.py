"""An editor for tests: starts the real server process and speaks frames of its own making, broken ones too."""

import json
import queue
import subprocess
import threading
from collections.abc import Sequence
from typing import Any, Self

PATIENCE_S = 30.0
INLINE: dict[str, Any] = {"textDocument": {"inlineCompletion": {}}}
Json = dict[str, Any]


class EditorProcess:
    """An editor with one server; use as a context manager.

    Args:
        command: starts the server.
        environment: of the server's process.
    """

    def __init__(self, command: Sequence[str], environment: dict[str, str]) -> None:
        self.process = subprocess.Popen(
            command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        self.notifications: list[Json] = []
        self.answers: dict[Any, Json] = {}
        self.errors = b""
        self.replies: dict[str, Any] = {}
        """method -> result of requests that the server sends"""
        self._messages: queue.Queue[Json | None] = queue.Queue()
        self._number = 0
        self._threads = [threading.Thread(target=work, daemon=True) for work in (self._read, self._read_errors)]
        for thread in self._threads:
            thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()
        for thread in self._threads:
            thread.join(PATIENCE_S)
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            assert stream is not None
            stream.close()

    def initialize(self, capabilities: Json | None = None, **more: Any) -> Json:
        """Shake hands; the server's capabilities."""
        answer = self.ask("initialize", {"capabilities": capabilities or {}, "processId": None, **more})
        self.notify("initialized", {})
        found = answer["result"]["capabilities"]
        assert isinstance(found, dict)
        return found

    def open(self, uri: str, text: str, language: str = "python") -> None:
        """Open a document at version 1."""
        document = {"uri": uri, "languageId": language, "version": 1, "text": text}
        self.notify("textDocument/didOpen", {"textDocument": document})

    def change(self, uri: str, version: int, text: str, start: tuple[int, int], end: tuple[int, int]) -> None:
        """Replace a range."""
        change = {"range": {"start": position(*start), "end": position(*end)}, "text": text}
        document = {"uri": uri, "version": version}
        self.notify("textDocument/didChange", {"textDocument": document, "contentChanges": [change]})

    def inline(self, uri: str, line: int, column: int, *, invoked: bool = False, **context: Any) -> list[Json]:
        """Ghost text at a place."""
        kind = {"triggerKind": 1 if invoked else 2, **context}
        where = {"textDocument": {"uri": uri}, "position": position(line, column)}
        answer = self.ask("textDocument/inlineCompletion", {**where, "context": kind})
        found = answer["result"]
        assert isinstance(found, list), answer
        return found

    def ask(self, method: str, params: Any = None) -> Json:
        """Send a request and wait for its answer."""
        return self.wait(self.request(method, params))

    def request(self, method: str, params: Any = None) -> int:
        """Send a request; its id."""
        self._number += 1
        self.send({"id": self._number, "method": method, "params": params})
        return self._number

    def notify(self, method: str, params: Any = None) -> None:
        self.send({"method": method, "params": params})

    def send(self, message: Json) -> None:
        self.raw(json.dumps({"jsonrpc": "2.0", **message}).encode())

    def raw(self, body: bytes) -> None:
        """Send a frame with any body."""
        self.bytes(b"Content-Length: %d\r\n\r\n" % len(body) + body)

    def bytes(self, data: bytes) -> None:
        """Send anything."""
        assert self.process.stdin is not None
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def wait(self, identity: Any) -> Json:
        """The answer to a request."""
        while identity not in self.answers:
            self._take()
        return self.answers.pop(identity)

    def until(self, method: str, **fields: Any) -> Json:
        """The first notification (kept or yet to come) whose parameters hold `fields`."""
        seen = 0
        while True:
            for message in self.notifications[seen:]:
                if message["method"] == method and fields.items() <= message["params"].items():
                    return message
            seen = len(self.notifications)
            self._take()

    def end(self) -> int:
        """Shut the server down as the protocol wants it; its exit code."""
        self.ask("shutdown")
        self.notify("exit")
        return self.process.wait(PATIENCE_S)

    def _take(self) -> None:
        message = self._messages.get(timeout=PATIENCE_S)
        if message is None:
            raise AssertionError(f"the server ended: {self.errors.decode(errors='replace')}")
        if "method" not in message:
            self.answers[message["id"]] = message
        elif "id" in message:
            self.send({"id": message["id"], "result": self.replies.get(message["method"])})
            self.notifications.append(message)
        else:
            self.notifications.append(message)

    def _read(self) -> None:
        stream = self.process.stdout
        assert stream is not None
        while header := stream.readline():
            name, _, value = header.partition(b":")
            if name.lower() == b"content-length":
                length = int(value)
            elif not header.strip():
                self._messages.put(json.loads(stream.read(length)))
        self._messages.put(None)

    def _read_errors(self) -> None:
        assert self.process.stderr is not None
        self.errors = self.process.stderr.read()


def position(line: int, column: int) -> Json:
    return {"line": line, "character": column}
