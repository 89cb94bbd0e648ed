"""Starting a daemon where none runs; of several that try at once, one starts it and all use it."""

import contextlib
import os
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path

from filelock import FileLock, Timeout

from assistant.endpoint import Endpoint
from assistant.errors import DaemonUnavailableError
from assistant.files import ensure_dir, storage_errors
from assistant.paths import HOME_VARIABLE, log_dir, state_dir

PATIENCE_S = 30.0
"""for a daemon to accept connections; its model loads later"""
_LOOK_S = 0.02


def default_command() -> tuple[str, ...]:
    """The program that is a daemon: this installation, safe from modules in the working directory (-P)."""
    return (sys.executable, "-P", "-m", "eagle_assist", "daemon", "run")


def ensure(endpoint: Endpoint, *, start: bool, command: Sequence[str] | None = None) -> None:
    """See to it that a daemon accepts connections; returns as soon as one does.

    Raises:
        DaemonUnavailableError: none runs, and it was not to be started, or ended at once, or took too long.
        StorageError: the folder of the socket is not the user's alone, or cannot be written to.
    """
    endpoint.secure()  # first of all: whoever owns the folder could listen there in the daemon's stead
    if endpoint.reachable():
        return
    if not start:
        raise DaemonUnavailableError("no daemon runs; `eagle-assist daemon start` starts one.")
    lock = FileLock(endpoint.starting_lock, mode=0o600)
    with contextlib.ExitStack() as held:
        with storage_errors(endpoint.starting_lock):
            try:
                held.enter_context(lock.acquire(timeout=PATIENCE_S))
            except Timeout as error:
                raise DaemonUnavailableError(
                    f"another program has been starting a daemon for {PATIENCE_S:.0f} s."
                ) from error
        if not endpoint.reachable():
            _start(endpoint, command or default_command())


def gone(endpoint: Endpoint, patience_s: float) -> bool:
    """Wait until no daemon accepts connections there; False where one still does."""
    deadline = time.monotonic() + patience_s
    while endpoint.reachable():
        if time.monotonic() > deadline:
            return False
        time.sleep(_LOOK_S)
    return True


def ended(endpoint: Endpoint, patience_s: float) -> bool:
    """Wait until the daemon's process has let go of its place; False where it still holds it."""
    try:
        FileLock(endpoint.running_lock, mode=0o600).acquire(timeout=patience_s).lock.release()
    except Timeout:
        return False
    return True


def _start(endpoint: Endpoint, command: Sequence[str]) -> None:
    errors = ensure_dir(log_dir()) / "daemon.err"
    child = _spawn(command, errors)
    # A daemon that ends later must not stay behind as a zombie of a long-lived editor.
    threading.Thread(target=child.wait, name="daemon-reaper", daemon=True).start()
    deadline = time.monotonic() + PATIENCE_S
    while not endpoint.reachable():
        if child.returncode is not None:
            raise DaemonUnavailableError(f"the daemon could not be started: {_last_line(errors)}")
        if time.monotonic() > deadline:
            raise DaemonUnavailableError(
                f"the daemon did not answer within {PATIENCE_S:.0f} s; see `eagle-assist logs`."
            )
        time.sleep(_LOOK_S)


def _spawn(command: Sequence[str], errors: Path) -> "subprocess.Popen[bytes]":
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    if environment.get(HOME_VARIABLE):  # a relative one would be another folder there
        environment[HOME_VARIABLE] = str(Path(environment[HOME_VARIABLE]).expanduser().absolute())
    flags = 0
    if sys.platform == "win32":
        flags = subprocess.DETACHED_PROCESS | subprocess.CREATE_NEW_PROCESS_GROUP
    with storage_errors(errors), errors.open("wb") as output:
        return subprocess.Popen(  # noqa: S603 - this program itself
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            cwd=ensure_dir(state_dir()),
            env=environment,
            start_new_session=True,
            creationflags=flags,
        )


def _last_line(errors: Path) -> str:
    with contextlib.suppress(OSError):
        lines = errors.read_text("utf-8", "replace").strip().splitlines()
        if lines:
            return lines[-1].removeprefix("eagle-assist: ")
    return "it ended at once; see `eagle-assist logs`."
