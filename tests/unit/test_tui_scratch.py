"""The scratch pad: asking, accepting by word, line or whole, comparing, turning knobs."""

from pathlib import Path

import pytest
from textual.pilot import Pilot
from textual.widgets import Input, Select

from assistant.protocol import Begun, Done, Failed, Progress
from tests.support.screens import LARGE, play, screen, shows, until
from tests.support.scripted import Scripted, plain_step, prefill, status, step
from tui import scratch
from tui.app import EagleApp
from tui.ghost import ghost_rows
from tui.scratch import Attempt, Knobs
from tui.widgets.editor import Editor

P = Pilot[None]
SUGGESTION = "    return sum(data"


@pytest.mark.parametrize(
    ("text", "word", "line"),
    [
        ("return x\n    y", "return", "return x\n"),
        ("    return x", "    return", "    return x"),
        ("\n    return\nx", "\n    return", "\n    return\n"),
        ("(a)", "(", "(a)"),
        ("   ", "   ", "   "),
        ("", "", ""),
    ],
)
def test_the_next_word_and_the_next_line(text: str, word: str, line: str) -> None:
    assert (scratch.next_word(text), scratch.next_line(text)) == (word, line)


def test_what_is_typed_along_a_suggestion_shortens_it_and_anything_else_ends_it() -> None:
    assert scratch.remaining("return x", "ret") == "urn x"
    assert scratch.remaining("return x", "rot") == ""
    assert scratch.remaining("return x", "return x!") == ""


def test_an_attempt_folds_the_events_of_its_completion() -> None:
    attempt = Attempt("auto", "x = ", "")
    attempt = scratch.take(attempt, Begun(request="r", model="m", method="eagle2", queue=2))
    assert (attempt.method, attempt.waiting) == ("auto (eagle2)", "waits behind 2 others")
    attempt = scratch.take(attempt, Progress(request="r", stage="loading", done=1, total=4))
    assert attempt.waiting == "loading, 25%"
    for event in (prefill("r"), step(1, "r")):
        attempt = scratch.take(attempt, event)
    assert (attempt.text, attempt.decode_ms, attempt.ended) == (SUGGESTION, 50.0, False)
    attempt = scratch.take(attempt, Done(request="r", text="    return", finish="stop", reason="the line ends"))
    assert (attempt.text, attempt.ended) == ("    return", True)
    failed = scratch.take(Attempt("auto"), Failed(request="r", code="model", message="no model."))
    assert (failed.failure, failed.ended) == ("no model.", True)


def test_another_daemon_begins_again() -> None:
    attempt = scratch.take(Attempt("plain"), plain_step())
    assert scratch.take(attempt, Begun(request="q", model="m", method="plain")).steps == ()


def test_the_verdict_compares_times_a_token_and_texts() -> None:
    def ended(method: str, *steps: object, text: str = "t") -> Attempt:
        done = Done(request="r", text=text, finish="stop")
        return Attempt(method, steps=(prefill(), *steps), done=done)  # type: ignore[arg-type]

    quick, slow = ended("eagle2", step(1)), ended("plain", plain_step(1), plain_step(2))
    assert scratch.verdict(quick, slow) == "Same text; eagle2 was 2.00 times as fast a token as plain."
    assert scratch.verdict(slow, quick) == scratch.verdict(quick, slow)
    even = scratch.verdict(ended("ngram", plain_step(1)), slow)
    assert even == "Same text; ngram and plain took about the same time a token."
    assert scratch.verdict(ended("ngram", text="u"), slow) == "Different texts."
    assert scratch.verdict(quick, Attempt("plain")) == ""


def test_a_request_leaves_to_the_configuration_what_is_not_given() -> None:
    request = Knobs(nodes=4, temperature=0.5, seed=3).request("auto", "s.py", "a", "b")
    assert (request.prefix, request.suffix, request.path, request.typed) == ("a", "b", "s.py", False)
    assert request.options.method is None
    assert (request.options.shape.nodes, request.options.shape.depth) == (4, None)
    assert (request.options.temperature, request.options.seed) == (0.5, 3)


async def opened(app: EagleApp, pilot: P) -> Editor:
    await pilot.press("f4")
    editor = app.query_one(Editor)
    editor.text = "def f(data):\n"
    editor.move_cursor(editor.document.end)
    return editor


