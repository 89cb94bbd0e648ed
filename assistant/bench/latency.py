"""What somebody who types waits for: a trace of keystrokes is replayed against the daemon, key by key.

Each key is sent at its time, whatever became of the one before: a completion that brings the edit of the open document
along. Only that the daemon has taken the key before is waited for, since its edit leads to this one's text. The answer
to a key counts if it ends by itself; those that a later key superseded are counted, and so is the work that was done
for them.
"""

import asyncio
import contextlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

import msgspec

from assistant import protocol
from assistant.bench.stats import percentile
from assistant.bench.traces import Moment
from assistant.client import AsyncClient
from assistant.errors import RefusedError

_ENDED = frozenset({"stop", "length", "filtered"})


@dataclass(slots=True)
class Key:
    """One key and its answer."""

    sent: float
    asked: float = 0.0
    """when the completion was asked for, after the key before was taken"""
    first_ms: float | None = None
    """to the first text"""
    full_ms: float | None = None
    answer_ms: float | None = None
    """from asking to the end"""
    finish: str = ""
    source: str = "model"
    text: str = ""
    prompt: tuple[int, int, int] | None = None
    """tokens of the prompt, of which reused by the target, and by the drafter"""
    steps: int = 0
    failure: str = ""
    taken: asyncio.Event = field(default_factory=asyncio.Event)
    """the daemon has its edit"""


@dataclass(frozen=True, slots=True)
class Replay:
    """How a trace is played."""

    max_tokens: int = 48
    speed: float = 1.0
    """keys come this much faster than in the trace"""
    policy: bool = True
    method: str | None = None
    typed: bool = True


@dataclass(slots=True)
class Played:
    """What came of it."""

    keys: list[Key] = field(default_factory=list)
    superseded_steps: int = 0
    again: Key | None = None
    """the last place, asked once more without what was kept of the first answer"""
    status: protocol.Status | None = None


async def play(moments: Sequence[Moment], replay: Replay) -> Played:
    """Replay a trace; the model is loaded first.

    Raises:
        DaemonError: the daemon went away.
    """
    async with await AsyncClient.connect("bench latency") as client:
        await _warm(client, moments[0], replay)
        before = await client.status()
        played = Played()
        versions: dict[str, int] = {}
        started = perf_counter()
        tasks = []
        for moment in moments:
            await asyncio.sleep(max(0.0, moment.stroke.ms / 1e3 / replay.speed - (perf_counter() - started)))
            key = Key(perf_counter())
            played.keys.append(key)
            request = await _request(client, moment, versions, replay)
            tasks.append(asyncio.create_task(_ask(client, request, key)))
            await key.taken.wait()
        await asyncio.gather(*tasks)
        played.again = Key(perf_counter())
        await _ask(client, msgspec.structs.replace(request, typed=False), played.again)
        played.status = await client.status()
        played.superseded_steps = played.status.superseded_steps - before.superseded_steps
        for path in versions:
            await client.close_document(path)
    return played


async def _warm(client: AsyncClient, moment: Moment, replay: Replay) -> None:
    """Have the model loaded, and its first forwards run, on a document that is not measured."""
    request = protocol.Complete(
        path="warm-up.py", prefix=moment.text[:200], options=protocol.Options(max_tokens=4, method=replay.method)
    )
    async with contextlib.aclosing(client.complete(request)) as events:
        async for _ in events:
            pass


async def _request(client: AsyncClient, moment: Moment, versions: dict[str, int], replay: Replay) -> protocol.Complete:
    """What a key asks for; a document's first key has it opened."""
    stroke = moment.stroke
    before = versions.get(stroke.path, 0)
    version = versions[stroke.path] = before + 1
    if stroke.text is not None:
        await client.open_document(stroke.path, version, moment.text)
    return protocol.Complete(
        path=stroke.path,
        version=version,
        since=before if stroke.text is None else None,
        edits=tuple(protocol.Edit(start=start, end=end, text=text) for start, end, text in stroke.edits),
        cursor=stroke.cursor,
        typed=replay.typed,
        options=protocol.Options(max_tokens=replay.max_tokens, policy=replay.policy, method=replay.method),
    )


async def _ask(client: AsyncClient, request: protocol.Complete, key: Key) -> None:
    key.asked = perf_counter()
    try:
        async with contextlib.aclosing(client.complete(request)) as events:
            async for event in events:
                key.taken.set()
                _take(key, event)
    except RefusedError as error:
        key.finish, key.failure = "failed", error.code
    finally:
        key.taken.set()


def _take(key: Key, event: protocol.CompletionEvent) -> None:
    elapsed = (perf_counter() - key.sent) * 1e3
    if isinstance(event, protocol.Step):
        key.steps += 1
        if event.text and key.first_ms is None:
            key.first_ms = elapsed
        if event.prompt_tokens:
            key.prompt = (event.prompt_tokens, event.reused, event.draft_reused)
    elif isinstance(event, protocol.Done):
        key.full_ms, key.finish, key.source, key.text = elapsed, event.finish, event.source, event.text
        key.answer_ms = elapsed - (key.asked - key.sent) * 1e3
    elif isinstance(event, protocol.Failed):
        key.finish, key.failure = "failed", event.code


def document(played: Played, moments: Sequence[Moment], replay: Replay) -> dict[str, Any]:
    """The figures as a JSON object; times are milliseconds from the key to what it waits for."""
    keys = played.keys
    ended = [key for key in keys if key.finish in _ENDED]
    asked = [key for key in ended if key.source == "model"]
    typed = [key for key in ended if key.source == "typed"]
    computed = [_computed(key.prompt) for key in keys if key.prompt is not None]
    status = played.status
    return {
        "keys": len(keys),
        "documents": len({moment.stroke.path for moment in moments}),
        "max_tokens": replay.max_tokens,
        "speed": replay.speed,
        "model": status.model if status else "",
        "precision": status.precision if status else "",
        "method": replay.method or (status.method if status else ""),
        "answered_by_model": len(asked),
        "answered_by_typing": len(typed),
        "superseded": sum(key.finish == "superseded" for key in keys),
        "failed": sum(key.finish == "failed" for key in keys),
        "superseded_steps": played.superseded_steps,
        "last_finish": keys[-1].finish,
        "last_is_right": _right(keys[-1], played.again),
        "first_text_ms": _percentiles([key.first_ms for key in asked if key.first_ms is not None]),
        "full_text_ms": _percentiles([key.full_ms for key in asked if key.full_ms is not None]),
        "typed_ms": _percentiles([key.full_ms for key in typed if key.full_ms is not None]),
        "typed_answer_ms": _percentiles([key.answer_ms for key in typed if key.answer_ms is not None]),
        "prefilled_target": _percentiles([target for target, _ in computed[1:]]),
        "prefilled_draft": _percentiles([draft for _, draft in computed[1:]]),
    }


def _right(last: Key, again: Key | None) -> bool | None:
    """Whether the last answer is what the same request brings when asked anew.

    None where it is the rest of an earlier suggestion: the model may well write another text from here.
    """
    return None if last.source == "typed" else again is not None and last.text == again.text


def _computed(prompt: tuple[int, int, int]) -> tuple[float, float]:
    total, reused, draft_reused = prompt
    return float(total - reused), float(total - draft_reused)


def _percentiles(values: Sequence[float]) -> dict[str, float] | None:
    if not values:
        return None
    return {"count": len(values), "p50": percentile(values, 50), "p95": percentile(values, 95), "most": max(values)}
