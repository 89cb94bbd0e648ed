"""Where the daemon is found, and what keeps others away from it.

On POSIX it is a Unix socket in a folder that is its user's alone. Elsewhere it is a port of the loopback interface, and
a token that only the user can read must come with every request, so that neither another account nor a page in a
browser can use it. Both sides, the daemon and its clients, compute the same place from the same environment.
"""

import hashlib
import os
import socket
import stat
import sys
from dataclasses import dataclass
from pathlib import Path

import msgspec
from filelock import FileLock, Timeout

from assistant.errors import StorageError
from assistant.files import ensure_dir, storage_errors, write_atomic
from assistant.paths import HOME_VARIABLE, runtime_dir

SOCKET_LIMIT = 100
"""bytes of a Unix socket's path that every system takes (macOS: 104 with the final NUL)"""
LOOPBACK = "127.0.0.1"
_CONNECT_S = 2.0


class Port(msgspec.Struct, frozen=True):
    """What the file of a loopback daemon holds."""

    port: int
    token: str


@dataclass(frozen=True, slots=True)
class Endpoint:
    """The place of one user's daemon."""

    folder: Path
    """of the locks, and of the socket where its path is short enough"""
    socket: Path | None
    """None: by loopback"""

    @property
    def port_file(self) -> Path:
        """Where a loopback daemon writes its port and its token."""
        return self.folder / "daemon.json"

    @property
    def running_lock(self) -> Path:
        """Held by a daemon for as long as it lives."""
        return self.folder / "daemon.lock"

    @property
    def starting_lock(self) -> Path:
        """Held by whoever starts a daemon, until it answers."""
        return self.folder / "start.lock"

    @property
    def pid_file(self) -> Path:
        """Where a daemon writes its process id, for the case that it hangs."""
        return self.folder / "daemon.pid"

    def pid(self) -> int | None:
        """The id of the daemon that was started last; None where none is written down."""
        try:
            return int(self.pid_file.read_text("ascii"))
        except (OSError, ValueError):
            return None

    def held(self) -> bool:
        """Whether a daemon lives, be it that it serves, ends or hangs."""
        if not self.running_lock.exists():
            return False
        lock = FileLock(self.running_lock, mode=0o600)
        try:
            lock.acquire(timeout=0)
        except Timeout:
            return True
        lock.release()
        return False

    def __str__(self) -> str:
        return str(self.socket or self.port_file)

    def secure(self) -> None:
        """Create the folders; see that they are the user's own and closed to everyone else.

        Raises:
            StorageError: a folder is a link, belongs to someone else, or cannot be made.
        """
        for folder in {self.folder, self.socket.parent if self.socket else self.folder}:
            _secure(folder)

    def port(self) -> Port | None:
        """A loopback daemon's port and token; None where none is written down."""
        try:
            return msgspec.json.decode(self.port_file.read_bytes(), type=Port)
        except (OSError, msgspec.DecodeError):
            return None

    def write_port(self, port: Port) -> None:
        """Write them for the clients, readable by this user alone (the folder is)."""
        write_atomic(self.port_file, msgspec.json.encode(port))
        self.port_file.chmod(0o600)

    def reachable(self) -> bool:
        """Whether something accepts connections there."""
        try:
            self._connect()
        except OSError:
            return False
        return True

    def _connect(self) -> None:
        if self.socket is not None:
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
                connection.settimeout(_CONNECT_S)
                connection.connect(str(self.socket))
            return
        port = self.port()
        if port is None:
            raise FileNotFoundError(self.port_file)
        socket.create_connection((LOOPBACK, port.port), _CONNECT_S).close()


def default_endpoint() -> Endpoint:
    """The place of this user's daemon."""
    folder = runtime_dir()
    if sys.platform == "win32":
        return Endpoint(folder, None)
    return Endpoint(folder, socket_path(folder))


def socket_path(folder: Path) -> Path:
    """The socket of a runtime folder: inside it, or under /tmp where that path would be too long for a socket."""
    path = folder / "daemon.sock"
    if len(os.fsencode(path)) <= SOCKET_LIMIT:
        return path
    # Not the TMPDIR of an environment: an editor's may differ from a terminal's.
    name = hashlib.sha256(os.fsencode(folder)).hexdigest()[:16]
    return Path("/tmp") / f"eagle-assist-{os.getuid()}" / f"{name}.sock"  # noqa: S108 - its folder is checked


def _secure(folder: Path) -> None:
    ensure_dir(folder.parent)
    with storage_errors(folder):
        folder.mkdir(mode=0o700, exist_ok=True)
        found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode):
        raise StorageError(f"{folder} is a link or no folder; remove it, or set {HOME_VARIABLE} to a folder of yours.")
    if sys.platform == "win32":
        return
    # Who owns the folder above could put another one in this one's place.
    if found.st_uid != os.geteuid() or folder.parent.stat().st_uid not in {os.geteuid(), 0}:
        raise StorageError(
            f"{folder} (or the folder above it) belongs to another user; set {HOME_VARIABLE} to a folder of yours."
        )
    if found.st_mode & 0o077:
        with storage_errors(folder):
            folder.chmod(0o700)
