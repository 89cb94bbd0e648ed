"""The terminal interface as a user meets it: every pane and every key, daemons that come and go, a flood."""

from pathlib import Path

import pytest
from textual.pilot import Pilot
from textual.widgets import ContentSwitcher, Input

from assistant.protocol import Missed
from tests.support.screens import LARGE, play, screen, shows, style_of, until
from tests.support.scripted import Scripted, completion, observed, plain, prefill, status, step
from tui import commands, state, trace
from tui.app import EagleApp
from tui.state import HISTORY, MEASURING, Filter, Link
from tui.trace import Trace
from tui.viewer import PANES
from tui.widgets.headline import Headline
from tui.widgets.timeline import Timeline

P = Pilot[None]
FLOOD = 10_000


def front(app: EagleApp) -> str | None:
    return app.query_one(ContentSwitcher).current


async def fed(app: EagleApp, pilot: P, source: Scripted, *events: object) -> None:
    """Say events and wait until they are in the view."""
    before = app.view.arrived
    source.say(*events)  # type: ignore[arg-type]
    await until(pilot, lambda: app.view.arrived == before + len(events))
    await pilot.pause()


def test_a_newcomer_reads_who_drafted_what_and_how_much_faster_that_was(tmp_path: Path) -> None:
    async def scenario(app: EagleApp, pilot: P, source: Scripted) -> None:
        await fed(app, pilot, source, *plain(), *completion())
        await shows(pilot, "3 guessed by the draft head, 1 copied from nearby text", "2 by the model itself")
        await shows(pilot, "2.50 tokens a step, 1.25 times as fast as one at a time (25 ms, 3 measured).")
        await shows(pilot, "return sum(data)", "T───H─────H───HC───R", "H draft head", "C correction")
        assert style_of(app, "return").bgcolor != style_of(app, "count = len").bgcolor
        assert style_of(app, "sum").bgcolor == style_of(app, "return").bgcolor
        assert style_of(app, "data").bgcolor != style_of(app, "return").bgcolor

    play(scenario, tmp_path, size=(120, 30))


def test_every_pane_opens_by_its_function_key_and_by_its_number(tmp_path: Path) -> None:
    async def scenario(app: EagleApp, pilot: P, _: Scripted) -> None:
        for number, (name, title) in enumerate(PANES, 1):
            await pilot.press(f"f{number + 1}")
            assert front(app) == name
            assert f"[{number} {title}]" in screen(app)
        for number in (1, 2, 4, 5, 3):
            await pilot.press(str(number))
            assert front(app) == PANES[number - 1][0]
        await pilot.press("1")
        assert front(app) == "scratch", "a digit is text in the editor,"
        await pilot.press("escape", "1")
        assert front(app) == "live", "and a key again outside of it"

    play(scenario, tmp_path)


def test_panes_open_by_a_click_too(tmp_path: Path) -> None:
    async def scenario(app: EagleApp, pilot: P, _: Scripted) -> None:
        await pilot.pause()
        await pilot.click("TabStrip", offset=(15, 0))
        assert front(app) == "numbers"

    play(scenario, tmp_path)


def test_arrows_go_through_steps_and_completions_and_the_tree_follows(tmp_path: Path) -> None:
    async def scenario(app: EagleApp, pilot: P, source: Scripted) -> None:
        await fed(app, pilot, source, *completion("a"), *completion("b"))
        await shows(pilot, "Step 2: 1 drafted, 1 accepted", "step 4 of 4 newest")
        await pilot.press("left")
        await shows(pilot, "Step 1: 8 drafted, 3 accepted", "step 3 of 4", "├─✓ return", "x──────")
        await pilot.press("left")
        await shows(pilot, "Prefill: read 40 tokens, 30 of them kept", "before step 3 of 4", "Up to here: ")
        await pilot.press("up")
        await shows(pilot, "step 2 of 4")
        await pilot.press("home")
        await shows(pilot, "before step 1 of 4")
        await pilot.press("down")
        await shows(pilot, "step 4 of 4")
        await pilot.press("left", "end")
        await shows(pilot, "step 4 of 4 newest")
        assert app.view.selected is None

    play(scenario, tmp_path)


def test_a_step_of_the_strip_can_be_clicked(tmp_path: Path) -> None:
    async def scenario(app: EagleApp, pilot: P, source: Scripted) -> None:
        await fed(app, pilot, source, *completion())
        await pilot.click(Timeline, offset=(1 + 26 + 1, 0))
        await shows(pilot, "Step 1: 8 drafted")

    play(scenario, tmp_path)


