"""The part of the application that looks: panes, the view on the screen, and the keys that move in it."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.css.query import NoMatches
from textual.screen import Screen
from textual.widgets import ContentSwitcher, Footer

from tui import clients, state, themes
from tui.panes.live import LivePane
from tui.panes.pane import Pane
from tui.state import View
from tui.widgets.banner import Banner
from tui.widgets.client_list import ClientList
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


class Viewer(App[None]):
    """Shows a view; whoever changes `view` calls `refresh_view`."""

    TITLE = "eagle-assist"
    CSS_PATH = Path(__file__).with_name("app.tcss")
    HORIZONTAL_BREAKPOINTS: ClassVar[list[tuple[int, str]] | None] = [(0, "-narrow"), (110, "-wide")]  # type: ignore[misc]
    BINDINGS: ClassVar[list[BindingType]] = [
        *(Binding(f"{n},f{n + 1}", f"pane('{name}')", title, show=False) for n, (name, title) in enumerate(PANES, 1)),
        Binding("space", "pause", "Pause"),
        Binding("f", "filter", "Filter", show=False),
        Binding("o", "marks", "Origin letters", show=False),
        Binding("d", "theme", "Light or dark", show=False),
    ]

    def __init__(self) -> None:
        super().__init__()
        self.view = View()
        self._frozen: View | None = None
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

    def make_pane(self, name: str) -> Pane:
        """A pane that is opened for the first time."""
        raise NotImplementedError

    def on_timeline_picked(self, message: Timeline.Picked) -> None:
        """Look at a step that was clicked."""
        self.look(lambda view: replace(view, selected=message.number))

    def on_client_list_chosen(self, message: ClientList.Chosen) -> None:
        """Show one client or document, or all."""
        self.look(lambda view: state.narrow(view, message.filter))

    def refresh_view(self) -> None:
        """Hand the view to what is in front."""
        view = self.shown
        with suppress(NoMatches):  # something may still come in while the screen is taken down
            for widget in (self._base.query_one(Headline), self._base.query_one(Banner)):
                widget.show(view)
            self._front().show(view)

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
            await switcher.mount(self.make_pane(name))
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

    def action_filter(self) -> None:
        """Show the next client or document."""
        self.look(lambda view: state.narrow(view, clients.next_filter(view)))

    def action_marks(self) -> None:
        """Show the letters below the text, or not."""
        document = self._base.query_one(Document)
        document.marks = not document.marks
        document.redraw()
