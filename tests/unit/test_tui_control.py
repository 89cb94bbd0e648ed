"""Control: the daemon's buttons, the configuration with its origins, the project's file."""

from pathlib import Path

import pytest
from textual.pilot import Pilot
from textual.widgets import Input, Select, TextArea

from tests.support.screens import LARGE, play, screen, shows, until
from tests.support.scripted import Scripted, status
from tui import configuration
from tui.app import EagleApp

P = Pilot[None]
FILE = ".eagle-assist.toml"


@pytest.fixture(autouse=True)
def _own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EAGLE_ASSIST_HOME", str(tmp_path / "home"))


def project(tmp_path: Path, text: str | None = None) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    if text is not None:
        (folder / FILE).write_text(text, encoding="utf-8")
    return folder


def test_the_merged_configuration_tells_where_each_value_is_from(tmp_path: Path) -> None:
    folder = project(tmp_path, "[tree]\nnodes = 16\n")
    found = {line.key: line for line in configuration.merged(folder).lines}
    assert (found["tree.nodes"].value, found["tree.nodes"].origin) == ("16", f"{FILE}:2")
    assert (found["tree.depth"].origin, found["tree.depth"].default) == ("default", True)
    assert found["context.enabled"].value == "true"


def test_problems_stand_in_the_configurations_place(tmp_path: Path) -> None:
    found = configuration.merged(project(tmp_path, "[tree]\nnods = 16\n"))
    assert found.lines == ()
    assert [(p.line, p.column) for p in found.problems] == [(2, 1)]


def test_a_text_is_checked_before_it_is_saved(tmp_path: Path) -> None:
    path = configuration.project_path(project(tmp_path))
    assert configuration.problems(path, "[tree]\nnodes = 16\n") == ()
    wrong = configuration.problems(path, '[tree]\nnodes = "x"\n[daemon]\ncache_mb = 1\n')
    assert [(p.line, p.column) for p in wrong] == [(2, 1), (4, 1)]
    assert configuration.problems(path, "[tree\n")[0].line == 1


def test_the_nearest_project_file_is_the_one_that_is_edited(tmp_path: Path) -> None:
    folder = project(tmp_path, "")
    (folder / "deep").mkdir()
    assert configuration.project_path(folder / "deep") == folder / FILE
    assert configuration.read(folder / "none") == ""


def test_the_file_is_edited_its_errors_shown_with_their_places_and_saved_when_sound(tmp_path: Path) -> None:
    folder = project(tmp_path, "[tree]\nnodes = 16\n")

    async def scenario(app: EagleApp, pilot: P, _: Scripted) -> None:
        await pilot.press("5")
        await shows(pilot, "▶ tree.nodes", "16", f"{FILE}:2", "✓ no errors", "default")
        editor = app.query_one("#project", TextArea)
        editor.focus()
        editor.text = "[tree]\nnodes = 999\n"
        await shows(pilot, "✗ 2:1  ")
        await pilot.press("ctrl+s")
        await shows(pilot, "Not saved")
        assert "16" in (folder / FILE).read_text(encoding="utf-8")
        editor.text = "[tree]\nnodes = 24\n"
        await shows(pilot, "✓ no errors")
        await pilot.press("ctrl+s")
        await until(pilot, lambda: (folder / FILE).read_text(encoding="utf-8") == "[tree]\nnodes = 24\n")
        await shows(pilot, "24")

    play(scenario, folder, size=LARGE)


def test_the_buttons_start_stop_load_unload_and_switch(tmp_path: Path) -> None:
    async def scenario(app: EagleApp, pilot: P, source: Scripted) -> None:
        await shows(pilot, "● live")
        await pilot.press("5")
        await shows(pilot, "pid 7, version 0.1, up 2 min", "head shipped, draft model none, method eagle2")
        await pilot.press("tab", "tab", "enter")
        await until(pilot, lambda: source.calls == ["load None None"])
        await pilot.press("tab", "enter")
        await until(pilot, lambda: source.calls[1:] == ["unload"])
        await shows(pilot, "not loaded")
        app.query_one("#model", Input).value = "qwen2.5-coder-1.5b"
        app.query_one("#model").focus()
        await pilot.press("enter")
        await until(pilot, lambda: source.calls[2:] == ["load qwen2.5-coder-1.5b None"])
        await pilot.click("#do-stop")
        await shows(pilot, "✗ daemon lost")
        assert source.calls[3:] == ["shutdown"]
        await pilot.click("#do-start")
        await shows(pilot, "● live")
        assert source.calls[4:] == ["start"]

    play(scenario, project(tmp_path))


def test_models_and_heads_are_chosen_from_what_the_daemon_knows(tmp_path: Path) -> None:
    said = status(models=("qwen2.5-coder-0.5b", "qwen2.5-coder-1.5b"), heads=("shipped", "own"))

    async def scenario(app: EagleApp, pilot: P, source: Scripted) -> None:
        await shows(pilot, "● live")
        await pilot.press("5")
        await pilot.press(*["tab"] * 4)
        assert app.query_one("#known-model").has_focus_within
        await pilot.press("enter")
        await shows(pilot, "qwen2.5-coder-1.5b")
        await pilot.press("down", "down", "enter")
        app.query_one("#known-head", Select).value = "own"
        await pilot.click("#do-load")
        await until(pilot, lambda: source.calls == ["load qwen2.5-coder-1.5b own"])

    play(scenario, project(tmp_path), source=Scripted(said=said))


def test_memory_of_a_gpu_is_told_where_there_is_one(tmp_path: Path) -> None:
    async def scenario(app: EagleApp, pilot: P, source: Scripted) -> None:
        await shows(pilot, "640 MB · VRAM 3.20 GB")
        await pilot.press("5")
        await shows(pilot, "640 MB and 3.20 GB VRAM")
        await pilot.press("2")
        await shows(pilot, "VRAM          3.20 GB")
        source.said = status()
        await until(pilot, lambda: "VRAM" not in screen(app))

    play(scenario, project(tmp_path), source=Scripted(said=status(device_memory_bytes=3_200_000_000)), size=LARGE)


def test_what_goes_wrong_is_a_notice(tmp_path: Path) -> None:
    async def scenario(app: EagleApp, pilot: P, source: Scripted) -> None:
        await shows(pilot, "● live")
        source.alive = False
        app.action_load()
        await shows(pilot, "no daemon runs.")

    play(scenario, project(tmp_path))
