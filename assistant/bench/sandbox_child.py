"""The child that `sandbox.py` starts: it takes an order from stdin, gives up its powers and runs the program.

Run as a script by a bare interpreter, it can import nothing but the standard library.
"""

import contextlib
import ctypes
import json
import math
import os
import resource
import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

_NEW_USER, _NEW_NET = 0x10000000, 0x40000000
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_FORBIDDEN = (
    "ctypes.",
    "os.chmod",
    "os.chown",
    "os.exec",
    "os.fork",
    "os.kill",
    "os.link",
    "os.mkdir",
    "os.posix_spawn",
    "os.remove",
    "os.rename",
    "os.rmdir",
    "os.setxattr",
    "os.spawn",
    "os.symlink",
    "os.system",
    "os.truncate",
    "pty.spawn",
    "shutil.",
    "signal.pthread_kill",
    "socket.",
    "sqlite3.",
    "subprocess.",
    "tempfile.",
)


class ForbiddenError(BaseException):
    """What the program gets for reaching outside; no ordinary `except` swallows it."""


def main() -> None:
    """Read the order, run it, write the secret and how it ended; always leave through `os._exit`."""
    order = json.loads(sys.stdin.buffer.read())
    verdict, secret, source = int(sys.argv[1]), order.pop("secret"), order.pop("source")
    _isolate()
    _limit(**order)
    outcome = _run(source)
    os.write(verdict, f"{secret} {outcome}".encode())
    os._exit(0)


def _isolate() -> None:
    """A network of its own where the kernel allows it; the user nobody instead of root."""
    with contextlib.suppress(OSError, AttributeError):
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.unshare(_NEW_NET) != 0:
            libc.unshare(_NEW_USER | _NEW_NET)
    if os.geteuid() == 0 and _readable_by_all(Path(os.__file__)):
        # Root is exempt from the limit on processes. Modules are still to be read, so they must be readable.
        with contextlib.suppress(OSError):
            os.setgroups([])
            os.setgid(65534)
            os.setuid(65534)


def _readable_by_all(path: Path) -> bool:
    return all(folder.stat().st_mode & 0o005 == 0o005 for folder in path.resolve().parents)


def _limit(seconds: float, memory_mb: int, open_files: int) -> None:
    memory = memory_mb * 2**20
    whole = math.ceil(seconds)
    limits = {
        resource.RLIMIT_CPU: (whole, whole + 1),
        resource.RLIMIT_AS: (memory, memory),
        resource.RLIMIT_DATA: (memory, memory),
        resource.RLIMIT_FSIZE: (0, 0),
        resource.RLIMIT_CORE: (0, 0),
        resource.RLIMIT_NOFILE: (open_files, open_files),
        resource.RLIMIT_NPROC: (0, 0),
    }
    for kind, limit in limits.items():
        with contextlib.suppress(OSError, ValueError):  # not every system knows every limit
            resource.setrlimit(kind, limit)


def _guard(event: str, arguments: tuple[Any, ...]) -> None:
    if event.startswith(_FORBIDDEN):
        raise ForbiddenError(event)
    if event == "open":
        _, mode, flags = arguments
        if (mode and set(mode) & set("wax+")) or (flags or 0) & _WRITING:
            raise ForbiddenError(event)


def _run(source: str) -> str:
    module = types.ModuleType("candidate")  # pickling, dataclasses and enums look their module up by name
    sys.modules["candidate"] = module
    hook: Callable[[str, tuple[Any, ...]], None] = _guard
    sys.addaudithook(hook)
    try:
        exec(compile(source, "<candidate>", "exec"), module.__dict__)  # noqa: S102  # the purpose of this file
    except BaseException:  # noqa: BLE001  # SystemExit is a failure too
        return "failed"
    return "passed"


if __name__ == "__main__":
    main()
