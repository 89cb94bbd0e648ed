"""Running generated programs: a child process with limits, which must prove that it came to its end.

Three layers, each of which holds where another is not available: resource limits of the kernel (processor time,
memory, file size, open files, processes); an audit hook, which cannot be taken back, against files, processes, sockets
and foreign code; a network namespace of its own and, for root, the user `nobody`. The parent kills the child's whole
session when its time is up. It guards against careless programs, not against an attacker with an exploit.

A program passes only when the child writes a secret that the program never gets: leaving early, with whatever exit
code, is a failure.
"""

import contextlib
import json
import os
import secrets
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

_CHILD = Path(__file__).with_name("sandbox_child.py")
_VERDICT_BYTES = 256


class Outcome(StrEnum):
    """How a program ended."""

    PASSED = "passed"
    FAILED = "failed"
    """it raised"""
    TIMEOUT = "timeout"
    """it was stopped when its time was up"""
    CRASHED = "crashed"
    """it ended without a verdict: killed by a limit, or it left by itself"""


@dataclass(frozen=True, slots=True)
class Limits:
    """What one program may use."""

    seconds: float = 5.0
    """of wall-clock time; processor time is limited to the same, rounded up"""
    memory_mb: int = 1024
    """of address space"""
    open_files: int = 32


def run_program(source: str, limits: Limits | None = None) -> Outcome:
    """Run Python source in a child process and say how it ended. Nothing of it remains."""
    limits = limits or Limits()
    secret = secrets.token_hex(16)
    order = {
        "source": source,
        "secret": secret,
        "seconds": limits.seconds,
        "memory_mb": limits.memory_mb,
        "open_files": limits.open_files,
    }
    reader, writer = os.pipe()
    os.set_blocking(reader, False)  # a descendant may outlive the child with the pipe open
    try:
        with tempfile.TemporaryDirectory(prefix="eagle-assist-", ignore_cleanup_errors=True) as folder:
            timed_out = _run_child(json.dumps(order).encode(), writer, folder, limits.seconds)
        verdict = _read(reader)
    finally:
        os.close(reader)
        os.close(writer)
    if verdict == f"{secret} passed":
        return Outcome.PASSED
    if timed_out:
        return Outcome.TIMEOUT
    return Outcome.FAILED if verdict == f"{secret} failed" else Outcome.CRASHED


def run_programs(sources: Sequence[str], limits: Limits | None = None) -> list[Outcome]:
    """Run many programs, as many at a time as there are processors."""
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return list(pool.map(lambda source: run_program(source, limits), sources))


def _run_child(order: bytes, writer: int, folder: str, seconds: float) -> bool:
    """Run the child to its end or its time's; True when it was stopped."""
    # -I: neither the environment nor the working directory is on the path; -S: nothing but the standard library is.
    command = [sys.executable, "-I", "-S", "-B", str(_CHILD), str(writer)]
    environment = {"PATH": os.defpath, "HOME": folder, "LC_ALL": "C.UTF-8"}
    with subprocess.Popen(  # noqa: S603  # our own interpreter and file
        command,
        cwd=folder,
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        pass_fds=(writer,),
        start_new_session=True,
    ) as child:
        try:
            child.communicate(order, timeout=seconds + 1.0)  # the interpreter's own start is not the program's fault
        except subprocess.TimeoutExpired:
            return True
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)
    return child.returncode == -signal.SIGXCPU


def _read(reader: int) -> str:
    try:
        return os.read(reader, _VERDICT_BYTES).decode("ascii", errors="replace")
    except BlockingIOError:
        return ""
