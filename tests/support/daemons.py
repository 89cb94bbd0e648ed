"""Daemons for tests: one in this process with a scripted engine, and what starts one as a process of its own."""

import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from assistant.daemon.context import Contexts
from assistant.daemon.lifecycle import Daemon, Limits
from assistant.daemon.server import Resolve
from assistant.endpoint import Endpoint, socket_path
from tests.support.scripted_room import Script, ScriptedRoom
from tests.support.waiting import until

ROOT = Path(__file__).parents[2]


def scripted_command(*options: str) -> tuple[str, ...]:
    """What starts a scripted daemon at the user's endpoint, for `connect(command=...)`."""
    code = f"import sys; sys.path.insert(0, {str(ROOT)!r}); from tests.support.scripted_room import main; main()"
    return (sys.executable, "-P", "-c", code, *options)


@dataclass(frozen=True, slots=True)
class Running:
    """A daemon in this process."""

    endpoint: Endpoint
    room: ScriptedRoom
    daemon: Daemon


@contextmanager
def scripted_daemon(
    script: Script | None = None,
    *,
    limits: Limits | None = None,
    loopback: bool = False,
    resolve: Resolve = lambda *_: None,
    contexts: Contexts | None = None,
) -> Iterator[Running]:
    """Run a daemon with a scripted engine in a thread; in a folder of its own, whose path is short."""
    with tempfile.TemporaryDirectory(prefix="ea-", dir="/tmp") as folder:
        runtime = Path(folder) / "run"
        endpoint = Endpoint(runtime, None if loopback else socket_path(runtime))
        rooms: list[ScriptedRoom] = []

        def make_room() -> ScriptedRoom:
            rooms.append(ScriptedRoom(script))
            return rooms[-1]

        daemon = Daemon(endpoint, make_room, resolve, lambda: limits or Limits(drain_s=2.0), contexts)
        thread = threading.Thread(target=daemon.run, daemon=True)
        thread.start()
        until(lambda: not thread.is_alive() or (bool(rooms) and endpoint.reachable()))
        assert thread.is_alive(), "the daemon did not start"
        try:
            yield Running(endpoint, rooms[0], daemon)
        finally:
            daemon.stop_from_outside(drain=False)
            thread.join(20)
            assert not thread.is_alive(), "the daemon did not end"
