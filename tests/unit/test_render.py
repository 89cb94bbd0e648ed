"""Drawing draft trees: what is seen of a token, and how an accepted path is told apart."""

import io

import pytest
from rich.console import Console

from assistant.commands.render import draw, visible
from assistant.engine.tree import DraftTree, root_only
from assistant.engine.types import FinishReason, Origin, StepResult

TEXTS = {0: b"x", 1: b" =", 2: b"(", 3: b" 1", 4: b"\n", 5: b""}


def drawn(step: StepResult, *, number: int = 1, ascii_only: bool = False) -> str:
    out = io.StringIO()
    Console(file=out, width=200).print(draw(number, step, TEXTS.__getitem__, ascii_only=ascii_only))
    return out.getvalue()


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b" return", "·return"),
        (b"\n\t ", r"\n\t·"),
        ("ü".encode(), "ü"),
        (b"\xc3", r"\xc3"),
        (b"a\xc3 ", r"a\xc3\x20"),
        (b"\x1b[31m", r"\x1b[31m"),
        ("\u200b·".encode(), r"\u200b\xb7"),
        (b"\\n", r"\\n"),
        (b"-" * 100, "-" * 31 + "…"),
        (b"[bold]", "[bold]"),
    ],
)
def test_a_tokens_text_is_one_line_without_control_characters(data: bytes, expected: str) -> None:
    assert visible(data) == expected


def step() -> StepResult:
    tree = DraftTree(
        (0, 1, 2, 3, 4), (-1, 0, 0, 1, 1), (0.0, -0.25, -2.0, -0.5, -3.0), ("", "head", "head", "head", "head")
    )
    return StepResult(
        (1, 3, 5), (Origin.HEAD, Origin.HEAD, Origin.BONUS), "", tree, (1, 3), draft_ms=3.0, verify_ms=20.0
    )


def test_nodes_show_text_confidence_path_value_and_origin_and_the_accepted_path_a_mark() -> None:
    assert drawn(step()).splitlines() == [
        "step 1: 4 nodes, depth 2, width 2, 2 accepted; drafted in 3 ms, verified in 20 ms",
        "x",
        "├── ✓ ·=  0.78, path 0.779, head",
        "│   ├── ✓ ·1  0.78, path 0.607, head",
        r"│   └── \n  0.06, path 0.050, head",
        "└── (  0.14, path 0.135, head",
        "  wrote ·= (head) ·1 (head) <token 5> (bonus)",
    ]


def test_a_console_without_the_mark_gets_an_ascii_one() -> None:
    assert "* ·=" in drawn(step(), ascii_only=True)
    assert "✓" not in drawn(step(), ascii_only=True)


def test_a_prefill_and_a_plain_step_have_no_tree() -> None:
    prefill = StepResult((1,), (Origin.TARGET,), "", root_only(0), (), prefill_ms=9.0, prompt_tokens=40, reused=30)
    plain = StepResult((), (), "", root_only(0), (), verify_ms=8.0, finish=FinishReason.STOP)
    assert drawn(prefill, number=0).splitlines() == [
        "prefill: 40 prompt tokens, 30 from the cache, 9 ms",
        "  wrote ·= (target)",
    ]
    assert drawn(plain).splitlines() == ["step 1: nothing drafted, verified in 8 ms", "  wrote nothing  end: stop"]
