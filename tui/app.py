"""The Textual application: takes messages in, folds them into its view, and asks the daemon for things."""

from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

from textual.app import SystemCommand
from textual.binding import Binding, BindingType
from textual.screen import Screen

from assistant.errors import DaemonError, UserError
from tui import commands, files, state
from tui.feed import Feed
from tui.measuring import MEASURED, measure
from tui.messages import Arrived, LinkChanged, StatusCame
from tui.panes.clients import ClientsPane
from tui.panes.control import ControlPane
from tui.panes.numbers import NumbersPane
from tui.panes.pane import Pane
from tui.panes.scratch import ScratchPane
from tui.screens import HelpScreen, PathScreen
from tui.source import Source
from tui.state import Link
from tui.trace import Trace
from tui.viewer import PANES, Viewer
from tui.widgets.daemon_box import DaemonBox


class EagleApp(Viewer):
    """`eagle-assist tui`."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("s", "save", "Save"),
        Binding("m", "measure", "Measure", show=False),
        Binding("g", "start_daemon", "Start daemon", show=False),
        Binding("question_mark,f1", "help", "Help", key_display="?"),
        Binding("q", "quit", "Quit"),
    ]

    def __init__(self, source: Source | None, trace: Trace | None = None, folder: Path | None = None) -> None:
        """Show a daemon, or a trace without one; `folder` is whose project's configuration is shown."""
        super().__init__()
        self._folder = folder or Path.cwd()
        self._source = source
        self._trace = trace

    async def on_mount(self) -> None:
        """Open the first pane and follow the daemon, or show the trace."""
        await self.action_pane(PANES[0][0])
        if self._trace is not None:
            view = state.connected(state.take(self.view, self._trace.events), Link.TRACE)
            self.view = replace(view, status=self._trace.status)
            self.refresh_view()
        elif self._source is not None:
            feed = Feed(self._source, self.post_message)
            self.run_worker(feed.run(), group="feed", exclusive=True, exit_on_error=True)

    def make_pane(self, name: str) -> Pane:
        """Every pane but the first."""
        match name:
            case "numbers":
                return NumbersPane(id=name)
            case "scratch":
                return ScratchPane(self._source, id=name)
            case "clients":
                return ClientsPane(id=name)
            case _:
                return ControlPane(self._folder, id=name)

    def get_system_commands(self, screen: Screen[Any]) -> Iterable[SystemCommand]:
        """Everything that a key or a button does, by name, and Textual's own."""
        yield from super().get_system_commands(screen)
        for title, explanation, action in commands.ALL:
            yield SystemCommand(title, explanation, partial(self.run_action, action))

    async def on_unmount(self) -> None:
        """Take leave of the daemon."""
        if self._source is not None:
            with suppress(DaemonError):
                await self._source.close()

    # --- what comes in ---

    def on_arrived(self, message: Arrived) -> None:
        """Fold a batch of the feed in."""
        self.view = state.take(self.view, message.events)
        message.taken.set()
        self.refresh_view()

    def on_link_changed(self, message: LinkChanged) -> None:
        """Say how the daemon stands."""
        self.look(lambda view: state.connected(view, message.link, message.sentence))

    def on_status_came(self, message: StatusCame) -> None:
        """Take the daemon's word on itself in."""
        self.view = replace(self.view, status=message.status)
        self.refresh_view()

    def on_daemon_box_wanted(self, message: DaemonBox.Wanted) -> None:
        """Do with the daemon what a button says."""
        model, head = message.model, message.head
        if message.action == "start":
            self.action_start_daemon()
        elif message.action == "stop":
            self.action_stop_daemon()
        elif message.action == "load":
            self.ask(lambda source: source.load(model, head), f"Loading {model or 'the model'} ...")
        else:
            self.action_unload()

    # --- keys ---

    def action_save(self) -> None:
        """Ask where to, and save what is kept as a trace."""
        view = self.shown
        trace = Trace(tuple(kept.event for kept in view.history), view.status)
        question = f"Save {len(trace.events)} events as a trace (it holds the completed code)"
        self._ask_path(question, files.trace_name(), lambda path: files.save_trace(path, trace))

    def action_export(self) -> None:
        """Ask where to, and export the tree of the step that is looked at as SVG and text."""
        observed = state.current(self.shown)
        if observed is None or observed.step.tree is None:
            self.notify("This step has no tree; ← and → look at others.", severity="warning")
            return
        question = "Export this step's tree as SVG, and as text beside it"
        self._ask_path(question, files.tree_name(observed.step), lambda path: files.export_tree(path, observed))

    def action_help(self) -> None:
        """Show what all this means."""
        self.push_screen(HelpScreen())

    def _ask_path(self, question: str, default: str, write: Callable[[Path], str]) -> None:
        def done(path: Path | None) -> None:
            if path is None:
                return
            try:
                self.notify(write(path))
            except UserError as error:
                self.notify(str(error), severity="error")

        self.push_screen(PathScreen(question, default), done)

    def action_start_daemon(self) -> None:
        """Start a daemon."""
        if self.view.link in {Link.ABSENT, Link.LOST}:
            self.notify("Starting the daemon ...")
            self.ask(lambda source: source.start())

    def action_stop_daemon(self) -> None:
        """End the daemon."""
        self.ask(lambda source: source.shutdown(), "The daemon finishes what runs and ends.")

    def action_load(self) -> None:
        """Load the model."""
        self.ask(lambda source: source.load(None, None), "Loading the model ...")

    def action_unload(self) -> None:
        """Free the model."""
        self.ask(lambda source: source.unload(), "The model is unloaded; the next completion loads it again.")

    def action_measure(self) -> None:
        """Write some tokens one at a time, so that there is something to compare with."""
        if self._source is not None:
            self.notify(f"Writing {MEASURED} tokens one at a time ...")
        self.ask(lambda source: measure(source, state.completion(self.shown)), "Measured.")

    def ask(self, request: Callable[[Source], Awaitable[None]], then: str = "") -> None:
        """Ask the daemon for something; what it says against it becomes a notice."""
        if self._source is None:
            self.notify("A saved trace is shown; there is no daemon to ask.", severity="warning")
            return
        self.run_worker(self._asked(request(self._source), then), group="ask")

    async def _asked(self, answer: Awaitable[None], then: str) -> None:
        try:
            await answer
        except DaemonError as error:
            self.notify(str(error), severity="error")
        else:
            if then:
                self.notify(then)
