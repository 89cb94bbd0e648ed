"""A daemon's life in this process: idleness, memory, the end, its log."""

import logging
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from assistant import protocol
from assistant.client import Client
from assistant.daemon import logs
from assistant.daemon.lifecycle import Daemon, Limits
from assistant.endpoint import Endpoint
from assistant.errors import DaemonRunningError, DaemonUnavailableError
from tests.support.daemons import Running, scripted_daemon
from tests.support.scripted_room import Script, ScriptedRoom
from tests.support.waiting import until

ASKED = protocol.Complete(path="a.py", prefix="hello")


def connected(daemon: Running) -> Client:
    return Client.connect("test", start=False, endpoint=daemon.endpoint)


def test_a_second_daemon_at_the_same_place_is_refused() -> None:
    with scripted_daemon() as daemon, pytest.raises(DaemonRunningError, match="already runs"):
        Daemon(daemon.endpoint, ScriptedRoom, lambda *_: None).run()


def test_nobody_is_found_where_none_runs(tmp_path: Path) -> None:
    with pytest.raises(DaemonUnavailableError, match="daemon start"):
        Client.connect("test", start=False, endpoint=Endpoint(tmp_path / "run", tmp_path / "run" / "s"))


def test_the_socket_a_crash_left_behind_is_no_obstacle() -> None:
    import socket

    with scripted_daemon() as daemon:
        endpoint = daemon.endpoint
        assert endpoint.socket is not None
        # A file in the socket's place that nobody listens at, as after kill -9.
        endpoint.folder.mkdir(exist_ok=True)
        endpoint.socket.unlink()
        with socket.socket(socket.AF_UNIX) as stale:
            stale.bind(str(endpoint.socket))
        assert not endpoint.reachable()
        daemon.daemon.stop_from_outside(drain=False)
        until(lambda: not endpoint.pid_file.exists())
        second = Daemon(endpoint, ScriptedRoom, lambda *_: None)
        thread = threading.Thread(target=second.run)
        thread.start()
        until(endpoint.reachable)
        second.stop_from_outside(drain=False)
        thread.join(20)
        assert not thread.is_alive()


def test_an_idle_daemon_ends_and_one_in_use_does_not() -> None:
    with scripted_daemon(Script(steps=40, delay=0.05), limits=Limits(idle_exit_s=1.5)) as daemon:
        with connected(daemon) as client:
            assert isinstance(list(client.complete(ASKED))[-1], protocol.Done), "2 s of work are no idleness"
        until(lambda: not daemon.endpoint.reachable())


def test_the_model_is_freed_once_after_a_while_without_completions() -> None:
    with scripted_daemon(limits=Limits(idle_unload_s=0.2)) as daemon, connected(daemon) as client:
        list(client.complete(ASKED))
        until(lambda: daemon.room.unloads == 1)
        list(client.complete(ASKED))
        until(lambda: daemon.room.unloads == 2)
        assert daemon.endpoint.reachable()


def test_caches_are_trimmed_above_the_memory_budget() -> None:
    with scripted_daemon(limits=Limits(memory_bytes=1, idle_unload_s=0.2)) as daemon:
        until(lambda: daemon.room.trims > 0)


def test_a_daemon_whose_socket_is_gone_ends() -> None:
    with scripted_daemon(limits=Limits(idle_exit_s=2.0)) as daemon:
        assert daemon.endpoint.socket is not None
        daemon.endpoint.socket.unlink()
        until(lambda: daemon.room.closed)


def test_what_runs_is_finished_before_a_draining_daemon_ends() -> None:
    with scripted_daemon(Script(steps=20, delay=0.03)) as daemon, connected(daemon) as client:
        events = client.complete(ASKED)
        next(events)
        client.shutdown()
        last = list(events)[-1]
        assert isinstance(last, protocol.Done)
        assert last.finish == "length"
        until(lambda: not daemon.endpoint.pid_file.exists())


def test_without_draining_what_runs_is_cancelled() -> None:
    with scripted_daemon(Script(steps=2000, delay=0.03)) as daemon, connected(daemon) as client:
        events = client.complete(ASKED)
        next(events)
        client.shutdown(drain=False)
        last = list(events)[-1]
        assert isinstance(last, protocol.Done)
        assert last.finish == "cancelled"


def test_feeds_end_with_the_daemon() -> None:
    with scripted_daemon() as daemon, connected(daemon) as client:
        feed = client.steps()
        threading.Timer(0.3, client.shutdown).start()
        assert list(feed) == []


@pytest.fixture(name="log")
def fixture_log(tmp_path: Path) -> Iterator[Path]:
    root, before = logging.getLogger(), (logging.getLogger().handlers[:], logging.getLogger().level)
    path = logs.write_to(tmp_path)
    yield path
    for handler in root.handlers:
        handler.close()
    root.handlers[:], level = before
    root.setLevel(level)
    logging.captureWarnings(capture=False)
    logging.raiseExceptions = True


def test_the_log_keeps_our_lines_and_nothing_that_others_quote(log: Path) -> None:
    logging.getLogger("assistant.x").info("served %d requests", 3)
    logging.getLogger("other").warning("cannot parse %s", "MARKER")
    try:
        int("MARKER")
    except ValueError:
        logging.getLogger("assistant.y").exception("a fault")
        logging.getLogger("other").exception("MARKER")
    text = log.read_text()
    assert "served 3 requests" in text
    assert "a fault" in text
    assert "ValueError" in text
    assert "MARKER" not in text
    assert log.stat().st_mode & 0o077 == 0


def test_the_log_is_rotated(log: Path) -> None:
    for _ in range(30):
        logging.getLogger("assistant.x").info("x" * 200_000)
    files = list(log.parent.iterdir())
    assert len(files) == 1 + logs.BACKUPS
    assert sum(file.stat().st_size for file in files) <= (1 + logs.BACKUPS) * logs.MAX_BYTES
