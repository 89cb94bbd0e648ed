"""The command line as tests run it: a tiny random model, a folder for the program's files, a runner in this process."""

from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from assistant.paths import HOME_VARIABLE

Run = Callable[..., Result]


@pytest.fixture(scope="session")
def tiny_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model folder that loads in milliseconds."""
    from tests.support.tiny_folder import write_model

    return write_model(tmp_path_factory.mktemp("models") / "tiny")


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
