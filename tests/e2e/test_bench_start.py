"""`eagle-assist bench start`: a daemon is started, unloaded, used and ended, and never one that somebody uses."""

import sys
import tempfile
from collections.abc import Iterator

import pytest

from assistant.bench.starting import SITUATIONS, Place, measure
from assistant.client import Client, launch
from assistant.endpoint import default_endpoint
from assistant.errors import DaemonError, DaemonRunningError
from assistant.paths import HOME_VARIABLE
from tests.support.daemons import scripted_command

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Unix sockets")


@pytest.fixture(autouse=True)
def short_home(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A home whose path is short enough for a socket."""
    with tempfile.TemporaryDirectory(prefix="ea-", dir="/tmp") as folder:
        monkeypatch.setenv(HOME_VARIABLE, folder)
        yield


def quietly(done: int, of: int) -> None:
    """Says nothing."""


def test_each_situation_is_timed_and_the_daemon_ended() -> None:
    result = measure(Place("a.py", "def first(self):\n    ", 21, 8), 1, quietly, scripted_command())
    assert [row["situation"] for row in result["rows"]] == list(SITUATIONS)
    for row in result["rows"]:
        times = [row[f"{name}_ms"]["median"] for name in ("answered", "ready", "first_text", "full_text")]
        assert 0 < times[0] <= times[1] <= times[2] <= times[3]
    assert not default_endpoint().reachable()


def test_a_daemon_that_runs_is_left_alone() -> None:
    place = Place("a.py", "x", 1, 8)
    with Client.connect("somebody", command=scripted_command("--steps", "0")) as client:
        with pytest.raises(DaemonRunningError, match="daemon stop"):
            measure(place, 1, quietly, scripted_command())
        client.shutdown(drain=False)
    assert launch.ended(default_endpoint(), 20)
    with pytest.raises(DaemonError, match="another place"):
        measure(place, 1, quietly, scripted_command("--steps", "0"))
    assert not default_endpoint().reachable()
