"""The daemon: what it says of itself, and the buttons that start, stop, load and switch."""

from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.message import Message
from textual.widgets import Button, Input, Label, Select

from tui import wording
from tui.state import Link, View
from tui.widgets.panel import Panel

KINDS = (("model", "as it is"), ("head", "the model's own"))
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
    memory = wording.megabytes(status.memory_bytes)
    if status.device_memory_bytes:
        memory += f" and {wording.megabytes(status.device_memory_bytes)} VRAM"
    return (
        f"pid {status.pid}, version {status.version}, {up}, {memory}, {status.socket}",
        f"{status.model}, {loaded}, {status.precision} on {status.device}; {status.state}{trouble}",
        f"head {status.head or 'none'}, draft model {status.draft or 'none'}, method {status.method}",
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

    _known: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())

    def compose(self) -> ComposeResult:
        yield DaemonLines()
        with Horizontal(id="daemon-buttons"):
            for name, title in ACTIONS:
                yield Button(title, id=f"do-{name}", compact=True)
        with Horizontal(classes="daemon-fields"):
            for kind, prompt in KINDS:
                yield Label(f" {kind:<6}")
                yield Select[str]((), prompt=prompt, compact=True, id=f"known-{kind}")
            yield Label(" Load switches", classes="hint")
        with Horizontal(classes="daemon-fields"):
            for kind, _ in KINDS:
                yield Label(" or    ")
                yield Input(placeholder=f"a {kind}'s path or name", compact=True, id=kind)
            yield Label(" enter loads", classes="hint")

    def offer(self, view: View) -> None:
        """List the models and heads that the daemon knows."""
        known = (view.status.models, view.status.heads) if view.status else ((), ())
        if known == self._known:
            return
        self._known = known
        for (kind, _), names in zip(KINDS, known, strict=True):
            self._select(kind).set_options((name, name) for name in names)

    def on_button_pressed(self, event: Button.Pressed) -> None:
        """A button: its action; to load is to load what is chosen."""
        event.stop()
        action = (event.button.id or "").removeprefix("do-")
        chosen = [self._chosen(kind) for kind, _ in KINDS] if action == "load" else (None, None)
        self.post_message(self.Wanted(action, *chosen))

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Enter in a field: load what is named."""
        event.stop()
        model, head = (self._chosen(kind) for kind, _ in KINDS)
        if model or head:
            self.post_message(self.Wanted("load", model, head))

    def _chosen(self, kind: str) -> str | None:
        """What was typed, else what was chosen from the list, else nothing."""
        select = self._select(kind)
        listed = None if select.is_blank() else str(select.value)
        return self.query_one(f"#{kind}", Input).value.strip() or listed

    def _select(self, kind: str) -> Select[str]:
        return self.query_one(f"#known-{kind}", Select)
