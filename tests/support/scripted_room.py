"""A stand-in for the engine: completions that follow a script, in a thread of their own, one after the other.

Run as a module it is a daemon that serves scripted completions at the user's endpoint:

    python -m tests.support.scripted_room [--steps N] [--delay SECONDS] [--idle-exit SECONDS] [--knows]
"""

import itertools
import queue
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from assistant import protocol
from assistant.daemon.engine_room import Deliver, Observe, RoomStatus, Text
from assistant.errors import BusyError


@dataclass(frozen=True, slots=True)
class Script:
    """What every completion is: `steps` steps of the text's end, written again."""

    steps: int = 3
    delay: float = 0.0
    """seconds before each step"""
    limit: int = 64
    """requests that wait"""
    size: int = 4
    """characters of a step"""
    progress: int = 0
    """Progress events before the first step"""
    knows: bool = False
    """write on as the file at the document's path does, up to the line's end; nothing where it went another way"""


@dataclass(slots=True)
class _Job:
    id: str
    request: protocol.Complete
    text: Text
    deliver: Deliver
    cancelled: threading.Event = field(default_factory=threading.Event)
    arrived: float = field(default_factory=time.monotonic)


class ScriptedRoom:
    """An engine room without an engine; it remembers what it was told."""

    def __init__(self, script: Script | None = None) -> None:
        self.script = script or Script()
        self.texts: list[Text] = []
        self.told: list[protocol.Feedback] = []
        self.forgotten: list[tuple[str, str | None]] = []
        self.configured: list[Any] = []
        self.loads = 0
        self.unloads = 0
        self.trims = 0
        self.steps = 0
        self.completions = 0
        self.cancelled: list[str] = []
        self._jobs: queue.Queue[_Job | None] = queue.Queue()
        self._open: dict[str, _Job] = {}
        self._observers: list[Observe] = []
        self._numbers = itertools.count(1)
        self.closed = False
        self._thread = threading.Thread(target=self._work, daemon=True)
        self._thread.start()

    def submit(self, request: protocol.Complete, text: Text, deliver: Deliver) -> str:
        if self.closed or len(self._open) > self.script.limit:
            raise BusyError("the queue is full; try again in a moment.")
        job = _Job(f"r{next(self._numbers)}", request, text, deliver)
        self.texts.append(text)
        self._open[job.id] = job
        deliver(protocol.Begun(request=job.id, model="scripted", method="plain", queue=self._jobs.qsize()))
        self._jobs.put(job)
        return job.id

    def cancel(self, request: str) -> None:
        if request in self._open:
            self.cancelled.append(request)
            self._open[request].cancelled.set()

    def feedback(self, feedback: protocol.Feedback) -> None:
        self.told.append(feedback)

    def observe(self, deliver: Observe) -> Callable[[], None]:
        self._observers.append(deliver)
        return lambda: self._observers.remove(deliver)

    def forget(self, client: str, path: str | None) -> None:
        self.forgotten.append((client, path))
        for job in list(self._open.values()):
            if job.text.client == client and path in {None, job.text.path}:
                self.cancel(job.id)

    def configure(self, settings: Any) -> None:
        self.configured.append(settings)

    def status(self) -> RoomStatus:
        return RoomStatus(
            model="scripted",
            head=None,
            device="cpu",
            precision="float32",
            method="plain",
            loaded=self.loads > self.unloads,
            state="ready",
            queue=self._jobs.qsize(),
            completions=self.completions,
            steps=self.steps,
        )

    def load(self, model: str | None = None, head: str | None = None) -> None:
        del model, head
        self.loads += 1

    def unload(self) -> None:
        self.unloads += 1

    def trim(self) -> None:
        self.trims += 1

    def close(self, *, drain: bool, timeout: float) -> None:
        self.closed = True
        if not drain:
            for request in list(self._open):
                self.cancel(request)
        self._jobs.put(None)
        self._thread.join(timeout)
        for request in list(self._open):
            self.cancel(request)
        self._thread.join(5)

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            begun = time.monotonic()
            finish = self._play(job)
            waited, took = 1000 * (begun - job.arrived), 1000 * (time.monotonic() - begun)
            text = self._text(job)[: self.script.size * self.script.steps] if finish == "length" else ""
            del self._open[job.id]
            self.completions += 1
            job.deliver(protocol.Done(request=job.id, text=text, finish=finish, queue_ms=waited, decode_ms=took))
            self._settle(job, finish)

    def _play(self, job: _Job) -> str:
        for index in range(self.script.progress):
            job.deliver(protocol.Progress(request=job.id, stage="loading", done=index, total=self.script.progress))
        for index in range(self.script.steps):
            if job.cancelled.wait(self.script.delay) if self.script.delay else job.cancelled.is_set():
                return "cancelled"
            step = self._step(job, index)
            self.steps += 1
            job.deliver(step)
            for observer in list(self._observers):
                observer(protocol.Observed(client=job.text.client_name, document="", method="plain", step=step))
        return "length"

    def _step(self, job: _Job, index: int) -> protocol.Step:
        size = self.script.size
        text = self._text(job)[index * size : (index + 1) * size]
        tree = protocol.Tree(tokens=(0,), texts=("",), parents=(-1,), values=(0.0,), origins=("",), accepted=())
        return protocol.Step(
            request=job.id,
            index=index,
            text=text,
            tokens=(index,),
            texts=(text,),
            origins=("target",),
            tree=tree,
            prompt_tokens=0 if index else 7,
            forwards=min(index, 1),
        )

    def _text(self, job: _Job) -> str:
        """What stands before the cursor, over and over; or what it knows."""
        if self.script.knows:
            return known(job.text)
        before = job.text.text[: job.text.cursor] or "nothing "
        size = self.script.size * self.script.steps
        return (before[-size:] * (size // len(before[-size:]) + 1))[:size]

    def _settle(self, job: _Job, finish: str) -> None:
        for observer in list(self._observers):
            observer(protocol.Settled(client=job.text.client_name, document="", request=job.id, outcome=finish))


def known(text: Text) -> str:
    """The rest of a line of the file, as far as what stands after the cursor on it is not the same."""
    whole, before, after = Path(text.path).read_text(), text.text[: text.cursor], text.text[text.cursor :]
    if not whole.startswith(before):
        return ""
    line, standing = whole[len(before) :].partition("\n")[0], after.partition("\n")[0]
    return line[: max(line.rfind(standing), 0)] if standing else line


def main() -> None:
    """A scripted daemon at the user's endpoint."""
    import argparse

    from assistant.daemon.lifecycle import Daemon, Limits
    from assistant.daemon.logs import write_to
    from assistant.endpoint import default_endpoint
    from assistant.paths import log_dir

    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--size", type=int, default=4)
    parser.add_argument("--delay", type=float, default=0.0)
    parser.add_argument("--idle-exit", type=float)
    parser.add_argument("--knows", action="store_true")
    options = parser.parse_args()
    write_to(log_dir())
    script = Script(steps=options.steps, delay=options.delay, size=options.size, knows=options.knows)
    limits = Limits(idle_exit_s=options.idle_exit)
    Daemon(default_endpoint(), lambda: ScriptedRoom(script), lambda *_: None, lambda: limits).run()


if __name__ == "__main__":
    main()
