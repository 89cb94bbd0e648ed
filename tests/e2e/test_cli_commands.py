"""The other commands: models, heads, doctor; and what becomes of a fault of the program."""

import json
import sys
from pathlib import Path
from typing import Any

import click
import pytest

from assistant.cli import COMMANDS
from assistant.commands import checkup
from assistant.commands.opening import DEFAULT_DRAFTS, HEAD_METHODS, METHODS
from assistant.errors import TopologyError
from eagle_assist import __version__
from tests.e2e.conftest import Run


class TestProgram:
    def test_it_says_its_version(self, run: Run) -> None:
        assert run("--version").stdout == f"eagle-assist {__version__}\n"

    def test_help_names_every_command(self, run: Run) -> None:
        result = run("--help")
        assert result.exit_code == 0
        assert all(f"\n  {name} " in result.stdout for name in COMMANDS)

    @pytest.mark.parametrize("command", COMMANDS)
    def test_every_command_explains_itself(self, run: Run, command: str) -> None:
        result = run(command, "--help")
        assert result.exit_code == 0
        assert result.stdout.startswith(f"Usage: eagle-assist {command}")

    def test_an_unknown_command_is_one_line(self, run: Run) -> None:
        result = run("frobnicate")
        assert result.exit_code == 2
        assert "'frobnicate'" in result.stderr

    def test_the_methods_it_offers_are_the_engines(self) -> None:
        from assistant.engine import methods

        assert set(METHODS) == {"auto", *methods.METHODS}
        assert {"auto", "adaptive", *methods.HEAD_METHODS} == HEAD_METHODS

    def test_default_draft_models_have_names_in_the_registry(self) -> None:
        from models.catalog import CATALOG

        assert {*DEFAULT_DRAFTS, *DEFAULT_DRAFTS.values()} <= set(CATALOG)


class TestFaults:
    @pytest.fixture(autouse=True)
    def _broken_command(self, monkeypatch: pytest.MonkeyPatch) -> None:
        @click.command()
        def broken() -> None:
            user_code = "password = 'hunter2'"
            raise ValueError(user_code)

        @click.command()
        def uprooted() -> None:
            raise TopologyError("node 3 names 7 as its parent")

        module = sys.modules[__name__]
        monkeypatch.setattr(module, "broken", broken, raising=False)
        monkeypatch.setattr(module, "uprooted", uprooted, raising=False)
        monkeypatch.setitem(COMMANDS, "broken", f"{__name__}:broken")
        monkeypatch.setitem(COMMANDS, "uprooted", f"{__name__}:uprooted")

    def test_a_fault_is_one_line_and_a_log_without_the_users_code(self, run: Run, home: Path) -> None:
        result = run("broken")
        log = home / "state" / "faults.log"
        assert result.exit_code == 1
        assert result.stderr.count("\n") == 1
        assert "internal fault: ValueError at " in result.stderr
        assert str(log) in result.stderr
        written = log.read_text()
        assert "ValueError" in written
        assert "in broken" in written
        assert "hunter2" not in written + result.stderr

    def test_debug_shows_the_whole_traceback_instead(self, run: Run, home: Path) -> None:
        result = run("--debug", "broken")
        assert result.exit_code == 1
        assert "Traceback" in result.stderr
        assert "hunter2" in result.stderr
        assert not home.exists()

    def test_a_fault_of_ours_says_what_it_is(self, run: Run) -> None:
        assert "TopologyError" in run("uprooted").stderr
        assert "node 3 names 7 as its parent" in run("uprooted").stderr

    def test_a_log_that_cannot_be_written_is_no_second_fault(self, run: Run, home: Path) -> None:
        home.write_text("a file where the folder should be")
        result = run("broken")
        assert result.exit_code == 1
        assert "--debug" in result.stderr


