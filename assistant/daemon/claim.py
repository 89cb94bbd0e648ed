"""A daemon's place: claimed by one process at a time, and published while it serves.

Whoever holds the lock may remove what a crashed daemon left behind; the system frees the lock of a process that dies.
"""

import contextlib
import os
import secrets
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager

from filelock import FileLock, Timeout

from assistant.daemon.access import Access
from assistant.endpoint import LOOPBACK, Endpoint, Port
from assistant.errors import DaemonRunningError
from assistant.files import storage_errors, write_atomic

_LINGER_S = 2.0
"""for the last steps of a daemon that has drained"""


@contextmanager
def only_one(endpoint: Endpoint, patience_s: float) -> Iterator[None]:
    """Hold the lock of the running daemon; wait `patience_s` for one that is ending.

    Raises:
        DaemonRunningError: another daemon serves there, or holds the place and does not let go.
    """
    lock = FileLock(endpoint.running_lock, mode=0o600)
    deadline = time.monotonic() + patience_s + _LINGER_S
    while True:
        with storage_errors(endpoint.running_lock), contextlib.suppress(Timeout):
            lock.acquire(timeout=0.05)
            break
        if endpoint.reachable():
            raise DaemonRunningError(f"a daemon already runs at {endpoint}; see `eagle-assist daemon status`.")
        if time.monotonic() > deadline:
            raise DaemonRunningError(f"a daemon holds {endpoint.running_lock} but does not answer; end that process.")
    try:
        yield
    finally:
        lock.release()


@contextmanager
def listening(endpoint: Endpoint) -> Iterator[tuple[socket.socket, Access]]:
    """A bound socket and who may use it; only for the holder of the lock.

    Raises:
        StorageError: the folder cannot be written to.
    """
    write_atomic(endpoint.pid_file, str(os.getpid()).encode())
    with storage_errors(endpoint.socket or endpoint.port_file):
        unpublish(endpoint)
        if endpoint.socket is None:
            token = secrets.token_urlsafe(32)
            listener = socket.create_server((LOOPBACK, 0))
            endpoint.write_port(Port(listener.getsockname()[1], token))
        else:
            token = None
            listener = _unix_socket(str(endpoint.socket))
    try:
        yield listener, Access(token)
    finally:
        listener.close()
        unpublish(endpoint)
        endpoint.pid_file.unlink(missing_ok=True)


def _unix_socket(path: str) -> socket.socket:
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    before = os.umask(0o177)
    try:
        listener.bind(path)
    finally:
        os.umask(before)
    return listener


def published(endpoint: Endpoint) -> bool:
    """Whether the socket, or the file with the port, is where clients look for it."""
    return (endpoint.socket or endpoint.port_file).exists()


def unpublish(endpoint: Endpoint) -> None:
    """Let no client find the daemon any more; those that are connected stay."""
    with contextlib.suppress(OSError):
        (endpoint.socket or endpoint.port_file).unlink()
