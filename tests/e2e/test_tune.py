"""`eagle-assist tune` on a tiny model: what is measured, said and written."""

import os
from pathlib import Path

import pytest

from assistant import paths
from assistant.config import load
from tests.e2e.conftest import Run, document_of

CODE = '''"""Names and numbers."""

NAMES = {0}


def longest_{0}(names, least=3):
    """The longest of some names, which are at least so long."""
    found_{0} = [name for name in names if len(name) >= least + {0}]
    return max(found_{0}, key=len, default="nothing at all")
'''
FILE = "# Ours.\n[completion]\nmax_tokens = 64  # short ones\n"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "shop"
    folder.mkdir()
    for number in range(3):
        (folder / f"module_{number}.py").write_text(CODE.format(number))
    (folder / ".eagle-assist.toml").write_text(FILE)
    return folder


@pytest.fixture
def tune(run: Run, project: Path, tiny_model: Path) -> Run:
    small = ("--places", "2", "--max-tokens", "4", "--precision", "float32")
    return lambda *options: run("tune", str(project), *small, "--model", str(tiny_model), *options)


def test_what_was_measured_is_said_and_written(tune: Run, project: Path, tiny_head: Path) -> None:
    file = project / ".eagle-assist.toml"
    result = document_of(tune("--head", str(tiny_head), "--json"))
    labels = ["plain", "ngram", "eagle2@8", "eagle2@16", "hybrid@8", "adaptive", "adaptive, temperature 0.8"]
    assert [row["method"] for row in result["rows"]] == labels
    assert all(row["identical"] + row["ties_within_1e-4"] == 2 for row in result["rows"][:-1])
    assert result["trace"] == {"origin": "files", "places": 2, "files": 2}
    assert len(list((paths.cache_dir() / "costs").iterdir())) == 1
    advice = result["advice"]
    assert advice["own_settings"].keys() >= {"model.name", "model.precision"}
    assert any("may not set" in sentence for sentence in advice["reasons"])
    assert "calibrate" in advice["missing"][0]
    assert file.read_text() == FILE, "nothing is written unasked"

    written = tune("--methods", "plain,adaptive", "--write")
    assert written.exit_code == 0, written.stderr
    assert str(file) in written.stdout
    assert "eagle-assist train" in written.stdout
    assert file.read_text().startswith(FILE)
    settings = load(project / "any").settings
    assert settings.model.method in {"auto", "plain"}
    assert f'method = "{settings.model.method}"' in written.stdout
    assert settings.completion.max_tokens == 64


def test_mistakes_are_one_sentence(run: Run, tune: Run, project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "bench decode" in tune("--methods", "llama.cpp").stderr
    assert "is no folder" in run("tune", str(project / "module_0.py")).stderr
    with monkeypatch.context() as patched:
        patched.setattr("os.access", lambda _, mode: mode != os.W_OK)
        refused = tune("--write")
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert "make it writable" in refused.stderr
    for path in project.glob("*.py"):
        path.unlink()
    assert "no source file" in tune().stderr
    (project / ".eagle-assist.toml").write_text("[model]\nmethd = 1\n")
    assert "did you mean model.method" in tune().stderr
    assert [path.name for path in project.iterdir()] == [".eagle-assist.toml"], "nothing else was written"
