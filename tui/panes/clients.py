"""The clients of the daemon: choose whose completions all the panes show."""

from textual.app import ComposeResult
from textual.containers import Container, Vertical

from tui.panes.pane import Pane
from tui.state import View
from tui.widgets.client_list import ClientList
from tui.widgets.completions import Completions


class ClientsPane(Pane):
    """Who asks, and what became of it."""

    def compose(self) -> ComposeResult:
        with Container(id="clients-body"):
            with Vertical(classes="pile") as box:
                box.border_title = "Show only: enter chooses, f goes through"
                yield ClientList(id="client-list")
            with Vertical(classes="pile") as box:
                box.border_title = "Newest completions"
                yield Completions(id="completions")

    def show(self, view: View) -> None:
        super().show(view)
        self.query_one(ClientList).tell(view)

    def enter(self) -> None:
        self.query_one(ClientList).focus()
