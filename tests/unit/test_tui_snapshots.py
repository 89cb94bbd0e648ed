"""What the panes look like, compared with saved screens (`EAGLE_ASSIST_SNAPSHOTS=write` saves them anew).

A screen is kept as text: it says everything that the panes say, since they are to be read without colour, and a change
of Textual's drawing does not touch it.
"""

import os
from difflib import unified_diff
from pathlib import Path

import pytest
from textual.pilot import Pilot

from tests.support.screens import LARGE, SMALL, play, screen, shows, style_of, until
from tests.support.scripted import Scripted, completion, observed, plain, prefill, status, step
from tui import themes
from tui.app import EagleApp
from tui.viewer import PANES

SAVED = Path(__file__).parents[1] / "snapshots" / "tui"
P = Pilot[None]


def compare(name: str, found: str) -> list[str]:
    """How the screen differs from the saved one."""
    path = SAVED / f"{name}.txt"
    if os.environ.get("EAGLE_ASSIST_SNAPSHOTS") == "write":
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(found + "\n", encoding="utf-8")
    saved = path.read_text(encoding="utf-8").splitlines()
    return list(unified_diff(saved, found.split("\n"), name, "now", lineterm=""))


@pytest.mark.parametrize("size", [SMALL, LARGE], ids=["80x24", "160x50"])
def test_the_panes_look_as_they_were_approved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: tuple[int, int]
) -> None:
    monkeypatch.setenv("EAGLE_ASSIST_HOME", str(tmp_path / "home"))
    events = (*plain(), *completion("a"), *completion("b", client="vscode", document="app.ts"), *completion("c")[:2])

    async def scenario(app: EagleApp, pilot: P, source: Scripted) -> None:
        source.say(*events)
        await until(pilot, lambda: app.view.arrived == len(events))
        differing = []
        for number, (pane, _) in enumerate(PANES):
            await pilot.press(f"f{number + 2}")
            if pane == "scratch":
                await pilot.press("ctrl+b")
                await shows(pilot, "Same text;")
            elif pane == "live":
                await pilot.press("left", "right")
            elif pane == "control":
                await shows(pilot, "no errors")
            await pilot.pause(0.1)
            differing += compare(f"{pane}-{size[0]}x{size[1]}", screen(app))
        assert not differing, "\n".join([*differing, "look at the screens, then save them anew"])

    play(scenario, tmp_path, size=size, source=Scripted(said=status(plain_ms=24.0)))


def test_origins_keep_their_colours_apart_in_both_themes(tmp_path: Path) -> None:
    async def scenario(app: EagleApp, pilot: P, source: Scripted) -> None:
        mixed = step(
            text="return sumzipdata",
            texts=("return", " sum", "zip", "data"),
            origins=("head", "head", "retrieval", "correction"),
        )
        source.say(observed(prefill()), observed(mixed))
        await shows(pilot, "return sumzipdata")
        for theme in (themes.DARK.name, themes.LIGHT.name):
            app.theme = theme
            await pilot.pause()
            looks = {
                (str(style.color), str(style.bgcolor), bool(style.underline), bool(style.bold))
                for style in (style_of(app, text) for text in ("return", "zip", "data", "count = len"))
            }
            assert len(looks) == 4, theme

    play(scenario, tmp_path)
