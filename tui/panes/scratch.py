"""The scratch pad: a text of one's own, completed at the cursor by one method or by two side by side."""

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container
from textual.widgets import Static
from textual.worker import Worker

from assistant.errors import DaemonError
from tui import scratch
from tui.panes.pane import Pane
from tui.scratch import EXAMPLE, Attempt
from tui.source import Source
from tui.state import View
from tui.widgets.attempt import AttemptPanel
from tui.widgets.editor import Editor
from tui.widgets.knobs import KnobBar

PATH = "scratch.py"
_RATE = 15


class ScratchPane(Pane):
    """An editor, its knobs, and what came of them."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+g,ctrl+@", "complete", "Complete"),
        Binding("ctrl+r", "regenerate", "Again"),
        Binding("ctrl+b", "compare", "Both"),
        Binding("ctrl+o", "knobs", "Knobs"),
    ]

    def __init__(self, source: Source | None, *, id: str) -> None:  # noqa: A002 - Textual's name
        super().__init__(id=id)
        self._source = source
        self._attempts: list[Attempt] = []
        self._both = False
        self._seed = 0
        self._changed = False
        self._worker: Worker[None] | None = None
        self._view = View()

    def compose(self) -> ComposeResult:
        yield KnobBar()
        with Container(id="scratch-body"):
            yield Editor(EXAMPLE, id="editor")
            with Container(id="attempts"):
                yield AttemptPanel(id="one")
                yield AttemptPanel(id="other")
        yield Static(id="verdict")

    def on_mount(self) -> None:
        """The cursor at the text's end; redraw what came in at a steady rate."""
        editor = self.query_one(Editor)
        editor.move_cursor(editor.document.end)
        self.set_interval(1 / _RATE, self._draw)
        self._changed = True

    def show(self, view: View) -> None:
        super().show(view)
        self._view = view

    def enter(self) -> None:
        self.query_one(Editor).focus()

    # --- keys and knobs ---

    def action_complete(self) -> None:
        """Complete at the cursor by the method chosen."""
        self._both = False
        self._ask()

    def action_compare(self) -> None:
        """Complete by both methods, one after the other so that neither slows the other down."""
        self._both = True
        self._ask()

    def action_regenerate(self) -> None:
        """Complete again; above temperature 0 with other chances."""
        self._seed += 1
        if not self.query_one(KnobBar).knobs(0).temperature:
            self.notify("At temperature 0 the text stays the same; raise temp for another one.")
        self._ask()

    def action_knobs(self) -> None:
        """Go to the knobs, and from there with tab and shift+tab."""
        self.query_one("#method").focus()

    def on_knob_bar_turned(self) -> None:
        """Show what a knob does, if there is something to show it on."""
        if self._attempts:
            self._ask()

    def on_editor_left(self) -> None:
        """Escape leaves the editor, so that the other keys can be used."""
        self.focus()

    def on_editor_accepted(self, message: Editor.Accepted) -> None:
        """Tell the daemon what was accepted."""
        if self._attempts and self._source is not None:
            outcome = "partly" if message.left else "accepted"
            self._tell(self._attempts[0].request, outcome, message.characters)

    def on_editor_dismissed(self) -> None:
        """Tell the daemon that it was not."""
        if self._attempts and self._source is not None:
            self._tell(self._attempts[0].request, "rejected", 0)

    # --- asking ---

    def _ask(self) -> None:
        if self._source is None:
            self.notify("A saved trace is shown; there is no daemon to ask.", severity="warning")
            return
        if self._worker is not None:
            self._worker.cancel()
        editor = self.query_one(Editor)
        at = editor.cursor_offset
        before, after = editor.text[:at], editor.text[at:]
        methods = self.query_one(KnobBar).methods[: 2 if self._both else 1]
        self._attempts = [Attempt(method, before, after, waiting="asking") for method in methods]
        self._changed = True
        self._worker = self.run_worker(self._run(self._source, at), group="scratch")

    async def _run(self, source: Source, at: int) -> None:
        knobs = self.query_one(KnobBar).knobs(self._seed)
        for index, attempt in enumerate(list(self._attempts)):
            if refusal := scratch.why_not(attempt.method, self._view.status):
                self._attempts[index] = Attempt(attempt.method, failure=refusal)
                self._changed = True
                continue
            request = knobs.request(attempt.method, PATH, attempt.before, attempt.after)
            try:
                async for event in source.complete(request):
                    self._attempts[index] = scratch.take(self._attempts[index], event)
                    self._changed = True
            except DaemonError as error:
                self._attempts[index] = Attempt(attempt.method, failure=str(error))
                self._changed = True
                return
            if index == 0 and self._attempts[0].text:
                self.query_one(Editor).offer(self._attempts[0].text, at)
                self._tell(self._attempts[0].request, "shown", 0)

    def _tell(self, request: str, outcome: str, characters: int) -> None:
        source = self._source
        assert source is not None

        async def tell() -> None:
            try:
                await source.feedback(request, outcome, characters)
            except DaemonError:
                self.log(f"no daemon to tell that a suggestion was {outcome}")

        self.run_worker(tell(), group="feedback")

    def _draw(self) -> None:
        if not self._changed:
            return
        self._changed = False
        attempts = self._attempts
        self.query_one("#one", AttemptPanel).tell(attempts[0] if attempts else None)
        other = self.query_one("#other", AttemptPanel)
        other.display = len(attempts) > 1
        if len(attempts) > 1:
            other.tell(attempts[1])
        self.query_one("#verdict", Static).update(scratch.verdict(*attempts) if len(attempts) > 1 else "")