def test_the_rejected_draft_vanishes_after_a_moment_and_is_there_when_one_looks_back(tmp_path: Path) -> None:
    async def scenario(app: EagleApp, pilot: P, source: Scripted) -> None:
        from tui.widgets.document import Document

        app.query_one(Document).BRIEF_S = 0.05
        await fed(app, pilot, source, *completion()[:2])
        await until(pilot, lambda: "x──────" not in screen(app))
        await pilot.press("home", "right")
        await shows(pilot, "data▌⟨values)⟩", "x──────")

    play(scenario, tmp_path)


def test_pause_holds_the_view_and_loses_nothing(tmp_path: Path) -> None:
    async def scenario(app: EagleApp, pilot: P, source: Scripted) -> None:
        await fed(app, pilot, source, *completion())
        await pilot.press("space")
        await fed(app, pilot, source, *completion("b"), *completion("c"))
        await shows(pilot, "paused", "step 2 of 2")
        await pilot.press("left")
        await shows(pilot, "step 1 of 2")
        await pilot.press("space")
        await shows(pilot, "step 6 of 6 newest")
        assert "paused" not in screen(app)

    play(scenario, tmp_path)


def test_a_client_is_chosen_in_the_list_or_by_key_and_everything_narrows(tmp_path: Path) -> None:
    async def scenario(app: EagleApp, pilot: P, source: Scripted) -> None:
        await fed(app, pilot, source, *completion(), *completion("b", client="vscode", document="app.ts"))
        await pilot.press("4")
        await shows(pilot, "everything", "nvim  9 requests, 7 shown, 4 accepted", "app.ts  3 steps", "✓ vscode")
        await pilot.press("down", "enter")
        assert app.view.filter == Filter("nvim")
        await shows(pilot, "only nvim", "▶   nvim")
        await pilot.press("1")
        await shows(pilot, "stats.py · asked by nvim · eagle2", "step 2 of 2")
        await pilot.press(*"fff")
        assert app.view.filter == Filter("vscode")
        await shows(pilot, "app.ts · asked by vscode")

    play(scenario, tmp_path)


def test_numbers_tell_what_was_measured_and_what_was_not(tmp_path: Path) -> None:
    async def scenario(app: EagleApp, pilot: P, source: Scripted) -> None:
        await pilot.press("2")
        await shows(pilot, "tokens a step", "not measured yet", "no drafts yet", "no editor told yet")
        await fed(app, pilot, source, *completion(), *plain())
        await shows(pilot, "1.25x plain", "(25 ms, 3 measured)", "75% reused", "640 MB", "1 accepted")
        await shows(pilot, "Accepted by depth", "of 2", "whole request", "190 ms", "off by")
        await shows(pilot, "2.50", "67% of 6 tokens: H 3, R 1")
        source.say(Missed(count=7))
        await shows(pilot, "7 events came too quickly")

    play(scenario, tmp_path, size=LARGE)


def test_the_cost_model_stands_in_until_plain_steps_are_measured(tmp_path: Path) -> None:
    async def scenario(app: EagleApp, pilot: P, source: Scripted) -> None:
        await fed(app, pilot, source, *completion())
        await shows(pilot, "1.50 times as fast as one at a time (30 ms, cost model)")

    play(scenario, tmp_path, source=Scripted(said=status(plain_ms=30.0)))


def test_m_measures_plain_decoding_after_the_text_that_is_looked_at(tmp_path: Path) -> None:
    async def scenario(app: EagleApp, pilot: P, source: Scripted) -> None:
        await fed(app, pilot, source, *completion())
        await shows(pilot, "m measures it")
        await pilot.press("m")
        await until(pilot, lambda: len(source.requests) == 1)
        asked = source.requests[0]
        assert (asked.path, asked.options.method, asked.typed) == (MEASURING, "plain", False)
        assert asked.prefix is not None
        assert asked.prefix.startswith("def mean")
        heard = [observed(e.step, "tui", MEASURING, "plain") for e in plain() if hasattr(e, "step")]
        await fed(app, pilot, source, *heard)
        await shows(pilot, "1.25 times as fast as one at a time (25 ms, 3 measured)", "step 2 of 2")

    play(scenario, tmp_path)


def test_letters_can_be_switched_off_and_colours_changed(tmp_path: Path) -> None:
    async def scenario(app: EagleApp, pilot: P, source: Scripted) -> None:
        await fed(app, pilot, source, *completion())
        await shows(pilot, "T───H─────H───HC───R")
        await pilot.press("o")
        await until(pilot, lambda: "T───H" not in screen(app))
        dark = style_of(app, "return").bgcolor
        await pilot.press("d")
        await until(pilot, lambda: style_of(app, "return").bgcolor != dark)
        assert not app.current_theme.dark

    play(scenario, tmp_path)


