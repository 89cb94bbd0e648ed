"""The live view: the document as it is completed, the tree of the step, and why it has that shape."""

from textual.app import ComposeResult
from textual.containers import Container, Vertical

from tui import state
from tui.panes.pane import Pane
from tui.state import View
from tui.widgets.document import Document, Legend
from tui.widgets.draft_tree import DraftTree, Why
from tui.widgets.story import Story
from tui.widgets.timeline import Timeline


class LivePane(Pane):
    """What is being completed, and how."""

    def compose(self) -> ComposeResult:
        yield Story(id="story")
        with Container(id="live-body"):
            with Vertical(id="document-box"):
                yield Document(id="document")
                yield Legend(id="legend")
            with Vertical(id="tree-box"):
                yield DraftTree(id="tree")
                yield Why(id="why")
        yield Timeline(id="timeline")

    def show(self, view: View) -> None:
        super().show(view)
        self.query_one("#document-box").border_title = _title(view)


def _title(view: View) -> str:
    observed = state.current(view)
    if observed is None:
        return "Document"
    name = observed.document.rsplit("/", 1)[-1] or "unnamed"
    return f"{name} · {observed.client} · {observed.method}"
