"""The numbers: whether drafting pays, where the time goes, and whether the drafter knows what it knows."""

from textual.app import ComposeResult
from textual.containers import Vertical, VerticalScroll

from tui.panes.pane import Pane
from tui.widgets.calibration import Calibration
from tui.widgets.depth import Depth
from tui.widgets.figures import FigureTable
from tui.widgets.latency import Latency
from tui.widgets.panel import Panel
from tui.widgets.sparks import Sparks


class NumbersPane(Pane):
    """Figures of everything that the filter takes."""

    def compose(self) -> ComposeResult:
        boxes: tuple[tuple[str, Panel], ...] = (
            ("Does it pay: all completions", FigureTable()),
            ("All steps, newest at the right", Sparks()),
            ("Accepted by depth, all steps", Depth()),
            ("Latency; speed-up leaves prefill out", Latency()),
            ("Calibration of confidence", Calibration()),
        )
        with VerticalScroll(id="numbers-grid"):
            for title, panel in boxes:
                with Vertical(classes="box") as box:
                    box.border_title = title
                    yield panel

    def enter(self) -> None:
        self.query_one("#numbers-grid").focus()
