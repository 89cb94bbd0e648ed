"""The command line as tests run it: a tiny random model, a folder for the program's files, a runner in this process."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from assistant.paths import HOME_VARIABLE

Run = Callable[..., Result]
CODE = "import os\n\n\ndef first(values):\n    return values[0]\n\n\ndef last(values):\n    \n\n\nprint(first, last)\n"


def document_of(result: Result) -> dict[str, Any]:
    """The one JSON document on standard output."""
    assert result.exit_code == 0, result.stderr
    found = json.loads(result.stdout)
    assert isinstance(found, dict)
    return found


@pytest.fixture(scope="module")
def tiny_model(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A model folder that loads in milliseconds; one thread serves it quicker than several that wait."""
    import torch

    from tests.support.tiny_folder import write_model

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield write_model(tmp_path_factory.mktemp("models") / "tiny")
    torch.set_num_threads(threads)


@pytest.fixture(scope="session")
def tiny_head(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A draft head that fits `tiny_model`."""
    from tests.support.tiny_folder import write_head

    return write_head(tmp_path_factory.mktemp("heads") / "tiny-head")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder for everything that the program keeps."""
    folder = tmp_path / "home"
    monkeypatch.setenv(HOME_VARIABLE, str(folder))
    return folder


@pytest.fixture
def run(home: Path) -> Run:
    """Run the command line in this process."""
    del home

    def run(*arguments: str, stdin: bytes = b"") -> Result:
        from assistant.cli import main

        result = CliRunner().invoke(main, [str(argument) for argument in arguments], input=stdin)
        if result.exit_code == 2:
            assert result.stderr.startswith("eagle-assist: ")
            assert result.stderr.count("\n") == 1, "a user's mistake is one line"
        return result

    return run


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A short file of Python."""
    path = tmp_path / "code.py"
    path.write_text(CODE)
    return path


@pytest.fixture
def complete(run: Run, tiny_model: Path) -> Run:
    """Complete at a place with the tiny model."""

    def complete(place: object, *options: str, stdin: bytes = b"") -> Result:
        standard = ("--model", str(tiny_model), "--precision", "float32", "--max-tokens", "12")
        return run("complete", str(place), *standard, *options, stdin=stdin)

    return complete
