"""Whether memory stays flat: thousands of requests over many documents, and what the process holds in between."""

import gc
import threading
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from random import Random
from typing import Any

import psutil

from assistant import protocol
from assistant.daemon.engine_room import Text
from assistant.daemon.scheduler import Scheduler
from assistant.errors import BusyError

_OPTIONS = protocol.Options(max_tokens=8)


@dataclass(frozen=True, slots=True)
class Sample:
    """What the process held after so many requests."""

    requests: int
    resident_mb: float
    cache_mb: float
    """of which keys and values"""


class _Document:
    """A file that somebody edits: keys at a cursor, jumps, deletions; it never grows for long."""

    def __init__(self, name: str, text: str, random: Random) -> None:
        self.name = name
        self._original = text
        self._random = random
        self.text, self.cursor = text, len(text) // 2

    def edit(self) -> None:
        """One edit."""
        random = self._random
        kind = random.random()
        if kind < 0.05:
            self.text = self._original
            self.cursor = random.randrange(len(self.text) + 1)
        elif kind < 0.15:
            start = max(0, self.cursor - random.randrange(1, 9))
            self.text, self.cursor = self.text[:start] + self.text[self.cursor :], start
        else:
            piece = random.choice(["x", "self", "(", ")", "\n    ", " = ", "return ", "1"])
            self.text = self.text[: self.cursor] + piece + self.text[self.cursor :]
            self.cursor += len(piece)


def endure(
    room: Scheduler,
    sources: Sequence[tuple[str, str]],
    documents: int,
    requests: int,
    progress: Callable[[int, int], None],
) -> list[Sample]:
    """Edit and complete in many documents at random; most requests are waited for, some are superseded or cancelled.

    Args:
        room: what completes.
        sources: (name, text) of files that documents begin as.
        documents: how many are edited.
        requests: how many completions are asked for.
        progress: told how many were.
    """
    random = Random(0)  # noqa: S311 - a reproducible load, no secret
    files = [
        _Document(f"{number}-{sources[number % len(sources)][0]}", sources[number % len(sources)][1], random)
        for number in range(documents)
    ]
    samples = []
    every = max(1, requests // 100)
    for number in range(1, requests + 1):
        document = random.choice(files)
        document.edit()
        _ask(room, document, random)
        if number % every == 0:
            samples.append(_sample(room, number))
            progress(number, requests)
    return samples


def result(samples: Sequence[Sample]) -> dict[str, Any]:
    """The samples, and how much the second half of the run grew: medians of its first and last fifths."""
    half = [sample.resident_mb for sample in samples[len(samples) // 2 :]]
    fifth = max(1, len(half) // 5)
    early, late = sorted(half[:fifth])[fifth // 2], sorted(half[-fifth:])[fifth // 2]
    return {"growth_mb": late - early, "samples": [asdict(sample) for sample in samples]}


def _ask(room: Scheduler, document: _Document, random: Random) -> None:
    ended = threading.Event()

    def deliver(event: protocol.CompletionEvent) -> None:
        if isinstance(event, protocol.Done | protocol.Failed):
            ended.set()

    place = Text(document.name, None, document.text, document.cursor, "bench")
    request = protocol.Complete(path=document.name, version=1, options=_OPTIONS)
    try:
        asked = room.submit(request, place, deliver)
    except BusyError:
        return
    fate = random.random()
    if fate < 0.1:
        room.cancel(asked)
    if fate < 0.8:
        ended.wait()


def _sample(room: Scheduler, requests: int) -> Sample:
    gc.collect()
    resident = psutil.Process().memory_info().rss
    return Sample(requests, resident / 1e6, room.status().cache_bytes / 1e6)
