"""Daemons as processes, with a scripted engine: who starts them, who wins, what a crash leaves, who may connect."""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from assistant import protocol
from assistant.client import Client, launch
from assistant.endpoint import Endpoint, default_endpoint
from assistant.errors import DaemonDiedError, DaemonUnavailableError
from assistant.paths import HOME_VARIABLE, log_dir
from tests.support.daemons import ROOT, scripted_command, scripted_daemon
from tests.support.waiting import until

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals and Unix sockets")
ASKED = protocol.Complete(path="a.py", prefix="hello")
NOBODY = 65534


@pytest.fixture(name="home", autouse=True)
def fixture_home(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A home whose path is short enough for a socket; no daemon outlives it."""
    with tempfile.TemporaryDirectory(prefix="ea-", dir="/tmp") as folder:
        monkeypatch.setenv(HOME_VARIABLE, folder)
        yield Path(folder)
        end(default_endpoint())


def end(endpoint: Endpoint) -> None:
    """Kill the daemon of an endpoint, if there is one."""
    pid = endpoint.pid()
    if pid is not None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    assert launch.ended(endpoint, 20)


def connected(*options: str) -> Client:
    return Client.connect("test", command=scripted_command(*options))


def test_a_client_starts_a_daemon_and_the_next_one_finds_it() -> None:
    with connected() as first, connected() as second:
        assert first.welcome.pid == second.welcome.pid != os.getpid()
        assert isinstance(list(second.complete(ASKED))[-1], protocol.Done)


def test_of_clients_that_start_at_once_all_get_the_same_daemon() -> None:
    pids: list[int] = []

    def start() -> None:
        with connected() as client:
            pids.append(client.welcome.pid)

    threads = [threading.Thread(target=start) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert len(pids) == 5
    assert len(set(pids)) == 1


def test_of_two_daemons_that_race_one_wins() -> None:
    racers = [subprocess.Popen(scripted_command(), stderr=subprocess.PIPE) for _ in range(2)]
    try:
        until(lambda: any(racer.poll() is not None for racer in racers))
        (loser,) = [racer for racer in racers if racer.poll() is not None]
        (winner,) = [racer for racer in racers if racer is not loser]
        assert loser.stderr is not None
        assert b"already runs" in loser.stderr.read()
        with Client.connect("test", start=False) as client:
            assert client.welcome.pid == winner.pid
    finally:
        for racer in racers:
            racer.kill()
            racer.wait()
            assert racer.stderr is not None
            racer.stderr.close()


def test_what_a_killed_daemon_left_behind_is_no_obstacle() -> None:
    with connected() as first:
        end_pid = first.welcome.pid
    os.kill(end_pid, signal.SIGKILL)
    endpoint = default_endpoint()
    until(lambda: not endpoint.reachable())
    assert endpoint.socket is not None
    assert endpoint.socket.exists(), "nobody tidied up"
    with connected() as second:
        assert second.welcome.pid != end_pid


# httpx leaves the socket of a refused connection to the garbage collector.
@pytest.mark.filterwarnings("ignore:.*socket.socket.*:pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("kills", [3, pytest.param(50, marks=pytest.mark.slow)])
def test_kill_in_mid_stream_is_a_typed_error_or_a_retry_and_the_next_request_revives_it(kills: int) -> None:
    client = connected("--steps", "20", "--delay", "0.01")
    died = finished = 0
    for number in range(kills):
        try:
            for index, event in enumerate(client.complete(ASKED)):
                if index == number % 12:
                    os.kill(client.welcome.pid, signal.SIGKILL)
                last = event
        except DaemonDiedError:
            died += 1
        else:
            assert isinstance(last, protocol.Done)
            finished += 1
        assert isinstance(list(client.complete(ASKED))[-1], protocol.Done)
    assert died + finished == kills
    assert died > 0
    assert finished > 0, "killed before the first step: asked again"
    client.close()


def test_a_signal_lets_what_runs_finish_and_a_second_one_does_not() -> None:
    client = connected("--steps", "20", "--delay", "0.05")
    events = client.complete(ASKED)
    next(events)
    os.kill(client.welcome.pid, signal.SIGTERM)
    assert isinstance(list(events)[-1], protocol.Done)
    assert launch.ended(default_endpoint(), 20)
    events = client.complete(ASKED)
    next(events)
    os.kill(client.welcome.pid, signal.SIGINT)
    until(lambda: not default_endpoint().reachable())
    os.kill(client.welcome.pid, signal.SIGINT)
    assert launch.ended(default_endpoint(), 20)
    with pytest.raises(DaemonDiedError):
        list(events)


def test_while_one_drains_another_takes_over() -> None:
    with connected("--steps", "30", "--delay", "0.05") as old, connected() as other:
        events = old.complete(ASKED)
        next(events)
        os.kill(old.welcome.pid, signal.SIGTERM)
        until(lambda: not default_endpoint().reachable())
        before = other.welcome.pid
        assert isinstance(list(other.complete(ASKED))[-1], protocol.Done)
        assert other.welcome.pid != before
        assert isinstance(list(events)[-1], protocol.Done), "what ran was finished"


@pytest.fixture(name="completing")
def fixture_completing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> "Iterator[subprocess.Popen[str]]":
    """`complete` in the midst of a long answer by a daemon."""
    monkeypatch.setenv("EAGLE_ASSIST_MODEL__NAME", "scripted")
    (tmp_path / "a.py").write_text("def f():\n    ")
    with connected("--steps", "400", "--delay", "0.05"):
        # A process started in the background of a script ignores interrupts, and so would its children.
        program = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        program += "from assistant.cli import main; main()"
        command = [sys.executable, "-c", program, "complete", str(tmp_path / "a.py")]
        with subprocess.Popen(
            command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, bufsize=1
        ) as process:
            assert process.stdout is not None
            assert process.stdout.read(1)
            yield process
            process.kill()


def test_an_interrupt_keeps_what_was_written_and_withdraws_the_request(completing: "subprocess.Popen[str]") -> None:
    completing.send_signal(signal.SIGINT)
    _, errors = completing.communicate(timeout=30)
    assert completing.returncode == 130
    assert "end: cancelled" in errors
    assert "Traceback" not in errors
    until(lambda: "for complete: its reader went away" in (log_dir() / "daemon.log").read_text())


def test_a_daemon_that_dies_under_complete_is_one_sentence(completing: "subprocess.Popen[str]") -> None:
    pid = default_endpoint().pid()
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    _, errors = completing.communicate(timeout=30)
    assert completing.returncode == 1
    assert errors.startswith("eagle-assist: the daemon went away")
    assert errors.count("\n") == 1


def test_a_daemon_that_cannot_start_is_one_sentence() -> None:
    command = (sys.executable, "-c", "import sys; sys.exit('eagle-assist: the disk is on fire.')")
    with pytest.raises(DaemonUnavailableError, match=r"could not be started: the disk is on fire\."):
        Client.connect("test", command=command)


def test_a_daemon_is_safe_from_the_modules_of_the_folder_it_was_started_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "uvicorn.py").write_text("raise SystemExit('hijacked')")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    with connected() as client:
        assert client.status().running


def test_a_relative_home_is_the_same_folder_for_both(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(home)
    monkeypatch.setenv(HOME_VARIABLE, "inner")
    try:
        with connected():
            assert (home / "inner" / "run" / "daemon.sock").exists()
    finally:
        end(default_endpoint())


def test_a_daemon_that_hangs_can_be_stopped() -> None:
    with connected() as client:
        os.kill(client.welcome.pid, signal.SIGSTOP)
        command = [sys.executable, "-m", "eagle_assist", "daemon", "stop"]
        result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        assert result.stdout == "the daemon has ended.\n", result.stderr
        assert launch.ended(default_endpoint(), 1)


def test_a_home_with_a_long_path_works_too(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(HOME_VARIABLE, str(home / ("x" * 120)))
    try:
        with connected() as client:
            assert isinstance(list(client.complete(ASKED))[-1], protocol.Done)
    finally:
        end(default_endpoint())


@pytest.mark.skipif(os.geteuid() != 0, reason="only the superuser can become another user")
@pytest.mark.parametrize("opened", [False, True], ids=["closed folder", "folder opened by mistake"])
def test_another_account_cannot_connect(*, opened: bool) -> None:
    python = shutil.which("python3", path="/usr/bin:/usr/local/bin") or sys.executable
    if subprocess.run([python, "-c", ""], user=NOBODY, check=False, cwd="/").returncode != 0:
        pytest.skip("the other account cannot run Python here")
    script = (
        "import socket, sys\n"
        "connection = socket.socket(socket.AF_UNIX)\n"
        "connection.connect(sys.argv[1])\n"
        "connection.sendall(b'GET /v1/status HTTP/1.1\\r\\nhost: x\\r\\n\\r\\n')\n"
        "sys.stdout.write(connection.recv(1000).decode())\n"
    )
    with scripted_daemon() as daemon:
        assert daemon.endpoint.socket is not None
        if opened:
            daemon.endpoint.folder.parent.chmod(0o755)
            daemon.endpoint.folder.chmod(0o755)
            daemon.endpoint.socket.chmod(0o666)
        command = [python, "-c", script, str(daemon.endpoint.socket)]
        ours = subprocess.run(command, capture_output=True, text=True, check=False, cwd="/")
        theirs = subprocess.run(command, capture_output=True, text=True, check=False, cwd="/", user=NOBODY)
    assert ours.stdout.startswith("HTTP/1.1 200"), "the way itself works"
    assert not theirs.stdout
    assert ("PermissionError" in theirs.stderr) != opened


def test_the_logs_hold_no_code() -> None:
    with connected("--steps", "2") as client:
        marked = protocol.Complete(path="/MARKER/a.py", prefix="MARKER = 1", suffix="MARKER")
        list(client.complete(marked))
        client.open_document("MARKER", 1, "MARKER")
        client.shutdown()
    assert launch.ended(default_endpoint(), 20)
    files = [path for path in log_dir().iterdir() if path.is_file()]
    assert files
    assert not any("MARKER" in path.read_text() for path in files)
