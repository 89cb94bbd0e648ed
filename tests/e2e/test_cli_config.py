"""`eagle-assist config` and the configuration as `complete` uses it."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
import tomli

from assistant.config.example import example
from assistant.config.keys import KEYS, dotted
from tests.e2e.conftest import Run, document_of


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a project's file, and the working directory."""
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / ".eagle-assist.toml").write_text("[tree]\nnodes = 3\n[languages.markdown]\nenabled = false\n")
    monkeypatch.chdir(folder)
    return folder


class TestShow:
    def test_every_value_and_where_it_came_from(self, run: Run, project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("EAGLE_ASSIST_TREE__WIDTH", "2")
        found = document_of(run("config", "show", "--json"))
        assert set(found["settings"]) == {*map(dotted, KEYS), "languages.markdown.enabled"}
        assert found["files"]["project"]["path"] == str(project / ".eagle-assist.toml")
        assert found["files"]["user"]["exists"] is False
        place = str(project / ".eagle-assist.toml")
        assert found["settings"]["tree.nodes"] == {"value": 3, "source": "project", "place": place, "line": 2}
        assert found["settings"]["tree.width"]["place"] == "EAGLE_ASSIST_TREE__WIDTH"
        assert found["settings"]["tree.depth"]["source"] == "default"

    def test_for_a_file_what_is_set_for_its_language_is_in_place(self, run: Run, project: Path) -> None:
        (project / "a.md").touch()
        found = document_of(run("config", "show", "a.md", "--json"))["settings"]
        assert found["editor.enabled"]["value"] is False
        assert found["editor.enabled"]["line"] == 4
        assert document_of(run("config", "show", "a.py", "--json"))["settings"]["editor.enabled"]["value"] is True

    def test_the_text_is_toml_with_its_sources_as_comments(self, run: Run, project: Path) -> None:
        result = run("config", "show")
        bounds = {"nodes": 3, "depth": 0, "width": 0, "threshold": 0.0, "calibrated": True}
        assert tomli.loads(result.stdout)["tree"] == bounds
        assert f"# {project}/.eagle-assist.toml:2\n" in result.stdout

    def test_a_folder_that_is_not_there_is_one_sentence(self, run: Run, project: Path) -> None:
        del project
        assert "there is no folder nowhere" in run("config", "show", "nowhere/a.py").stderr


class TestCheck:
    def test_nothing_wrong(self, run: Run, project: Path) -> None:
        result = run("config", "check", str(project))
        assert result.exit_code == 0
        assert result.stdout.endswith("no problems.\n")
        assert document_of(run("config", "check", "--json"))["problems"] == []

    def test_every_problem_has_its_line_and_the_exit_code_is_2(self, run: Run, project: Path, home: Path) -> None:
        (home / "config").mkdir(parents=True)
        (home / "config/config.toml").write_text("[tree]\nnode = 1\n")
        (project / ".eagle-assist.toml").write_text("[tree]\n\nnodes = 999\n[daemon]\nlog_level = 'debug'\n")
        result = run("config", "check")
        assert result.exit_code == 2
        assert [line.partition(": ")[0] for line in result.stdout.splitlines()] == [
            f"{home}/config/config.toml:2:1",
            f"{project}/.eagle-assist.toml:3:1",
            f"{project}/.eagle-assist.toml:5:1",
        ]
        assert "3 problems" in result.stderr
        as_json = run("config", "check", "--json")
        assert as_json.exit_code == 2
        assert [problem["line"] for problem in json.loads(as_json.stdout)["problems"]] == [2, 3, 5]

    @pytest.mark.parametrize(
        ("content", "message"),
        [
            (b"#" * 10_000_000, "is larger than"),
            (b"x = " + b"[" * 100_000, "nested too deeply"),
            (b"x = " + b"{a=" * 50_000, "nested too deeply"),
            (b".".join([b"a"] * 100_000) + b"=1", "nested too deeply"),
            (b"a = '\0'\n", "no valid TOML"),
            (b"\xff\xfe[\0t\0", "is no UTF-8"),
            (b"a = 1\rb = 2\r", "no valid TOML"),
            (b'"' * 200_000, "no valid TOML"),
            (b"tree.nodes = 1\n" * 2, "no valid TOML"),
        ],
        ids=["huge", "arrays", "tables", "dots", "nul", "utf-16", "lone-cr", "quotes", "twice"],
    )
    def test_hostile_files_are_one_sentence_everywhere(
        self, run: Run, project: Path, content: bytes, message: str
    ) -> None:
        (project / ".eagle-assist.toml").write_bytes(content)
        (project / "a.py").write_text("x = 1\n")
        for arguments in (("config", "check"), ("config", "show"), ("complete", "a.py", "--no-daemon")):
            result = run(*arguments)
            assert result.exit_code == 2
            assert message in result.stdout + result.stderr
            assert len(result.stderr) < 1000

    @pytest.mark.parametrize("kind", ["loop", "folder", "pipe", "dangling"])
    def test_things_that_are_no_files(self, run: Run, project: Path, kind: str) -> None:
        path = project / ".eagle-assist.toml"
        path.unlink()
        make: dict[str, Callable[[], None]] = {
            "loop": lambda: path.symlink_to(path),
            "folder": path.mkdir,
            "pipe": lambda: os.mkfifo(path),
            "dangling": lambda: path.symlink_to(project / "gone"),
        }
        make[kind]()
        result = run("config", "check")
        assert result.exit_code == 2
        assert str(path) in result.stdout


def test_the_example_is_the_documented_one(run: Run) -> None:
    assert run("config", "example").stdout == example()


def test_complete_takes_its_defaults_from_the_configuration(run: Run, project: Path, tiny_model: Path) -> None:
    (project / "a.py").write_text("def first(values):\n    return ")
    (project / ".eagle-assist.toml").write_text("[completion]\nmax_tokens = 3\n[model]\nmethod = 'plain'\n")
    arguments = ("complete", "a.py", "--no-daemon", "--json", "--model", str(tiny_model), "--precision", "float32")
    found = document_of(run(*arguments))
    assert (len(found["tokens"]), found["method"]) == (3, "plain")
    found = document_of(run(*arguments, "--max-tokens", "5", "--method", "ngram"))
    assert (len(found["tokens"]), found["method"]) == (5, "ngram")