def test_a_completion_is_shown_with_its_origins_and_accepted_by_word_line_and_whole(tmp_path: Path) -> None:
    async def scenario(app: EagleApp, pilot: P, source: Scripted) -> None:
        editor = await opened(app, pilot)
        await pilot.press("ctrl+g")
        await shows(pilot, "auto (eagle2): 4.00 a step, 12 ms a token, 5 tokens", "T───H─────H───HC───", "Accept")
        assert source.requests[0].prefix == "def f(data):\n"
        assert editor.suggestion == SUGGESTION
        await pilot.press("ctrl+right")
        assert editor.text == "def f(data):\n    return"
        await pilot.press(*" su")
        assert editor.left == "m(data"
        await pilot.press("tab")
        assert editor.text == f"def f(data):\n{SUGGESTION}"
        await until(pilot, lambda: len(source.feedbacks) == 3)
        assert source.feedbacks == [("c1", "shown", 0), ("c1", "partly", 10), ("c1", "accepted", len(SUGGESTION))]
        await pilot.press("tab")
        assert editor.text.endswith("data "), "tab indents again"

    play(scenario, tmp_path)


def test_a_line_is_accepted_and_escape_drops_the_rest_then_leaves(tmp_path: Path) -> None:
    two = Done(request="c1", text="a = 1\nb = 2", finish="stop")

    async def scenario(app: EagleApp, pilot: P, source: Scripted) -> None:
        editor = await opened(app, pilot)
        await pilot.press("ctrl+g")
        await shows(pilot, " 2  a = 1\n    b = 2\n")
        await pilot.press("ctrl+l")
        assert editor.text == "def f(data):\na = 1\n"
        assert editor.suggestion == "b = 2"
        await pilot.press("escape")
        assert editor.suggestion == ""
        await until(pilot, lambda: ("c1", "rejected", 0) in source.feedbacks)
        editor.move_cursor((0, 0))
        await pilot.press("ctrl+right")
        assert editor.cursor_location == (0, 3), "without a suggestion the key moves by words"
        await pilot.press("escape")
        assert not editor.has_focus

    play(scenario, tmp_path, source=Scripted(answer=(prefill("c1", text="a"), two)))


@pytest.mark.parametrize(
    ("left", "column", "most", "rows"),
    [
        ("ab", 4, 9, ("ab", ())),
        ("ab\n  cd", 4, 9, ("ab", ("  cd",))),
        ("\nb", 4, 9, ("", ("b",))),
        ("abcdefgh\nx", 7, 9, ("abc", ("defgh", "x"))),
        ("a\nb\nc\nd", 0, 2, ("a", ("b", "⋮"))),
        ("a\nb", 0, 0, ("a", ())),
        ("漢字漢字漢字", 5, 9, ("漢字", ("漢字漢字",))),
        ("\tx", 0, 9, ("    x", ())),
        ("", 3, 9, ("", ())),
    ],
)
def test_a_ghost_has_a_row_behind_the_cursor_and_the_others_below(
    left: str, column: int, most: int, rows: tuple[str, tuple[str, ...]]
) -> None:
    assert ghost_rows(left, column, 10, most) == rows


def test_every_line_of_a_suggestion_is_seen_and_the_text_below_moves_down_for_it(tmp_path: Path) -> None:
    lines = [f"step_{n}()" for n in range(5)]
    many = Done(request="c1", text="\n".join(lines), finish="stop")

    async def scenario(app: EagleApp, pilot: P, _: Scripted) -> None:
        editor = await opened(app, pilot)
        editor.text = "first\n" * 9 + "here\nlast\n"
        editor.move_cursor((9, 4))
        await pilot.press("ctrl+g")
        await shows(pilot, "here" + lines[0], *lines[1:])
        await pilot.press("ctrl+l")
        await shows(pilot, "     " + lines[2], "     " + lines[4])
        await pilot.press("escape")
        await shows(pilot, " 12  last")
        editor.offer("\n".join(lines), editor.cursor_offset)
        await pilot.pause()
        row = next(y for y, line in enumerate(screen(app).split("\n")) if "     " + lines[4] in line)
        await pilot.click(offset=(6, row))
        assert editor.cursor_location[0] == 10, "a click on the ghost is one on the cursor's line,"
        editor.move_cursor((9, 0))
        await pilot.pause()
        assert lines[4] not in editor_rows(app), "and a cursor that went elsewhere has none"

    play(scenario, tmp_path, source=Scripted(answer=(prefill("c1", text=lines[0]), many)))


def editor_rows(app: EagleApp) -> str:
    """What the editor shows, without what stands below it."""
    editor = app.query_one(Editor)
    return "\n".join(editor.render_line(y).text for y in range(editor.size.height))


