"""The sandbox stops what generated code may do by accident or by laziness, and nothing but a full run passes."""

import signal
from pathlib import Path

import pytest

from assistant.bench.sandbox import Limits, Outcome, run_program, run_programs

QUICK = Limits(seconds=2.0, memory_mb=512)


def test_a_right_program_passes() -> None:
    assert run_program("import math, typing\nassert math.floor(2.5) == 2\n") is Outcome.PASSED


def test_a_false_assertion_fails() -> None:
    assert run_program("assert 1 + 1 == 3\n") is Outcome.FAILED


def test_source_that_does_not_compile_fails() -> None:
    assert run_program("def broken(:\n") is Outcome.FAILED


@pytest.mark.parametrize(
    "leaving",
    [
        "import os; os._exit(0)",
        "import sys; sys.exit(0)",
        "raise SystemExit(0)",
        "quit = exit = None; import sys; sys.exit()",
        "import os; os.abort()",
        "import threading; threading.Timer(0, lambda: None); import os; os._exit(0)",
    ],
)
def test_leaving_before_the_check_never_passes(leaving: str) -> None:
    assert run_program(f"{leaving}\nassert True\n") is not Outcome.PASSED


def test_a_guessed_verdict_does_not_pass() -> None:
    guess = "import os\nfor fd in range(3, 40):\n  try: os.write(fd, b'passed')\n  except OSError: pass\nos._exit(0)\n"
    assert run_program(guess) is Outcome.CRASHED


def test_an_endless_loop_is_stopped() -> None:
    assert run_program("while True: pass", Limits(seconds=1.0)) is Outcome.TIMEOUT


def test_endless_waiting_is_stopped() -> None:
    assert run_program("import time; time.sleep(600)", Limits(seconds=0.5)) is Outcome.TIMEOUT


def test_taking_all_memory_fails() -> None:
    assert run_program("x = bytearray(8 * 2**30)", QUICK) is not Outcome.PASSED


def test_an_endless_recursion_does_not_pass() -> None:
    assert run_program("def f(n): return f(n + 1)\nf(0)\n", QUICK) is not Outcome.PASSED


def test_a_flood_of_output_neither_blocks_nor_passes_as_a_verdict() -> None:
    assert run_program("for _ in range(100000): print('passed' * 10)\n", QUICK) is Outcome.PASSED


@pytest.mark.parametrize(
    "reaching",
    [
        "import os; os.fork()",
        "import subprocess, sys; subprocess.run([sys.executable, '-c', ''])",
        "import os; os.system('true')",
        "import os, signal; os.kill(os.getppid(), signal.SIGTERM)",
        "import socket; socket.socket()",
        "import ctypes; ctypes.CDLL(None)",
        "import shutil; shutil.rmtree('/nowhere')",
    ],
)
def test_reaching_outside_fails(reaching: str) -> None:
    assert run_program(reaching, QUICK) is not Outcome.PASSED


@pytest.mark.parametrize("how", ["open(PATH, 'w')", "open(PATH, 'x')", "__import__('os').open(PATH, 65, 438)"])
def test_files_are_not_written(tmp_path: Path, how: str) -> None:
    target = tmp_path / "written"
    assert run_program(how.replace("PATH", repr(str(target))), QUICK) is not Outcome.PASSED
    assert not target.exists()


def test_existing_files_are_not_removed(tmp_path: Path) -> None:
    target = tmp_path / "precious"
    target.write_text("kept")
    assert run_program(f"import os; os.remove({str(target)!r})", QUICK) is not Outcome.PASSED
    assert target.read_text() == "kept"


def test_environment_and_working_directory_are_not_the_callers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET_OF_THE_USER", "1")
    source = f"import os\nassert 'SECRET_OF_THE_USER' not in os.environ\nassert os.getcwd() != {str(Path.cwd())!r}\n"
    assert run_program(source) is Outcome.PASSED


def test_outcomes_keep_the_order_of_their_programs() -> None:
    assert run_programs(["pass", "assert False", "pass"]) == [Outcome.PASSED, Outcome.FAILED, Outcome.PASSED]


def test_a_signal_to_itself_is_no_pass() -> None:
    source = f"import signal; signal.raise_signal({int(signal.SIGTERM)})"
    assert run_program(source, QUICK) is Outcome.CRASHED
