"""Control: the daemon, the configuration in force, and the project's own file."""

from pathlib import Path
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container, Vertical, VerticalScroll
from textual.content import Content
from textual.widgets import Button, Static, TextArea

from assistant.errors import StorageError
from tui import configuration
from tui.panes.pane import Pane
from tui.state import View
from tui.widgets.config_list import ConfigList
from tui.widgets.daemon_box import DaemonBox

_PAUSE_S = 0.2
"""after a key, before the text is checked"""


class ControlPane(Pane):
    """Start and stop, load and switch, look and edit."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+s", "save_project", "Save file"),
        Binding("escape", "leave", "Back", show=False),
    ]

    def __init__(self, folder: Path, *, id: str) -> None:  # noqa: A002 - Textual's name
        super().__init__(id=id)
        self._folder = folder
        self._path = configuration.project_path(folder)
        self._checks = 0

    def compose(self) -> ComposeResult:
        with DaemonBox(id="daemon", classes="pile-low") as box:
            box.border_title = "Daemon"
        with Container(id="config-body"):
            with VerticalScroll(classes="pile", id="config-scroll") as scroll:
                scroll.border_title = "Configuration here, and from where"
                yield ConfigList(id="config-list")
            with Vertical(classes="pile") as box:
                box.border_title = f"{self._path.name} of this project, ctrl+s saves"
                yield TextArea(configuration.read(self._path), id="project", compact=True, show_line_numbers=True)
                yield Static(id="problems")

    def on_mount(self) -> None:
        """What holds, and whether the file is sound."""
        self.query_one(ConfigList).tell(configuration.merged(self._folder))
        self._check()

    def show(self, view: View) -> None:
        super().show(view)
        self.query_one(DaemonBox).offer(view)

    def enter(self) -> None:
        self.query_one("#do-start", Button).focus()

    def on_text_area_changed(self) -> None:
        """Check the text once the typing pauses."""
        self._checks += 1
        mine = self._checks
        self.set_timer(_PAUSE_S, lambda: self._check() if mine == self._checks else None)

    def action_leave(self) -> None:
        """Give the keys back to the pane."""
        self.focus()

    def action_save_project(self) -> None:
        """Save the project's file, if it is sound; the daemon follows it by itself."""
        text = self.query_one("#project", TextArea).text
        if self._check():
            self.notify("Not saved: the file has errors, listed below it.", severity="error")
            return
        try:
            configuration.save(self._path, text)
        except StorageError as error:
            self.notify(str(error), severity="error")
            return
        self.query_one(ConfigList).tell(configuration.merged(self._folder))
        self.notify(f"Saved {self._path}; a running daemon takes it over.")

    def _check(self) -> int:
        """Show what is wrong with the text; how many problems that are."""
        found = configuration.problems(self._path, self.query_one("#project", TextArea).text)
        shown = self.query_one("#problems", Static)
        if found:
            lines = [f"✗ {p.line or 1}:{p.column or 1}  {p.sentence}" for p in found]
            shown.update(Content("\n").join(Content.styled(line, "$error") for line in lines))
        else:
            shown.update(Content.styled("✓ no errors", "$success"))
        return len(found)
