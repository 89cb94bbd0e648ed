"""The scratch pad's knobs in a line or two: methods, the tree's bounds, temperature, length."""

from typing import Literal

from textual.app import ComposeResult
from textual.containers import Container, Horizontal
from textual.message import Message
from textual.widgets import Input, Label, Select

from tui.scratch import METHODS, Knobs

_FIELDS: tuple[tuple[str, str, int, Literal["integer", "number"]], ...] = (
    ("nodes", "nodes", 4, "integer"),
    ("depth", "depth", 4, "integer"),
    ("width", "width", 4, "integer"),
    ("temperature", "temp", 5, "number"),
    ("max_tokens", "tokens", 5, "integer"),
)
"""(name, label, columns, type of input)"""


class KnobBar(Container):
    """Posts `Turned` whenever a knob has another valid value; an empty bound is the configuration's."""

    class Turned(Message):
        """A knob was turned."""

    def compose(self) -> ComposeResult:
        defaults = Knobs()
        choices = [(method, method) for method in METHODS]
        with Horizontal():
            yield Label("method ")
            yield Select(choices, value="auto", allow_blank=False, compact=True, id="method")
            yield Label(" against ")
            yield Select(choices, value="plain", allow_blank=False, compact=True, id="against")
        with Horizontal():
            for name, label, columns, kind in _FIELDS:
                yield Label(f" {label} ")
                yield _field(name, getattr(defaults, name), columns, kind)

    @property
    def methods(self) -> tuple[str, str]:
        """The method, and the one that it is compared with."""
        return str(self.query_one("#method", Select).value), str(self.query_one("#against", Select).value)

    def knobs(self, seed: int) -> Knobs:
        """The values as they stand; what is no number counts as not given."""
        given = {name: _number(self.query_one(f"#{name}", Input).value) for name, *_ in _FIELDS}
        whole = {name: None if given[name] is None else int(given[name] or 0) for name in ("nodes", "depth", "width")}
        return Knobs(
            **whole,
            temperature=given["temperature"] or 0.0,
            max_tokens=int(given["max_tokens"] or Knobs().max_tokens),
            seed=seed,
        )

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """A number was entered."""
        event.stop()
        self.post_message(self.Turned())

    def on_select_changed(self, event: Select.Changed) -> None:
        """Another method was chosen."""
        event.stop()
        self.post_message(self.Turned())


def _field(name: str, value: float | None, columns: int, kind: Literal["integer", "number"]) -> Input:
    shown = "" if value is None else f"{value:g}"
    field = Input(shown, placeholder="auto", type=kind, compact=True, id=name)
    field.styles.width = columns + 1
    return field


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None
