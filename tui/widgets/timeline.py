"""The steps as a strip of bars, one a step, as high as the tokens that it gave; the one looked at stands out."""

from collections.abc import Sequence

from textual import events
from textual.content import Content
from textual.message import Message

from assistant.protocol import Observed
from tui import state
from tui.state import Kept, View
from tui.widgets.charts import BARS
from tui.widgets.panel import Panel

_LABEL = 26


def window(view: View, width: int) -> tuple[tuple[Kept, ...], int, tuple[int, int]]:
    """The steps that fit, the index of the one looked at among them, and (its number from 1, how many there are).

    As everywhere, a prefill is no step: its number is that of the step before it.
    """
    shown = state.steps(view)
    at = state.place(view, shown)
    room = max(width - _LABEL, 8)
    first = max(min(at - room // 2, len(shown) - room), 0)
    return shown[first : first + room], at - first, (_verifications(shown[: at + 1]), _verifications(shown))


def _verifications(shown: Sequence[Kept]) -> int:
    return sum(isinstance(kept.event, Observed) and kept.event.step.index > 0 for kept in shown)


def timeline(view: View, width: int) -> Content:
    """The strip and the position in it."""
    shown, at, (number, total) = window(view, width)
    if not shown:
        return Content.styled("no steps yet", "$muted")
    observed = state.current(view)
    if observed is not None and observed.step.index == 0:
        label = f"before step {number + 1:,} of {total:,}"
    else:
        label = f"step {number:,} of {total:,} {'newest' if view.selected is None else ''}"
    parts: list[tuple[str, str]] = [(f"{label:<{_LABEL}}"[:_LABEL], "")]
    for index, kept in enumerate(shown):
        assert isinstance(kept.event, Observed)
        bar, style = _bar(kept.event)
        parts.append((bar, "reverse $warning" if index == at else style))
    return Content.assemble(*parts)


def _bar(observed: Observed) -> tuple[str, str]:
    step = observed.step
    if step.index == 0:
        return "│", "$muted"
    drafted = step.tree is not None and len(step.tree.tokens) > 1
    return BARS[min(max(len(step.tokens), 1), len(BARS)) - 1], "$accent" if drafted else "$muted"


class Timeline(Panel):
    """The strip; a click looks at a step."""

    class Picked(Message):
        """A step of the strip was clicked."""

        def __init__(self, number: int) -> None:
            super().__init__()
            self.number = number

    def draw(self, view: View, width: int, height: int) -> Content:
        del height
        return timeline(view, width)

    def on_click(self, event: events.Click) -> None:
        """Look at the step under the pointer."""
        shown, _, _ = window(self.view, self.content_size.width)
        inside = event.get_content_offset(self)
        index = (inside.x if inside else 0) - _LABEL
        if 0 <= index < len(shown):
            self.post_message(self.Picked(shown[index].number))
