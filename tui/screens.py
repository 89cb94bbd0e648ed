"""Dialogues above the panes: the help, and the question where a file should go."""

from pathlib import Path
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Input, Label, Static

from tui.widgets.draft_tree import MARKS
from tui.writing import ORIGINS, REJECTED

_IDEA = """\
A language model writes one token (a piece of a word) per pass over its weights. A small draft head guesses several \
tokens ahead, as a tree of alternatives; the model checks the whole tree in one pass and keeps the longest path that \
it would have written itself. So the text is exactly the model's own, in fewer passes: that is the speed-up."""
_FIGURES = """\
conf: how sure the drafter was of this token after the one before it; copied text has the same for every token. \
path: the product of conf from the root on, the chance that the model writes all of it. \
Accepted by depth: of the steps whose path came to a depth, those accepted there, also where the text was cut later.\
"""
_KEYS = (
    ("1 to 5, F2 to F6", "the panes (the F keys also while typing)"),
    ("← →", "another step; End: the newest; Home: the oldest kept"),
    ("↑ ↓", "another completion"),
    ("space", "pause: the view stands still, nothing is lost"),
    ("f", "only one client or document; again: the next; at last all"),
    ("m", "measure plain decoding, to know the speed-up"),
    ("o", "origin letters below the text, on or off"),
    ("s, e", "save a trace; export the tree as SVG and text"),
    ("d", "light or dark"),
    ("tab", "into the tree, fields and buttons; then arrows scroll"),
    ("ctrl+g, ctrl+r", "scratch pad: complete at the cursor; again"),
    ("ctrl+b, ctrl+o", "two methods side by side; the knobs"),
    ("tab, ctrl+→, ctrl+l", "accept all of a suggestion, a word, a line"),
    ("ctrl+s", "control: save the project's file"),
    ("esc", "out of an editor or a dialogue"),
    ("ctrl+p", "every command by name"),
    ("q, ctrl+q", "quit"),
)
_FATES = (
    ("accepted", "✓"),
    ("rejected: the model wrote another token", "✗"),
    ("never reached: follows a rejected one", "·"),
)


def help_content() -> Content:
    """The idea, the marks and the keys."""
    assert {mark for _, mark in _FATES} == set(MARKS.values())
    lines = [Content(_IDEA), Content(""), Content.styled("Who wrote a token", "bold")]
    for origin in (*ORIGINS.values(), REJECTED):
        letter = (f" {origin.letter} ", f"bold {origin.style}")
        lines.append(Content.assemble("  ", letter, f"  {origin.name:<12} {origin.meaning}"))
    lines += [Content(""), Content.styled("What became of a draft", "bold")]
    lines += [Content(f"   {mark}   {meaning}") for meaning, mark in _FATES]
    lines += [Content(""), Content.styled("What the tree's figures are", "bold"), Content(_FIGURES)]
    lines += [Content(""), Content.styled("Keys", "bold")]
    lines += [Content.assemble((f"  {keys:<20}", "bold $accent"), meaning) for keys, meaning in _KEYS]
    return Content("\n").join(lines)


class HelpScreen(ModalScreen[None]):
    """What all this means; any of the usual keys closes it."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,q,question_mark,f1,enter", "dismiss", "Close")]

    def compose(self) -> ComposeResult:
        with VerticalScroll(id="help") as box:
            box.border_title = "Help"
            box.border_subtitle = "esc closes"
            yield Static(help_content())

    def on_mount(self) -> None:
        """Let the arrows scroll."""
        self.query_one("#help").focus()


class PathScreen(ModalScreen[Path | None]):
    """Asks for a file's name; None where the user thought better of it."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "give_up", "Cancel")]

    def __init__(self, question: str, default: str) -> None:
        super().__init__()
        self._question = question
        self._default = default

    def compose(self) -> ComposeResult:
        with Vertical(id="ask"):
            yield Label(self._question)
            yield Input(self._default, id="path", select_on_focus=False)
            yield Label("enter writes it, esc does not", classes="hint")

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Answer with the name."""
        name = event.value.strip()
        self.dismiss(Path(name).expanduser() if name else None)

    def action_give_up(self) -> None:
        """Write nothing."""
        self.dismiss(None)
