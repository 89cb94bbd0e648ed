"""Where the daemon is found: short paths for sockets, folders that are the user's alone."""

import os
import stat
import sys
from pathlib import Path

import pytest
from filelock import FileLock

from assistant.endpoint import SOCKET_LIMIT, Endpoint, Port, default_endpoint, socket_path
from assistant.errors import StorageError
from assistant.paths import HOME_VARIABLE

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Unix sockets")


def test_everything_lies_under_the_programs_own_home(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(HOME_VARIABLE, "/short")
    found = default_endpoint()
    assert found.socket == Path("/short/run/daemon.sock")
    assert found.running_lock.parent == found.starting_lock.parent == Path("/short/run")


def test_a_long_path_gets_a_short_socket_of_its_own(tmp_path: Path) -> None:
    long, other = tmp_path / ("x" * 90) / "run", tmp_path / ("y" * 90) / "run"
    found = socket_path(long)
    assert len(os.fsencode(found)) <= SOCKET_LIMIT
    assert found == socket_path(long)
    assert found != socket_path(other)
    assert found.parent.name == f"eagle-assist-{os.getuid()}"


def test_the_folders_are_closed_to_everyone_else(tmp_path: Path) -> None:
    folder = tmp_path / "a" / "run"
    Endpoint(folder, folder / "s").secure()
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    folder.chmod(0o755)
    Endpoint(folder, folder / "s").secure()
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_a_link_in_the_folders_place_is_refused(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "run").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(StorageError, match="is a link or no folder"):
        Endpoint(tmp_path / "run", tmp_path / "run" / "s").secure()


@pytest.mark.skipif(os.geteuid() != 0, reason="only the superuser can give a folder to somebody else")
def test_a_folder_of_somebody_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir(mode=0o700)
    os.chown(tmp_path / "run", 65534, 65534)
    with pytest.raises(StorageError, match="belongs to another user"):
        Endpoint(tmp_path / "run", tmp_path / "run" / "s").secure()
    (tmp_path / "run" / "inner").mkdir(mode=0o700)
    with pytest.raises(StorageError, match="belongs to another user"):
        Endpoint(tmp_path / "run" / "inner", tmp_path / "run" / "inner" / "s").secure()


def test_a_ports_file_is_its_owners_alone(tmp_path: Path) -> None:
    endpoint = Endpoint(tmp_path, None)
    assert endpoint.port() is None
    assert not endpoint.reachable()
    endpoint.write_port(Port(1, "secret"))
    assert endpoint.port() == Port(1, "secret")
    assert stat.S_IMODE(endpoint.port_file.stat().st_mode) == 0o600
    endpoint.port_file.write_text("{")
    assert endpoint.port() is None


def test_a_place_is_held_only_while_somebody_holds_it(tmp_path: Path) -> None:
    endpoint = Endpoint(tmp_path, None)
    assert not endpoint.held()
    with FileLock(endpoint.running_lock):
        assert endpoint.held()
    assert not endpoint.held()
