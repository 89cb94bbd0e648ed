"""The base of the panes."""

from textual.containers import Container

from tui.state import View
from tui.widgets.draft_tree import DraftTree
from tui.widgets.panel import Panel


class Pane(Container):
    """A part of the screen that shows a view through its panels."""

    can_focus = True

    def show(self, view: View) -> None:
        """Hand the view to every panel inside."""
        for widget in self.query(Panel):
            widget.show(view)
        for tree in self.query(DraftTree):
            tree.entitle(view)

    def enter(self) -> None:
        """Take the keyboard when the pane comes to the front."""
        self.focus()
