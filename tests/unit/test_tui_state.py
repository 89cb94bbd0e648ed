"""The view model: folding the feed, looking back, filtering; bounded whatever comes in."""

from dataclasses import replace

from assistant.protocol import ClientInfo, Missed, Observed
from tests.support.scripted import completion, observed, plain, prefill, status, step
from tui import clients, state
from tui.state import HISTORY, Filter, Link, View


def looked_at(view: View) -> int:
    current = state.current(view)
    assert current is not None
    return current.step.index


def test_the_newest_step_is_looked_at_until_another_is_chosen() -> None:
    view = state.take(View(), completion())
    assert looked_at(view) == 2
    back = state.move(view, -1)
    assert looked_at(back) == 1
    assert looked_at(state.take(back, completion("r2"))) == 1
    assert state.move(back, 5).selected is None
    assert looked_at(state.move(view, -99)) == 0


def test_a_completion_is_shown_up_to_the_step_that_is_looked_at() -> None:
    view = state.take(View(), (*completion("a"), *completion("b")))
    assert [o.step.request for o in state.completion(view)] == ["b"] * 3
    earlier = state.select_completion(view, -1)
    assert [(o.step.request, o.step.index) for o in state.completion(earlier)] == [("a", 0), ("a", 1), ("a", 2)]
    assert len(state.completion(state.move(earlier, -1))) == 2
    assert state.select_completion(earlier, 1).selected is not None
    assert state.select_completion(view, 1).selected is None


def test_interleaved_completions_are_told_apart() -> None:
    events = [observed(prefill("a")), observed(prefill("b")), observed(step(1, "a")), observed(step(1, "b"))]
    assert [o.step.request for o in state.completion(state.take(View(), events))] == ["b", "b"]


def test_a_filter_narrows_steps_and_figures() -> None:
    view = state.take(View(), (*completion("a"), *completion("b", client="vscode", document="app.ts"), *plain()))
    only = state.narrow(view, Filter(client="vscode"))
    assert {kept.event.client for kept in state.steps(only) if isinstance(kept.event, Observed)} == {"vscode"}
    assert only.figures.steps == 2
    assert state.take(only, completion("c")).figures.steps == 2
    assert state.narrow(only, Filter()).figures == view.figures
    assert only.plain_ms == view.plain_ms, "the yardstick is everyone's"


def test_history_is_bounded_and_numbers_go_on() -> None:
    view = View()
    for batch in range(6):
        view = state.take(view, [observed(step(i + 1, f"r{batch}")) for i in range(HISTORY // 2)])
    assert len(view.history) == HISTORY
    assert view.arrived == view.figures.steps == 3 * HISTORY
    assert view.history[-1].number == 3 * HISTORY - 1
    assert state.current(replace(view, selected=0)) is view.history[0].event


def test_events_that_the_daemon_left_out_are_counted_and_not_kept() -> None:
    view = state.take(View(), [Missed(count=12), *completion(), Missed(count=3)])
    assert (view.missed, view.arrived) == (15, 5)


def test_a_daemon_that_went_away_takes_its_word_along() -> None:
    view = replace(View(), status=status(plain_ms=40.0))
    assert state.connected(view, Link.LIVE).modelled_ms == 40.0
    gone = state.connected(view, Link.LOST, "the daemon went away.")
    assert (gone.status, gone.modelled_ms, gone.sentence) == (None, 0.0, "the daemon went away.")


def test_clients_are_those_listed_and_those_heard() -> None:
    view = replace(state.take(View(), completion(client="script", document="x.py")), status=status())
    rows = [(row.client, row.document) for row in clients.rows(view)]
    assert rows == [
        ("nvim", None), ("nvim", "main.py"), ("nvim", "stats.py"),
        ("script", None), ("script", "x.py"),
        ("vscode", None), ("vscode", "app.ts"),
    ]  # fmt: skip


def test_clients_of_one_name_are_added_up() -> None:
    twice = (ClientInfo(name="nvim", requests=2, shown=1), ClientInfo(name="nvim", requests=3, shown=1, accepted=1))
    (row,) = clients.rows(replace(View(), status=status(clients=twice)))
    assert (row.requests, row.shown, row.accepted) == (5, 2, 1)


def test_the_filter_key_goes_through_everything_and_comes_back() -> None:
    view = state.take(View(), completion(client="script", document="x.py"))
    seen = []
    for _ in range(3):
        view = state.narrow(view, clients.next_filter(view))
        seen.append(view.filter)
    assert seen == [Filter("script"), Filter("script", "x.py"), Filter()]


def test_ended_completions_say_what_became_of_them() -> None:
    view = state.take(View(), (*completion("a"), *completion("b")[:2]))
    newest, older = clients.ended(view, 10)
    assert (newest.outcomes, newest.tokens, newest.steps) == ((), 5, 1)
    assert (older.outcomes, older.total_ms, older.method) == (("stop", "accepted"), 190.0, "eagle2")
    assert len(clients.ended(view, 1)) == 1
