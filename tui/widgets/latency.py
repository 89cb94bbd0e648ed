"""How long each stage takes: half of the times are below p50, 19 of 20 below p95."""

from textual.content import Content

from tui import wording
from tui.figures import Recent, quantile
from tui.state import View
from tui.widgets.panel import Panel


def rows(recent: Recent) -> tuple[tuple[str, tuple[float, ...]], ...]:
    """(stage, milliseconds) of the last requests and steps."""
    return (
        ("queue", recent.queue_ms),
        ("prefill", recent.prefill_ms),
        ("draft, a step", recent.draft_ms),
        ("verify, a step", recent.verify_ms),
        ("whole request", recent.total_ms),
    )


class Latency(Panel):
    """A line a stage."""

    def draw(self, view: View, width: int, height: int) -> Content:
        del width, height
        lines = [Content.styled(f"{'':<15}{'p50':>8}{'p95':>8}{'of':>5}", "$muted")]
        for name, values in rows(view.figures.recent):
            middle, high = (wording.milliseconds(quantile(values, part)) for part in (0.5, 0.95))
            lines.append(
                Content.assemble(
                    (f"{name:<15}", "$muted"),
                    (f"{middle:>8}", "bold"),
                    f"{high:>8}",
                    (f"{len(values):>5,}", "$muted"),
                )
            )
        return Content("\n").join(lines)
