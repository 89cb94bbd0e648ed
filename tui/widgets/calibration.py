"""Whether confidence can be trusted: of guesses made with a confidence, how many were accepted."""

from textual.content import Content

from tui.figures import calibration_error
from tui.state import View
from tui.widgets.charts import needle
from tui.widgets.panel import Panel


class Calibration(Panel):
    """A bar for each tenth of confidence: accepted, with a mark where the confidence lay (there it should end)."""

    def draw(self, view: View, width: int, height: int) -> Content:
        del height
        error = calibration_error(view.figures)
        if error is None:
            return Content.styled("no drafts yet", "$muted")
        room = max(width - 24, 6)
        lines = [Content.styled("said   was   ◆ said, █ was", "$muted")]
        for row in reversed(view.figures.bins):
            if not row.guesses:
                continue
            said, was = row.confidence / row.guesses, row.accepted / row.guesses
            lines.append(
                Content.assemble(
                    (f"{said:4.2f}  ", "$muted"),
                    (f"{was:4.2f}  ", "bold"),
                    (needle(was, said, room), "$accent"),
                    (f" of {row.guesses:,}", "$muted"),
                )
            )
        lines.append(Content.styled(f"off by {error:.2f} on average", "$muted"))
        return Content("\n").join(lines)
