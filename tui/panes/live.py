"""The live view: the document as it is completed, the tree of the step, and why it has that shape."""

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container, Vertical

from tui import state
from tui.panes.pane import Pane
from tui.state import View
from tui.widgets.depth import Depth
from tui.widgets.document import Document, Legend
from tui.widgets.draft_tree import DraftTree, Why
from tui.widgets.sparks import Sparks
from tui.widgets.story import Story
from tui.widgets.timeline import Timeline


class LivePane(Pane):
    """What is being completed, and how."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left", "app.step(-1)", "Steps", key_display="←/→"),
        Binding("right", "app.step(1)", "Next step", show=False),
        Binding("up", "app.completion(-1)", "Texts", key_display="↑/↓"),
        Binding("down", "app.completion(1)", "Next completion", show=False),
        Binding("home", "app.first", "Oldest step", show=False),
        Binding("end", "app.newest", "Newest", show=False),
        Binding("pageup", "scroll_tree(-1)", "Scroll the tree", show=False),
        Binding("pagedown", "scroll_tree(1)", "Scroll the tree", show=False),
        Binding("e", "app.export", "Export"),
    ]

    def compose(self) -> ComposeResult:
        yield Story(id="story")
        with Container(id="live-body"):
            with Vertical(id="document-box"):
                yield Document(id="document")
                yield Legend(id="legend")
            with Vertical(id="tree-box"):
                yield DraftTree(id="tree")
                yield Why(id="why")
                for title, panel in (
                    ("Accepted by depth, all steps", Depth()),
                    ("All steps, newest at the right", Sparks()),
                ):
                    with Vertical(classes="box only-wide") as box:
                        box.border_title = title
                        yield panel
        yield Timeline(id="timeline")

    def action_scroll_tree(self, by: int) -> None:
        """Scroll the tree by half of what is seen."""
        tree = self.query_one(DraftTree)
        tree.scroll_relative(y=by * max(tree.size.height // 2, 1), animate=False)

    def show(self, view: View) -> None:
        super().show(view)
        self.query_one("#document-box").border_title = _title(view)


def _title(view: View) -> str:
    observed = state.current(view)
    if observed is None:
        return "Document"
    name = observed.document.rsplit("/", 1)[-1] or "unnamed"
    return f"{name} · asked by {observed.client} · {observed.method}"
