"""A daemon for the language server's tests, in this process: what it answers, and when, is the test's to decide."""

import asyncio
import itertools
from collections.abc import AsyncGenerator, Callable, Sequence

from assistant import protocol
from assistant.errors import DaemonDiedError, DaemonError, RefusedError

Write = Callable[[str, str], str]
"""(text before the cursor, text after it) -> completion"""


class ScriptedBackend:
    """Keeps documents as the daemon does and writes what a function says.

    Its completions wait at `gate` before their first piece, and again before the last event where `pieces` is more.
    """

    def __init__(self, write: Write, *, pieces: int = 1) -> None:
        self.welcome = protocol.Welcome(client="c1", version="0", pid=1)
        self.texts: dict[str, tuple[int, str]] = {}
        self.requests: list[protocol.Complete] = []
        self.withdrawn: list[str] = []
        self.told: list[protocol.Feedback] = []
        self.settings: protocol.SettingValues = {}
        self.opened = 0
        self.loads = 0
        self.failure: DaemonError | None = None
        """what every method raises"""
        self.gate = asyncio.Event()
        self.gate.set()
        self.step = asyncio.Event()
        """set after every piece"""
        self.last: protocol.CompletionEvent | None = None
        """ends every completion instead of `Done`"""
        self._write = write
        self._pieces = pieces
        self._numbers = itertools.count(1)

    def forget(self) -> None:
        """Be another daemon than before."""
        self.texts.clear()
        self.welcome = protocol.Welcome(client=f"c{next(self._numbers)}x", version="0", pid=2)

    async def complete(self, request: protocol.Complete) -> AsyncGenerator[protocol.CompletionEvent, None]:
        self._fail()
        before, after = self._sides(request)
        self.requests.append(request)
        identity = f"r{next(self._numbers)}"
        yield protocol.Begun(request=identity, model="scripted", method="plain")
        text, ended = self._write(before, after), False
        size = max(1, -(-len(text) // self._pieces))
        try:
            for start in range(0, len(text), size):
                await self.gate.wait()
                await asyncio.sleep(0)
                self._fail()
                yield _step(identity, text[start : start + size])
                self.step.set()
            await self.gate.wait()
            self._fail()
            ended = True
            yield self.last or protocol.Done(request=identity, text=text, finish="stop")
        finally:
            if not ended:
                self.withdrawn.append(identity)

    async def open_document(self, path: str, version: int, text: str, language: str | None = None) -> None:
        del language
        await asyncio.sleep(0)
        self._fail()
        self.opened += 1
        self.texts[path] = (version, text)

    async def change_document(self, path: str, version: int, edits: Sequence[protocol.Edit]) -> None:
        await asyncio.sleep(0)
        self._fail()
        if path not in self.texts:
            raise RefusedError("unknown_document", "the document is not open here.")
        _, text = self.texts[path]
        self.texts[path] = (version, _edited(text, edits))

    async def close_document(self, path: str) -> None:
        self.texts.pop(path, None)

    async def feedback(self, feedback: protocol.Feedback) -> None:
        self.told.append(feedback)

    async def configure(self, settings: protocol.SettingValues) -> None:
        self._fail()
        self.settings = dict(settings)

    async def load(self, model: str | None = None, head: str | None = None) -> protocol.Status:
        del model, head
        self.loads += 1
        return await self.status()

    async def status(self) -> protocol.Status:
        self._fail()
        return protocol.Status(
            pid=1, version="0", socket="", model="scripted", device="cpu", precision="int8", method="plain",
            loaded=True, state="ready",
        )  # fmt: skip

    async def close(self) -> None:
        await asyncio.sleep(0)

    def _sides(self, request: protocol.Complete) -> tuple[str, str]:
        if request.prefix is not None:
            return request.prefix, request.suffix
        assert request.cursor is not None
        if request.path not in self.texts:
            raise RefusedError("unknown_document", "the document is not open here.")
        version, text = self.texts[request.path]
        if request.since == version:
            version, text = self.texts[request.path] = (request.version or 0, _edited(text, request.edits))
        if version != request.version:
            raise RefusedError("stale", "the document is at another version.")
        return text[: request.cursor], text[request.cursor :]

    def _fail(self) -> None:
        if self.failure is not None:
            raise self.failure


def _edited(text: str, edits: Sequence[protocol.Edit]) -> str:
    for edit in edits:
        assert 0 <= edit.start <= edit.end <= len(text)
        text = text[: edit.start] + edit.text + text[edit.end :]
    return text


def died() -> DaemonDiedError:
    return DaemonDiedError("the daemon went away in the middle of an answer.")


def _step(request: str, text: str) -> protocol.Step:
    return protocol.Step(request=request, index=0, text=text, tokens=(1,), texts=(text,), origins=("target",))
