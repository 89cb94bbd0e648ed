"""A scripted daemon for the terminal interface: what it says and when it goes away is the test's to decide."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field

from assistant.errors import DaemonDiedError, DaemonUnavailableError
from assistant.protocol import (
    Begun,
    Choice,
    ClientInfo,
    Complete,
    CompletionEvent,
    Done,
    FeedEvent,
    Observed,
    Settled,
    Status,
    Step,
    Tree,
)

BEFORE = "def mean(values):\n    count = len(values)\n"
AFTER = "\n\nprint(mean([1, 2]))\n"


def status(**changes: object) -> Status:
    values: dict[str, object] = {
        "pid": 7, "version": "0.1", "socket": "/run/eagle.sock", "model": "qwen2.5-coder-0.5b", "head": "shipped",
        "device": "cpu", "precision": "int8", "method": "eagle2", "loaded": True, "state": "ready", "documents": 2,
        "memory_bytes": 640_000_000, "cache_bytes": 12_000_000, "uptime_s": 90.0, "completions": 3, "steps": 40,
        "clients": (ClientInfo(name="nvim", documents=("stats.py", "main.py"), requests=9, shown=7, accepted=4),
                    ClientInfo(name="vscode", documents=("app.ts",), requests=2, shown=1, accepted=0)),
    }  # fmt: skip
    return Status(**{**values, **changes})  # type: ignore[arg-type]


def tree() -> Tree:
    """Eight nodes, depth 5, width 2; three of them accepted."""
    return Tree(
        tokens=tuple(range(9)),
        texts=("    ", "return", "total", " sum", " values", "(", "[", "values", ")"),
        parents=(-1, 0, 0, 1, 1, 3, 3, 5, 7),
        values=(0.0, -0.1, -2.5, -0.3, -2.0, -0.5, -3.0, -0.9, -1.2),
        origins=("", "head", "head", "head", "head", "head", "head", "retrieval", "head"),
        accepted=(1, 3, 5),
    )


def prefill(request: str = "r1", **changes: object) -> Step:
    values: dict[str, object] = {
        "request": request, "index": 0, "text": "    ", "tokens": (0,), "texts": ("    ",), "origins": ("target",),
        "prefill_ms": 80.0, "prompt_tokens": 40, "reused": 30,
    }  # fmt: skip
    return Step(**{**values, **changes})  # type: ignore[arg-type]


def step(index: int = 1, request: str = "r1", **changes: object) -> Step:
    values: dict[str, object] = {
        "request": request, "index": index, "text": "return sum(data", "tokens": (1, 3, 5, 99),
        "texts": ("return", " sum", "(", "data"), "origins": ("head", "head", "head", "correction"), "tree": tree(),
        "choice": Choice(nodes=8, depth=6, width=8), "draft_ms": 8.0, "verify_ms": 42.0,
    }  # fmt: skip
    return Step(**{**values, **changes})  # type: ignore[arg-type]


def plain_step(index: int = 1, request: str = "p1", text: str = "x") -> Step:
    return Step(
        request=request, index=index, text=text, tokens=(5,), texts=(text,), origins=("target",), verify_ms=25.0
    )


def observed(
    step: Step, client: str = "nvim", document: str = "stats.py", method: str = "eagle2", before: str | None = None
) -> Observed:
    first = step.index == 0
    return Observed(
        client=client, document=document, method=method, step=step,
        before=(BEFORE if before is None else before) if first else "", after=AFTER if first else "",
    )  # fmt: skip


def completion(request: str = "r1", client: str = "nvim", document: str = "stats.py") -> tuple[FeedEvent, ...]:
    """A prefill, two drafting steps, an end and an acceptance."""
    small = Tree(
        tokens=(5, 8), texts=("(", ")"), parents=(-1, 0), values=(0.0, -0.4), origins=("", "retrieval"), accepted=(1,)
    )  # fmt: skip
    last = step(2, request, text=")", tokens=(8,), texts=(")",), origins=("retrieval",), tree=small)
    steps = (prefill(request), step(1, request), last)
    return (
        *(observed(each, client, document) for each in steps),
        Settled(client=client, document=document, request=request, outcome="stop", queue_ms=2.0, total_ms=190.0),
        Settled(client=client, document=document, request=request, outcome="accepted", characters=20),
    )


def plain(steps: int = 3, request: str = "p1") -> tuple[FeedEvent, ...]:
    """A completion without drafts."""
    first = observed(prefill(request), method="plain")
    return (first, *(observed(plain_step(i, request), method="plain") for i in range(1, steps + 1)))


@dataclass
class Scripted:
    """A `tui.source.Source`; `say` feeds it, `die` ends it, `requests` and `calls` are what it was asked."""

    alive: bool = True
    answer: Sequence[CompletionEvent] | None = None
    said: Status = field(default_factory=status)
    calls: list[str] = field(default_factory=list)
    requests: list[Complete] = field(default_factory=list)
    feedbacks: list[tuple[str, str, int]] = field(default_factory=list)
    _queue: asyncio.Queue[FeedEvent | None] = field(default_factory=asyncio.Queue)

    def say(self, *events: FeedEvent) -> None:
        for event in events:
            self._queue.put_nowait(event)

    @property
    def unread(self) -> int:
        """Events that nobody read yet."""
        return self._queue.qsize()

    def die(self) -> None:
        self.alive = False
        self._queue.put_nowait(None)

    async def feed(self) -> AsyncIterator[FeedEvent]:
        self._check()
        while (event := await self._queue.get()) is not None:
            yield event
        raise DaemonDiedError("the daemon went away.")

    async def status(self) -> Status:
        self._check()
        return self.said

    async def complete(self, request: Complete) -> AsyncIterator[CompletionEvent]:
        self._check()
        self.requests.append(request)
        name = f"c{len(self.requests)}"
        method = request.options.method or "eagle2"
        yield Begun(request=name, model="m", method=method)
        for event in self.answer if self.answer is not None else _answer(name, method):
            yield event
            await asyncio.sleep(0)

    async def feedback(self, request: str, outcome: str, characters: int) -> None:
        self._check()
        self.feedbacks.append((request, outcome, characters))

    async def start(self) -> None:
        self.calls.append("start")
        self.alive = True

    async def shutdown(self) -> None:
        self._check()
        self.calls.append("shutdown")
        self.die()

    async def load(self, model: str | None, head: str | None) -> None:
        self._check()
        self.calls.append(f"load {model} {head}")

    async def unload(self) -> None:
        self._check()
        self.calls.append("unload")
        self.said = status(loaded=False, state="unloaded")

    async def close(self) -> None:
        self.calls.append("close")

    def _check(self) -> None:
        if not self.alive:
            raise DaemonUnavailableError("no daemon runs.")


def _answer(name: str, method: str) -> tuple[CompletionEvent, ...]:
    text = "    return sum(data"
    if method == "plain":
        words = ("return", " sum", "(", "data")
        steps = [prefill(name), *(plain_step(i, name, word) for i, word in enumerate(words, 1))]
    else:
        steps = [prefill(name), step(1, name)]
    done = Done(request=name, text=text, finish="stop", prefill_ms=80.0, decode_ms=50.0 * (len(steps) - 1))
    return (*steps, done)
