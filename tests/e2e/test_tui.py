"""`eagle-assist tui` as people start it, and on a real daemon with a tiny random model."""

import asyncio
import os
import select
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from assistant.client import Client, launch
from assistant.endpoint import default_endpoint
from tests.e2e.conftest import Run
from tests.e2e.test_daemon import environment
from tests.support.screens import screen, until
from tests.support.scripted import completion, status
from tui import trace, wording
from tui.app import EagleApp
from tui.daemon import Daemon
from tui.state import Link
from tui.trace import Trace

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Unix sockets and terminals")


def test_a_trace_that_is_none_is_the_users_mistake_in_one_sentence(run: Run, tmp_path: Path) -> None:
    (tmp_path / "t.jsonl").write_text("hello\n", encoding="utf-8")
    for name, says in (("t.jsonl", "t.jsonl:1 is not the head of a trace"), ("none", "cannot be read")):
        result = run("tui", "--trace", str(tmp_path / name))
        assert result.exit_code == 2
        assert says in result.stderr
        assert result.stderr.count("\n") == 1


def test_without_a_terminal_it_says_so(run: Run) -> None:
    result = run("tui")
    assert result.exit_code == 2
    assert "needs a terminal" in result.stderr


def test_the_program_shows_a_trace_in_a_terminal_and_quits(tmp_path: Path) -> None:
    import pty

    trace.save(tmp_path / "t.jsonl", Trace(completion(), status()))
    main, terminal = pty.openpty()
    variables = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "80", "LINES": "24"}
    command = [sys.executable, "-P", "-m", "eagle_assist", "tui", "--trace", str(tmp_path / "t.jsonl")]
    with subprocess.Popen(command, stdin=terminal, stdout=terminal, stderr=terminal, env=variables) as child:
        os.close(terminal)
        try:
            assert b"3 guessed by the draft head" in _read(main, b"palette")
            os.write(main, b"q")
            _read(main, b"\x1b[?1049l")
            assert child.wait(30) == 0
        finally:
            if child.poll() is None:
                child.send_signal(signal.SIGKILL)
            os.close(main)


def _read(terminal: int, end: bytes) -> bytes:
    """What the program writes, up to and with `end`."""
    data = b""
    while end not in data:
        ready, _, _ = select.select([terminal], [], [], 60)
        assert ready, data[-2000:]
        try:
            data += os.read(terminal, 65536)
        except OSError:  # the program closed the terminal
            break
    return data


@pytest.fixture(name="served")
def fixture_served(tiny_model: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A home with a daemon that hosts the tiny model, in a folder whose path leaves room for a socket's."""
    with tempfile.TemporaryDirectory(prefix="ea-", dir="/tmp") as folder:
        for name, value in environment(Path(folder), tiny_model).items():
            monkeypatch.setenv(name, value)
        with Client.connect("fixture"):
            pass
        yield Path(folder)
        with Client.connect("fixture") as client:
            client.shutdown(drain=False)
        assert launch.ended(default_endpoint(), 20)


def test_a_real_daemon_is_watched_asked_stopped_and_started_again(served: Path) -> None:
    async def scenario() -> None:
        app = EagleApp(Daemon(), folder=served)
        async with app.run_test(size=(110, 40)) as pilot:
            await until(pilot, lambda: app.view.link is Link.LIVE)
            await pilot.press("f4", "ctrl+g")
            await until(pilot, lambda: "stop" in app.view.figures.outcomes or "length" in app.view.figures.outcomes)
            assert app.view.figures.completions == 1
            assert app.view.status is not None
            assert app.view.status.heads, "what can be chosen is told"
            await until(pilot, lambda: app.view.modelled_ms > 0)
            await pilot.press("escape", "m")
            await until(pilot, lambda: bool(app.view.plain_ms))
            assert "sampled, " in (said := wording.yardstick(app.view))
            assert "by cost model" in said
            await pilot.press("f5")
            await until(pilot, lambda: "scratch.py" in screen(app))
            app.action_stop_daemon()
            await until(pilot, lambda: app.view.link is Link.LOST)
            await pilot.press("g")
            await until(pilot, lambda: app.view.link is Link.LIVE)

    asyncio.run(scenario())