def test_help_explains_and_goes_away(tmp_path: Path) -> None:
    async def scenario(app: EagleApp, pilot: P, _: Scripted) -> None:
        await pilot.press("question_mark")
        await shows(pilot, "A language model writes one token", "draft head", "Help")
        await pilot.press("escape")
        await until(pilot, lambda: "A language model writes" not in screen(app))

    play(scenario, tmp_path)


def test_the_palette_knows_every_command_and_each_is_an_action(tmp_path: Path) -> None:
    async def scenario(app: EagleApp, pilot: P, _scripted: Scripted) -> None:
        offered = {command.title for command in app.get_system_commands(app.screen)}
        assert {title for title, _, _ in commands.ALL} <= offered
        for _, _, action in commands.ALL:
            assert hasattr(app, f"action_{action.partition('(')[0]}"), action
        await pilot.press("ctrl+p")
        await pilot.press(*"numb", "enter")
        await until(pilot, lambda: front(app) == "numbers")

    play(scenario, tmp_path)


def test_a_trace_is_saved_where_one_says_and_opens_again(tmp_path: Path) -> None:
    events = (*plain(), *completion())

    async def scenario(app: EagleApp, pilot: P, source: Scripted) -> None:
        await fed(app, pilot, source, *events)
        await pilot.press("s")
        await shows(pilot, "Save 9 events as a trace")
        app.screen.query_one("#path", Input).value = str(tmp_path / "t.jsonl")
        await pilot.press("enter")
        await until(pilot, (tmp_path / "t.jsonl").exists)

    async def later(_app: EagleApp, pilot: P, _: Scripted) -> None:
        await shows(pilot, "▤ trace", "qwen2.5-coder-0.5b", "step 5 of 5", "1.25 times as fast")
        await pilot.press("m")
        await shows(pilot, "A saved trace is shown")
        await pilot.press("left")
        await shows(pilot, "├─✓ return")

    play(scenario, tmp_path)
    saved = trace.load(tmp_path / "t.jsonl")
    assert saved.events == events
    play(later, tmp_path, trace=saved)


