"""A completion as text: origins token by token, healing, cuts, and the layout in a window."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from assistant.protocol import Choice, Observed, Tree
from tests.support.scripted import completion, observed, plain, prefill, step
from tui import layout, wording
from tui.layout import Row
from tui.state import View, take
from tui.writing import ORIGINS, Piece, Writing, writing


def lines(rows: tuple[Row, ...]) -> list[str]:
    found = []
    for row in rows:
        found.append("".join(cell.text for cell in row.cells).rstrip())
        if row.marked:
            found.append("".join(cell.mark for cell in row.cells).rstrip())
    return found


def test_every_token_keeps_its_origin_and_the_rejected_draft_follows() -> None:
    found = writing([prefill(), step()], "def f():\n", "\n")
    assert [(piece.text, piece.origin.letter) for piece in found.pieces] == [
        ("    ", "T"), ("return", "H"), (" sum", "H"), ("(", "H"), ("data", "C"),
    ]  # fmt: skip
    assert found.rejected == "values)"


def test_typed_characters_that_the_first_token_repeats_are_not_shown_twice() -> None:
    healed = prefill(text="urn x", tokens=(1, 2), texts=("return", " x"), origins=("target", "target"))
    assert [piece.text for piece in writing([healed], "    ret", "").pieces] == ["urn", " x"]


def test_a_text_that_takes_the_place_of_the_first_stands_alone() -> None:
    other = step(text="    pass", tokens=(8, 9), texts=("    ", "pass"), origins=("target", "target"), anew=True)
    assert [piece.text for piece in writing([prefill(), step(), other], "", "").pieces] == ["    ", "pass"]


def test_text_behind_a_stop_is_cut() -> None:
    cut = prefill(text="a\n", tokens=(1, 2), texts=("a", "\n\ndef"), origins=("target", "target"))
    assert [piece.text for piece in writing([cut], "", "").pieces] == ["a", "\n"]


def test_an_origin_of_a_later_version_is_shown_as_another() -> None:
    assert writing([prefill(origins=("oracle",))], "", "").pieces[0].origin.letter == "?"


def test_letters_stand_below_the_tokens_that_they_explain() -> None:
    found = writing([prefill(), step()], "def f(values):\n", "\nf()")
    assert lines(layout.lay_out(found, 40, 20, marks=True)) == [
        "def f(values):",
        "    return sum(data▌⟨values)⟩",
        "T───H─────H───HC───  x──────",
        "f()",
    ]


@given(
    before=st.text("ab\n\t漢", max_size=60),
    own=st.lists(st.text("cd\n 漢", min_size=1, max_size=12), max_size=12),
    after=st.text("ef\n", max_size=60),
    width=st.integers(8, 40),
    height=st.integers(2, 12),
)
def test_a_window_shows_the_end_of_the_completion_and_never_overflows(
    before: str, own: list[str], after: str, width: int, height: int
) -> None:
    pieces = tuple(Piece(text, ORIGINS["head"]) for text in own)
    rows = layout.lay_out(Writing(before, pieces, "", after), width, height, marks=True)
    assert sum(2 if row.marked else 1 for row in rows) <= height
    assert all(sum(cell_len(cell.text) for cell in row.cells) <= width for row in rows)
    assert any(cell.text == "▌" for row in rows for cell in row.cells)


def test_the_story_says_who_wrote_what_and_how_much_faster_that_was() -> None:
    view = take(View(), plain())
    events = [observed(prefill()), observed(step())]
    assert wording.story(view, events) == (
        "Of 5 tokens, 3 guessed by the draft head and kept, 2 by the model itself (1 while it read the prompt).",
        "4.00 tokens a step, 2.00 times as fast as one at a time (25 ms, 3 measured).",
    )


def test_a_speedup_that_nobody_measured_is_not_told() -> None:
    _, pace = wording.story(View(), [observed(prefill()), observed(step())])
    assert pace == "4.00 tokens a step; speed-up not measured yet, m measures it."


def test_drafting_that_does_not_pay_is_called_slower() -> None:
    slow = observed(step(draft_ms=100.0, verify_ms=100.0))
    _, pace = wording.story(take(View(), plain()), [observed(prefill()), slow])
    assert "4.00 tokens a step, 0.50 times as fast" in pace


def test_why_tells_the_bounds_the_policys_reason_and_what_the_confidences_show() -> None:
    shape = "8 nodes, 5 deep, 2 wide (bounds: 8, 6 and 8): "
    sure = "sure of its first guess (0.90), so deep; expected 4.2 tokens, got 4"
    assert wording.why(observed(step())) == shape + sure
    rationed = Choice(nodes=8, depth=6, width=8, queue=2, reason="two others wait")
    assert wording.why(observed(step(choice=rationed))) == f"{shape}two others wait; {sure}"
    (*_, last) = (event for event in completion() if isinstance(event, Observed))
    assert "a copy of nearby text" in wording.why(last)
    assert wording.why(observed(prefill())) == "No tree: the prompt is read first."


@pytest.mark.parametrize(
    ("values", "parents", "says"),
    [
        ((0.0, -1.5, -1.6, -1.7), (-1, 0, 0, 0), "unsure of its first guess (0.22), so wide"),
        ((0.0, -1.5, -1.6), (-1, 0, 1), "unsure of its first guess (0.22), surer of what follows, so deep"),
        ((0.0, -0.6, -0.9), (-1, 0, 1), "half sure of its first guess (0.55), so deep"),
        ((0.0, -0.1, -2.5), (-1, 0, 0), "sure of its first guess (0.90), less of what follows, so wide"),
    ],
)
def test_a_shape_is_explained_by_what_is_true_of_its_tree(
    values: tuple[float, ...], parents: tuple[int, ...], says: str
) -> None:
    size = len(values)
    tree = Tree(
        tokens=(0,) * size, texts=("a",) * size, parents=parents, values=values, origins=("head",) * size, accepted=()
    )
    assert says in wording.why(observed(step(tree=tree)))
