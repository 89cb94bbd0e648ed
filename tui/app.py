"""The Textual application: takes messages in, folds them into a view and hands that to the pane in front."""

from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

from textual.app import App, ComposeResult, SystemCommand
from textual.binding import Binding, BindingType
from textual.screen import Screen
from textual.widgets import ContentSwitcher, Footer

from assistant.errors import DaemonError, UserError
from tui import clients, commands, files, state, themes
from tui.feed import Feed
from tui.measuring import MEASURED, measure
from tui.messages import Arrived, LinkChanged, StatusCame
from tui.panes.clients import ClientsPane
from tui.panes.control import ControlPane
from tui.panes.live import LivePane
from tui.panes.numbers import NumbersPane
from tui.panes.pane import Pane
from tui.panes.scratch import ScratchPane
from tui.screens import HelpScreen, PathScreen
from tui.source import Source
from tui.state import Link, View
from tui.trace import Trace
from tui.widgets.banner import Banner
from tui.widgets.client_list import ClientList
from tui.widgets.daemon_box import DaemonBox
from tui.widgets.document import Document
from tui.widgets.headline import Headline
from tui.widgets.tab_strip import TabStrip
from tui.widgets.timeline import Timeline

PANES = (
    ("live", "Live"),
    ("numbers", "Numbers"),
    ("scratch", "Scratch pad"),
    ("clients", "Clients"),
    ("control", "Control"),
)


class EagleApp(App[None]):
    """`eagle-assist tui`."""

    TITLE = "eagle-assist"
    CSS_PATH = "app.tcss"
    HORIZONTAL_BREAKPOINTS: ClassVar[list[tuple[int, str]] | None] = [(0, "-narrow"), (110, "-wide")]
    BINDINGS: ClassVar[list[BindingType]] = [
        *(Binding(f"{n},f{n + 1}", f"pane('{name}')", title, show=False) for n, (name, title) in enumerate(PANES, 1)),
        Binding("space", "pause", "Pause"),
        Binding("s", "save", "Save"),
        Binding("f", "filter", "Filter", show=False),
        Binding("m", "measure", "Measure", show=False),
        Binding("o", "marks", "Origin letters", show=False),
        Binding("g", "start_daemon", "Start daemon", show=False),
        Binding("d", "theme", "Light or dark", show=False),
        Binding("question_mark,f1", "help", "Help", key_display="?"),
        Binding("q", "quit", "Quit"),
    ]

    def __init__(self, source: Source | None, trace: Trace | None = None, folder: Path | None = None) -> None:
        """Show a daemon, or a trace without one; `folder` is whose project's configuration is shown."""
        super().__init__()
        self._folder = folder or Path.cwd()
        self.view = View()
        self._frozen: View | None = None
        self._source = source
        self._trace = trace
        for theme in (themes.DARK, themes.LIGHT):
            self.register_theme(theme)
        self.theme = themes.DARK.name

    def get_theme_variable_defaults(self) -> dict[str, str]:
        """The names of the program's own colours, for Textual's other themes."""
        return themes.DARK.variables

    @property
    def shown(self) -> View:
        """The view on the screen: the newest, or where it was paused."""
        return self._frozen or self.view

    def compose(self) -> ComposeResult:
        yield Headline()
        yield TabStrip(PANES)
        yield Banner()
        with ContentSwitcher(initial=PANES[0][0]):
            yield LivePane(id="live")
        yield Footer(compact=True)

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

    def on_timeline_picked(self, message: Timeline.Picked) -> None:
        """Look at a step that was clicked."""
        self.look(lambda view: replace(view, selected=message.number))

    def on_client_list_chosen(self, message: ClientList.Chosen) -> None:
        """Show one client or document, or all."""
        self.look(lambda view: state.narrow(view, message.filter))

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

    # --- what is seen ---

    def refresh_view(self) -> None:
        """Hand the view to what is in front."""
        view = self.shown
        for widget in (self._base.query_one(Headline), self._base.query_one(Banner)):
            widget.show(view)
        self._front().show(view)

    def _pane(self, name: str) -> Pane:
        match name:
            case "numbers":
                return NumbersPane(id=name)
            case "scratch":
                return ScratchPane(self._source, id=name)
            case "clients":
                return ClientsPane(id=name)
            case _:
                return ControlPane(self._folder, id=name)

    @property
    def _base(self) -> Screen[Any]:
        """The screen below the dialogues, which goes on while one is open."""
        return self.screen_stack[0]

    def _front(self) -> Pane:
        return self._base.query_one(f"#{self._base.query_one(ContentSwitcher).current}", Pane)

    def look(self, change: Callable[[View], View]) -> None:
        """Change what is looked at, in the view that grows and in the one that stands still."""
        self.view = change(self.view)
        if self._frozen is not None:
            self._frozen = change(self._frozen)
        self.refresh_view()

    # --- keys ---

    async def action_pane(self, name: str) -> None:
        """Open a pane; it is made when it is first opened."""
        switcher = self._base.query_one(ContentSwitcher)
        if all(pane.id != name for pane in switcher.children):
            await switcher.mount(self._pane(name))
        switcher.current = name
        self._base.query_one(TabStrip).mark(name)
        self.refresh_view()
        self._front().enter()

    def action_pause(self) -> None:
        """Let the view stand still, or catch up; the feed goes on behind it."""
        if self._frozen is None:
            self._frozen = replace(self.view, paused=True)
        else:
            self._frozen = None
            self.view = replace(self.view, selected=None)
        self.refresh_view()

    def action_step(self, by: int) -> None:
        """Look at another step."""
        self.look(lambda view: state.move(view, by))

    def action_completion(self, by: int) -> None:
        """Look at another completion."""
        self.look(lambda view: state.select_completion(view, by))

    def action_first(self) -> None:
        """Look at the oldest step that is kept."""
        self.look(lambda view: replace(view, selected=-1))

    def action_newest(self) -> None:
        """Go on with the newest step."""
        self.look(lambda view: replace(view, selected=None))

    def action_theme(self) -> None:
        """Change between light and dark."""
        self.theme = (themes.LIGHT if self.current_theme.dark else themes.DARK).name

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

    def action_filter(self) -> None:
        """Show the next client or document."""
        self.look(lambda view: state.narrow(view, clients.next_filter(view)))

    def action_marks(self) -> None:
        """Show the letters below the text, or not."""
        document = self._base.query_one(Document)
        document.marks = not document.marks
        document.redraw()

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