def test_escape_saves_nothing_and_a_folder_that_is_none_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # a short name: where a long one wraps the sentence, it is not found
    (tmp_path / "file").touch()

    async def scenario(app: EagleApp, pilot: P, source: Scripted) -> None:
        await fed(app, pilot, source, *completion())
        await pilot.press("s", "escape", "s")
        app.screen.query_one("#path", Input).value = "file/t.jsonl"
        await pilot.press("enter")
        await shows(pilot, "cannot be written")

    play(scenario, tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file"]


def test_the_tree_that_is_looked_at_is_exported(tmp_path: Path) -> None:
    async def scenario(app: EagleApp, pilot: P, source: Scripted) -> None:
        await fed(app, pilot, source, *completion())
        await pilot.press("home", "e")
        await shows(pilot, "This step has no tree")
        await pilot.press("right", "e")
        app.screen.query_one("#path", Input).value = str(tmp_path / "tree.svg")
        await pilot.press("enter")
        await until(pilot, lambda: (tmp_path / "tree.txt").exists() and (tmp_path / "tree.svg").exists())

    play(scenario, tmp_path)
    assert "8 drafted" in (tmp_path / "tree.txt").read_text(encoding="utf-8")


def test_without_a_daemon_one_can_be_started(tmp_path: Path) -> None:
    async def scenario(app: EagleApp, pilot: P, source: Scripted) -> None:
        await shows(pilot, "○ no daemon", "No daemon runs. g starts one.")
        await pilot.press("g")
        await shows(pilot, "● live")
        assert source.calls[0] == "start"
        assert "g starts one" not in screen(app)

    play(scenario, tmp_path, source=Scripted(alive=False))


def test_a_daemon_that_dies_is_said_its_steps_stay_and_its_successor_is_followed(tmp_path: Path) -> None:
    async def scenario(app: EagleApp, pilot: P, source: Scripted) -> None:
        await fed(app, pilot, source, *completion())
        source.die()
        await shows(pilot, "✗ daemon lost", "The daemon went away. Trying again", "step 2 of 2")
        source.alive = True
        await shows(pilot, "● live")
        await fed(app, pilot, source, *completion("b"))
        await shows(pilot, "step 4 of 4")
        assert app.view.link is Link.LIVE

    play(scenario, tmp_path)


def test_a_degraded_daemon_says_why(tmp_path: Path) -> None:
    async def scenario(app: EagleApp, pilot: P, _: Scripted) -> None:
        await shows(pilot, "the model's file is damaged", "degraded")
        assert app.view.link is Link.LIVE

    said = status(state="degraded", message="the model's file is damaged")
    play(scenario, tmp_path, source=Scripted(said=said))


def test_a_flood_of_steps_leaves_the_keys_working_memory_bounded_and_the_last_state_right(tmp_path: Path) -> None:
    async def scenario(app: EagleApp, pilot: P, source: Scripted) -> None:
        source.say(*(observed(step(i + 1, f"r{i // 50}")) for i in range(FLOOD)))
        await pilot.press("2")
        assert front(app) == "numbers"
        assert app.view.arrived < FLOOD, "the key came through in the middle of it"
        await pilot.press("1")
        await until(pilot, lambda: app.view.arrived == FLOOD)
        await shows(pilot, f"Step {FLOOD}: 8 drafted", f"step {HISTORY:,} of {HISTORY:,} newest")
        assert len(app.view.history) == HISTORY
        assert app.view.figures.steps == FLOOD

    play(scenario, tmp_path)


def test_every_pane_survives_every_size(tmp_path: Path) -> None:
    async def scenario(app: EagleApp, pilot: P, source: Scripted) -> None:
        await fed(app, pilot, source, *completion(), *plain())
        for pane, title in PANES:
            await app.action_pane(pane)
            for size in ((20, 6), (160, 50), (100, 12)):
                await pilot.resize_terminal(*size)
                await pilot.pause()
                app.refresh_view()
            await shows(pilot, "● live", "qwen2.5-coder-0.5b", f" {title}]")

    play(scenario, tmp_path)


def test_the_tree_is_scrolled_by_pages(tmp_path: Path) -> None:
    async def scenario(app: EagleApp, pilot: P, source: Scripted) -> None:
        await fed(app, pilot, source, *completion()[:2])
        await shows(pilot, "├─✓ return")
        await pilot.press(*["pagedown"] * 4)
        await until(pilot, lambda: "├─✓ return" not in screen(app))
        await shows(pilot, "wrote return")
        await pilot.press(*["pageup"] * 4)
        await shows(pilot, "├─✓ return")

    play(scenario, tmp_path)


def test_what_comes_in_while_the_screen_is_taken_down_is_no_fault(tmp_path: Path) -> None:
    async def scenario(app: EagleApp, _pilot: P, _source: Scripted) -> None:
        await app.query_one(Headline).remove()
        app.refresh_view()

    play(scenario, tmp_path)


def test_nothing_is_painted_again_where_nothing_changed(tmp_path: Path) -> None:
    async def scenario(app: EagleApp, pilot: P, source: Scripted) -> None:
        from tui.widgets.panel import Panel

        await fed(app, pilot, source, *completion())
        shown = {panel: panel._shown for panel in app.query(Panel)}
        app.refresh_view()
        assert all(panel._shown is content for panel, content in shown.items())

    play(scenario, tmp_path)


def test_wide_characters_and_markup_in_code_are_only_text(tmp_path: Path) -> None:
    odd = prefill(text="[red]漢字[/]", tokens=(1, 2), texts=("[red]", "漢字[/]"), origins=("target", "target"))

    async def scenario(app: EagleApp, pilot: P, source: Scripted) -> None:
        await fed(app, pilot, source, observed(odd, document="[b]x.py", before="[bold]a\x1b[0m = "))
        await shows(pilot, "[bold]a\\x1b[0m = [red]漢字[/]▌", "T────T──────")

    play(scenario, tmp_path)


def test_q_ends_it_and_takes_leave(tmp_path: Path) -> None:
    source = Scripted()

    async def scenario(app: EagleApp, pilot: P, _: Scripted) -> None:
        await pilot.press("q")
        assert app.return_code == 0

    play(scenario, tmp_path, source=source)
    assert source.calls == ["close"]


def test_a_trace_without_events_is_shown_as_empty(tmp_path: Path) -> None:
    async def scenario(app: EagleApp, pilot: P, _: Scripted) -> None:
        await shows(pilot, "▤ trace", "Nothing completed yet")
        for key in ("left", "up", "home", "end", "e", "f", "2", "4", "5"):
            await pilot.press(key)
        assert state.current(app.view) is None

    play(scenario, tmp_path, trace=Trace(()))