def test_a_method_without_its_draft_model_says_why_it_cannot_be_had(tmp_path: Path) -> None:
    async def scenario(app: EagleApp, pilot: P, source: Scripted) -> None:
        await opened(app, pilot)
        app.query_one("#method", Select).value = "sps"
        await pilot.press("ctrl+g")
        await shows(pilot, "sps drafts with a second, smaller model, and there is none for", "name one as model.draft")
        assert source.requests == []
        source.said = status(draft="smollm2-135m")
        await until(pilot, lambda: app.view.status is not None and app.view.status.draft is not None)
        await pilot.press("ctrl+g")
        await until(pilot, lambda: [asked.options.method for asked in source.requests] == ["sps"])

    play(scenario, tmp_path, size=LARGE)


def test_the_knobs_are_reached_by_key(tmp_path: Path) -> None:
    async def scenario(app: EagleApp, pilot: P, _: Scripted) -> None:
        await opened(app, pilot)
        await pilot.press("ctrl+o")
        assert app.query_one("#method").has_focus_within

    play(scenario, tmp_path)


def test_two_methods_stand_side_by_side_with_a_verdict(tmp_path: Path) -> None:
    async def scenario(app: EagleApp, pilot: P, source: Scripted) -> None:
        await opened(app, pilot)
        await pilot.press("ctrl+b")
        await shows(pilot, "auto (eagle2): 4.00 a step", "plain: 1.00 a step, 25 ms a token")
        await shows(pilot, "Same text; auto (eagle2) was 2.00 times as fast a token as plain.")
        assert [request.options.method for request in source.requests] == [None, "plain"]
        assert len({(request.prefix, request.suffix) for request in source.requests}) == 1

    play(scenario, tmp_path, size=LARGE)


def test_a_turned_knob_asks_again_with_its_value(tmp_path: Path) -> None:
    async def scenario(app: EagleApp, pilot: P, source: Scripted) -> None:
        await opened(app, pilot)
        await pilot.press("ctrl+g")
        await until(pilot, lambda: len(source.requests) == 1)
        app.query_one("#method", Select).value = "eagle1"
        await until(pilot, lambda: len(source.requests) == 2)
        for name, value in (("nodes", "16"), ("depth", "3"), ("width", "2"), ("temperature", "0.7")):
            app.query_one(f"#{name}", Input).value = value
        app.query_one("#nodes").focus()
        await pilot.press("enter")
        await until(pilot, lambda: len(source.requests) == 3)
        options = source.requests[-1].options
        assert (options.method, options.temperature) == ("eagle1", 0.7)
        assert (options.shape.nodes, options.shape.depth, options.shape.width) == (16, 3, 2)
        await pilot.press("ctrl+r")
        await until(pilot, lambda: len(source.requests) == 4)
        assert source.requests[-1].options.seed != options.seed

    play(scenario, tmp_path)


def test_the_same_text_again_at_temperature_0_is_explained(tmp_path: Path) -> None:
    async def scenario(app: EagleApp, pilot: P, _: Scripted) -> None:
        await opened(app, pilot)
        await pilot.press("ctrl+r")
        await shows(pilot, "At temperature 0 the text")

    play(scenario, tmp_path)


def test_a_failure_and_a_daemon_that_is_not_there_are_shown(tmp_path: Path) -> None:
    async def failing(app: EagleApp, pilot: P, source: Scripted) -> None:
        await opened(app, pilot)
        await pilot.press("ctrl+g")
        await shows(pilot, "the model's file is damaged.")
        source.die()
        await pilot.press("ctrl+g")
        await shows(pilot, "no daemon runs.")

    failed = Failed(request="c1", code="model", message="the model's file is damaged.")
    play(failing, tmp_path, source=Scripted(answer=(failed,)))


def test_a_withheld_suggestion_says_why(tmp_path: Path) -> None:
    done = Done(request="c1", text="", finish="filtered", reason="it repeats the next line")

    async def scenario(app: EagleApp, pilot: P, _: Scripted) -> None:
        editor = await opened(app, pilot)
        await pilot.press("ctrl+g")
        await shows(pilot, "filtered: it repeats the next line")
        assert editor.left == ""
        assert "Accept" not in screen(app)

    play(scenario, tmp_path, source=Scripted(answer=(prefill("c1"), done)))


def test_pasted_code_is_taken_as_it_is(tmp_path: Path) -> None:
    async def scenario(app: EagleApp, pilot: P, source: Scripted) -> None:
        from textual.events import Paste

        editor = await opened(app, pilot)
        app.post_message(Paste("if data:\n\tpass\n"))
        await until(pilot, lambda: "pass" in editor.text)
        await pilot.press("ctrl+g")
        await until(pilot, lambda: len(source.requests) == 1)
        assert source.requests[0].prefix == "def f(data):\nif data:\n\tpass\n"

    play(scenario, tmp_path)
