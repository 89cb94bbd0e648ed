"""What each step was like, over time: tokens, nodes, depth and width of its tree, milliseconds."""

from textual.content import Content

from tui.figures import Recent
from tui.state import View
from tui.widgets.charts import spark
from tui.widgets.panel import Panel

_LABEL = 10
_LAST = 9


def rows(recent: Recent) -> tuple[tuple[str, tuple[float, ...], str], ...]:
    """(what, values, unit), oldest value first."""
    return (
        ("tokens", recent.tokens, ""),
        ("nodes", recent.nodes, ""),
        ("depth", recent.depth, ""),
        ("width", recent.width, ""),
        ("draft", recent.draft_ms, " ms"),
        ("verify", recent.verify_ms, " ms"),
        ("prefill", recent.prefill_ms, " ms"),
    )


class Sparks(Panel):
    """A strip a quantity, each from 0 to its own largest value; the newest value at the right."""

    def draw(self, view: View, width: int, height: int) -> Content:
        del height
        lines = []
        for name, values, unit in rows(view.figures.recent):
            last = f"{values[-1]:.0f}{unit}" if values else "–"
            strip = spark(values, max(width - _LABEL - _LAST, 4))
            lines.append(
                Content.assemble(
                    (f"{name:<{_LABEL}}", "$muted"),
                    (f"{last:>{_LAST - 1}} ", "bold"),
                    (strip, "$accent"),
                )
            )
        return Content("\n").join(lines)
