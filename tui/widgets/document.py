"""The text around the cursor with the completion in it, each token shaded and lettered by who wrote it."""

from collections.abc import Iterable, Sequence
from itertools import groupby
from operator import itemgetter

from textual.content import Content

from tui import layout, state
from tui.layout import Row
from tui.state import View
from tui.widgets.panel import Panel
from tui.writing import ORIGINS, REJECTED, Writing, writing

_CALLED = (
    ("head", "draft head  "),
    ("retrieval", "nearby text  model: "),
    ("correction", "correction "),
    ("bonus", "bonus "),
    ("target", "alone  "),
    ("", "refused"),
)
"""what the letters stand for, in the width of half a large screen; the model's own three belong together"""


def content(rows: Sequence[Row], *, marks: bool) -> Content:
    """Laid out rows as content, the letters below the generated ones."""
    lines: list[Content] = []
    for row in rows:
        lines.append(_line((cell.text, cell.style) for cell in row.cells))
        if marks and row.marked:
            lines.append(_line((cell.mark, cell.mark_style) for cell in row.cells))
    return Content("\n").join(lines)


def _line(cells: Iterable[tuple[str, str]]) -> Content:
    """Cells as content, one span for neighbours of one style."""
    runs = groupby(cells, key=itemgetter(1))
    return Content.assemble(*(("".join(text for text, _ in run), style) for style, run in runs))


def view_writing(view: View, *, rejected: bool) -> Writing | None:
    """The completion that is looked at, in its text; None before there is any."""
    steps = state.completion(view)
    if not steps:
        return None
    found = writing([observed.step for observed in steps], steps[0].before, steps[0].after)
    return found if rejected else Writing(found.before, found.pieces, "", found.after)


def legend(width: int) -> Content:
    """What the letters mean, as many as fit."""
    parts: list[tuple[str, str]] = []
    for name, called in _CALLED:
        origin = ORIGINS.get(name, REJECTED)
        parts += [(origin.letter, f"bold {origin.mark_style}"), (f" {called}", "$muted")]
    return Content.assemble(*parts).truncate(width)


class Document(Panel):
    """The completion in its document; the rejected draft is shown until the next step, or for a moment."""

    BRIEF_S = 1.5

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002 - Textual's name
        super().__init__(id=id)
        self.marks = True
        self._step: object = None
        self._rejected = True

    def show(self, view: View) -> None:
        """Draw a view; a new step's rejected draft vanishes after a moment, that of a step looked at stays."""
        newest = state.current(view)
        if newest is not self._step:
            self._step = newest
            self._rejected = True
            if view.selected is None and not view.paused:
                self.set_timer(self.BRIEF_S, lambda: self._forget(newest))
        if view.selected is not None:
            self._rejected = True
        super().show(view)

    def draw(self, view: View, width: int, height: int) -> Content:
        found = view_writing(view, rejected=self._rejected)
        if found is None:
            return Content("")
        rows = layout.lay_out(found, width, max(height, 2), marks=self.marks)
        return content(rows, marks=self.marks)

    def _forget(self, step: object) -> None:
        if step is self._step and self.view.selected is None and not self.view.paused:
            self._rejected = False
            self.redraw()


class Legend(Panel):
    """The letters' meanings."""

    def draw(self, view: View, width: int, height: int) -> Content:
        del view, height
        return legend(width)
