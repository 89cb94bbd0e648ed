"""Several documents at once: tokens a second of all together, with speculation off, fixed, and adapted to the load."""

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any

from assistant import protocol
from assistant.bench.stats import spread
from assistant.config import Settings
from assistant.config.declaration import Daemon
from assistant.daemon.engine_room import Text
from assistant.daemon.host import Host
from assistant.daemon.scheduler import Scheduler

_METHODS = {"off": "plain", "fixed": "eagle2", "adaptive": "auto"}
MODES = tuple(_METHODS)


@dataclass(frozen=True, slots=True)
class Places:
    """Where completions are asked for."""

    texts: Sequence[tuple[str, str, int]]
    """(path, text, cursor); the first n are the n documents"""
    max_tokens: int


def compare(
    host: Host, places: Places, counts: Sequence[int], repeat: int, progress: Callable[[int, int], None]
) -> list[dict[str, Any]]:
    """A row for each number of documents and mode; modes take turns, so that a machine's moods hit them alike."""
    found: dict[tuple[int, str], list[float]] = {}
    steps: dict[tuple[int, str], float] = {}
    done = 0
    for number in range(repeat):
        for count in counts:
            for place in range(len(MODES)):
                mode = MODES[(place + number) % len(MODES)]
                rate, per_step = _measure(host, places, count, mode)
                found.setdefault((count, mode), []).append(rate)
                steps[count, mode] = per_step
                done += 1
                progress(done, repeat * len(counts) * len(MODES))
    return [
        {
            "documents": count,
            "speculation": mode,
            "tokens_per_second": spread(found[count, mode]).median,
            "spread": spread(found[count, mode]).to_json(),
            "tokens_per_step": steps[count, mode],
        }
        for count in counts
        for mode in MODES
    ]


def _measure(host: Host, places: Places, count: int, mode: str) -> tuple[float, float]:
    """Tokens a second from the first request to the last event, prompts read before; and tokens a step."""
    room = Scheduler(Settings(daemon=Daemon(adaptive_load=mode == "adaptive")), host=host)
    method = _METHODS[mode]
    try:
        _all(room, places, count, method, 1)
        started = perf_counter()
        answers = _all(room, places, count, method, places.max_tokens)
        seconds = perf_counter() - started
    finally:
        room.close(drain=False, timeout=10)
    tokens = sum(len(done.tokens) for done in answers)
    return tokens / seconds, tokens / max(1, room.status().steps + count)


def _all(room: Scheduler, places: Places, count: int, method: str, max_tokens: int) -> list[protocol.Done]:
    """Ask in all documents at once and wait for all."""
    answers: list[protocol.Done] = []
    ended = threading.Semaphore(0)

    def deliver(event: protocol.CompletionEvent) -> None:
        if isinstance(event, protocol.Done):
            answers.append(event)
        if isinstance(event, protocol.Done | protocol.Failed):
            ended.release()

    for path, text, cursor in places.texts[:count]:
        options = protocol.Options(max_tokens=max_tokens, method=method, policy=False)
        room.submit(protocol.Complete(options=options, typed=False), Text(path, None, text, cursor, "bench"), deliver)
    for _ in range(count):
        ended.acquire()
    return answers
