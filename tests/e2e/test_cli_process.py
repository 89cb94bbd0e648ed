"""The command line as a process of its own: signals, pipes, full disks, encodings."""

import json
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from assistant.paths import HOME_VARIABLE
from tests.support.tiny_folder import write_model

ROOT = Path(__file__).parents[2]
# A process started in the background of a script ignores interrupts, and so would its children.
PROGRAM = (
    "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\nfrom assistant.cli import main; main()"
)
ENDLESS = ("--precision", "float32", "--method", "plain", "--max-tokens", "30000", "--temperature", "3")


@pytest.fixture(name="model", scope="module")
def fixture_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model with room for a completion that is still going on when the test interrupts it."""
    folder = write_model(tmp_path_factory.mktemp("models") / "endless", context=32768)
    _never_ends(folder)
    return folder


def _never_ends(folder: Path) -> None:
    """Make every special token as unlikely as can be."""
    from safetensors.torch import load_file, save_file

    from tests.support.tiny_tokenizer import SPECIAL, tiny_tokenizer

    weights = load_file(folder / "model.safetensors")
    ordinary = tiny_tokenizer().vocab_size - len(SPECIAL)
    # The norm's first channel is always large and positive; only special tokens dislike it.
    weights["model.norm.weight"][:] = 1
    weights["model.embed_tokens.weight"][:, 0] = 50
    weights["lm_head.weight"][:, 0] = 0
    weights["lm_head.weight"][ordinary:, 0] = -100
    save_file(weights, folder / "model.safetensors")


@pytest.fixture(name="start")
def fixture_start(tmp_path: Path) -> Iterator[Any]:
    """Start the program; what is still running at the end of the test is killed."""
    started: list[subprocess.Popen[bytes]] = []

    def start(*arguments: object, environment: dict[str, str] | None = None, **options: Any) -> subprocess.Popen[bytes]:
        known = {**os.environ, "OMP_NUM_THREADS": "1", HOME_VARIABLE: str(tmp_path / "home"), **(environment or {})}
        command = [sys.executable, "-c", PROGRAM, *map(str, arguments)]
        streams = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options}
        started.append(subprocess.Popen(command, cwd=ROOT, env=known, **streams))
        return started[-1]

    yield start
    for process in started:
        if process.poll() is None:
            process.kill()
        process.communicate()


@pytest.fixture(name="source")
def fixture_source(tmp_path: Path) -> Path:
    (tmp_path / "a.py").write_text("def f():\n    ret")
    return tmp_path / "a.py"


def test_an_interrupt_in_mid_stream_keeps_what_was_written(start: Any, model: Path, source: Path) -> None:
    process = start("complete", source, "--model", model, *ENDLESS)
    first = process.stdout.read(1)
    process.send_signal(signal.SIGINT)
    rest, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert first
    assert b"Traceback" not in errors
    assert b"end: cancelled" in errors
    written = len((first + rest).decode("utf-8", "replace"))
    assert written < 30000


def test_an_interrupt_with_json_still_prints_the_document(start: Any, model: Path, source: Path) -> None:
    process = start("complete", source, "--model", model, *ENDLESS, "--json", "--tree")
    line = process.stderr.readline()
    while line and b"step 3" not in line:
        line = process.stderr.readline()
    process.send_signal(signal.SIGINT)
    output, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    found = json.loads(output)
    assert found["finish_reason"] == "cancelled"
    assert len(found["tokens"]) >= 3
    assert b"Traceback" not in errors


def test_a_reader_that_goes_away_ends_it_quietly(start: Any, model: Path, source: Path) -> None:
    process = start("complete", source, "--model", model, *ENDLESS)
    process.stdout.read(1)
    process.stdout.close()
    errors = process.stderr.read()
    assert process.wait(timeout=60) == 141
    assert errors == b""


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="the system has no /dev/full")
def test_a_full_disk_behind_stdout_is_one_sentence(start: Any, model: Path, source: Path) -> None:
    with Path("/dev/full").open("wb") as full:
        options = ("--precision", "float32", "--max-tokens", "4")
        process = start("complete", source, "--model", model, *options, stdout=full)
        _, errors = process.communicate(timeout=60)
    assert process.returncode == 2
    assert errors.decode() == "eagle-assist: standard output cannot be written: No space left on device.\n"


def test_a_disk_that_fills_up_only_costs_time(start: Any, model: Path, source: Path, tmp_path: Path) -> None:
    """A limit on the size of files stands for a full disk: a write fails in the middle, whoever the user is."""
    process = start(
        "complete",
        source,
        "--model",
        model,
        *("--precision", "bfloat16", "--max-tokens", "4", "--quiet"),
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000)),
    )
    output, errors = process.communicate(timeout=60)
    assert process.returncode == 0, errors
    assert output
    assert errors.decode().startswith("eagle-assist: ")
    assert str(tmp_path / "home") in errors.decode()
    assert errors.count(b"\n") == 1
    assert not list((tmp_path / "home").rglob("*.safetensors")), "no part of a file stays behind"


@pytest.mark.parametrize("encoding", ["ascii", "cp1252"])
def test_no_encoding_of_the_terminal_can_break_the_output(start: Any, model: Path, source: Path, encoding: str) -> None:
    options = ("--precision", "float32", "--max-tokens", "60", "--temperature", "3", "--tree")
    process = start("complete", source, "--model", model, *options, environment={"PYTHONIOENCODING": encoding})
    output, errors = process.communicate(timeout=60)
    assert process.returncode == 0, errors
    output.decode(encoding)