class TestModels:
    def test_the_list_names_the_registrys_models(self, run: Run) -> None:
        shown = run("models", "list").stdout
        found = json.loads(run("models", "list", "--json").stdout)
        names = [entry["name"] for entry in found["models"]]
        assert {"qwen2.5-coder-0.5b", "qwen2.5-coder-1.5b", "smollm2-135m"} <= set(names)
        assert found["default"] == "qwen2.5-coder-0.5b"
        assert all(name in shown for name in names)
        assert set(found["models"][0]) == {"name", "title", "licence", "size", "state", "path", "sha256", "origin"}

    def test_a_models_path_is_printed_alone(self, run: Run, tiny_model: Path, home: Path) -> None:
        assert run("models", "path", str(tiny_model)).stdout == f"{tiny_model}\n"
        later = json.loads(run("models", "path", "smollm2-135m", "--json").stdout)
        assert later["exists"] is False
        assert later["path"].startswith(str(home))

    def test_files_are_verified_by_their_hash(self, run: Run, tiny_model: Path) -> None:
        found = json.loads(run("models", "verify", str(tiny_model), "--json").stdout)
        assert found["ok"] is True
        assert [Path(file["path"]).name for file in found["files"]] == ["model.safetensors"]
        assert len(found["files"][0]["sha256"]) == 64

    def test_a_file_with_another_hash_is_refused(self, run: Run, home: Path) -> None:
        path = home / "cache" / "models" / "smollm2-135m.gguf"
        path.parent.mkdir(parents=True)
        path.write_bytes(b"GGUF and then something else")
        result = run("models", "verify", "smollm2-135m", "--json")
        assert result.exit_code == 2
        assert str(path) in result.stderr
        assert json.loads(result.stdout)["ok"] is False
        assert "WRONG" in run("models", "verify", "smollm2-135m").stdout

    def test_fetching_what_is_here_answers_with_its_place(self, run: Run, tiny_model: Path) -> None:
        assert run("models", "fetch", str(tiny_model)).stdout == f"{tiny_model}\n"
        assert json.loads(run("models", "fetch", str(tiny_model), "--json").stdout)["path"] == str(tiny_model)

    @pytest.mark.parametrize("verb", ["fetch", "verify", "path"])
    def test_an_unknown_name_is_one_sentence_with_remedies(self, run: Run, verb: str) -> None:
        result = run("models", verb, "no such model")
        assert result.exit_code == 2
        assert "'no such model'" in result.stderr


def test_heads_are_listed_with_what_they_draft_for(run: Run) -> None:
    found = json.loads(run("heads", "list", "--json").stdout)["heads"]
    shown = run("heads", "list").stdout
    assert "qwen2.5-coder-0.5b" in {head["target"] for head in found}
    assert all(head["name"] in shown and Path(head["path"]).is_dir() and head["size"] > 0 for head in found)


class TestDoctor:
    def test_it_reports_what_is_here(self, run: Run, home: Path) -> None:
        result = run("doctor", "--json")
        assert result.exit_code == 0
        found = json.loads(result.stdout)
        assert found["version"] == __version__
        assert found["torch"]["device"] in {"cpu", "cuda", "mps"}
        assert isinstance(found["torch"]["int8_kernels"], bool)
        assert isinstance(found["torch"]["compiled_kernels"], bool)
        assert found["folders"]["cache"]["path"] == str(home / "cache")
        assert found["folders"]["cache"]["writable"] is True
        assert {model["name"] for model in found["models"]} >= {"qwen2.5-coder-0.5b"}
        assert all(head["header_sound"] for head in found["heads"])
        assert not home.exists(), "an examination leaves nothing behind"

    def test_what_is_wrong_comes_with_a_remedy_and_the_exit_code_stays_0(self, run: Run, home: Path) -> None:
        model = home / "cache" / "models" / "smollm2-135m.gguf"
        model.parent.mkdir(parents=True)
        model.write_bytes(b"GGUF")
        result = run("doctor", "--json")
        assert result.exit_code == 0
        findings = json.loads(result.stdout)["findings"]
        assert all(set(finding) == {"what", "remedy"} for finding in findings)
        assert any(str(model) in finding["what"] for finding in findings)
        assert f"{len(findings)} to look at:" in run("doctor").stdout

    def test_it_works_without_torch(self, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(sys.modules, "torch", None)
        result = run("doctor", "--json")
        assert result.exit_code == 0
        found = json.loads(result.stdout)
        assert found["torch"] is None
        assert any("torch cannot be imported" in finding["what"] for finding in found["findings"])

    def test_a_folder_that_cannot_be_written_is_found(self, run: Run, home: Path) -> None:
        home.write_text("a file where the folder should be")
        found = json.loads(run("doctor", "--json").stdout)
        assert found["folders"]["cache"]["writable"] is False
        assert any("cannot be written" in finding["what"] for finding in found["findings"])

    def test_a_probe_that_fails_is_a_finding(self, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
        def fail(_: Any) -> None:
            raise RuntimeError

        monkeypatch.setattr(checkup, "memory", fail)
        found = json.loads(run("doctor", "--json").stdout)
        assert found["memory"] is None
        assert any("examination of memory failed (RuntimeError)" in finding["what"] for finding in found["findings"])
