"""The daemon: what it says of itself, and the buttons that start, stop, load and switch."""

from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.message import Message
from textual.widgets import Button, Input, Label

from tui import wording
from tui.state import Link, View
from tui.widgets.panel import Panel

ACTIONS = (("start", "Start"), ("stop", "Stop"), ("load", "Load"), ("unload", "Unload"))


def lines(view: View) -> tuple[str, ...]:
    """The daemon in three lines."""
    status = view.status
    if view.link is Link.TRACE:
        return ("A saved trace is shown; it was made with:", *(_said(view)[1:] if status else ()))
    if status is None:
        return (view.sentence or "connecting ...",)
    return _said(view)


def _said(view: View) -> tuple[str, ...]:
    status = view.status
    assert status is not None
    up = f"up {status.uptime_s / 60:.0f} min" if status.uptime_s >= 60 else f"up {status.uptime_s:.0f} s"
    trouble = f": {status.message}" if status.message else ""
    loaded = "loaded" if status.loaded else "not loaded"
    return (
        f"pid {status.pid}, version {status.version}, {up}, {wording.megabytes(status.memory_bytes)}, {status.socket}",
        f"{status.model}, {loaded}, {status.precision} on {status.device}; {status.state}{trouble}",
        f"head {status.head or 'none'}, method {status.method}",
    )


class DaemonLines(Panel):
    """What the daemon says of itself."""

    def draw(self, view: View, width: int, height: int) -> Content:
        del height
        return Content("\n").join(Content(line).truncate(width, ellipsis=True) for line in lines(view))


class DaemonBox(Vertical):
    """The lines, the buttons, and fields for another model or head."""

    class Wanted(Message):
        """Something is to be done with the daemon."""

        def __init__(self, action: str, model: str | None = None, head: str | None = None) -> None:
            super().__init__()
            self.action = action
            """start, stop, load or unload"""
            self.model = model
            self.head = head

    def compose(self) -> ComposeResult:
        yield DaemonLines()
        with Horizontal(id="daemon-buttons"):
            for name, title in ACTIONS:
                yield Button(title, id=f"do-{name}", compact=True)
        with Horizontal(id="daemon-fields"):
            yield Label("model ")
            yield Input(placeholder="name or path", compact=True, id="model")
            yield Label(" head ")
            yield Input(placeholder="the model's own", compact=True, id="head")
            yield Label(" enter switches", classes="hint")

    def on_button_pressed(self, event: Button.Pressed) -> None:
        """A button: its action."""
        event.stop()
        self.post_message(self.Wanted((event.button.id or "").removeprefix("do-")))

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Enter in a field: load what both fields name."""
        event.stop()
        model, head = (self.query_one(f"#{name}", Input).value.strip() or None for name in ("model", "head"))
        if model or head:
            self.post_message(self.Wanted("load", model, head))
