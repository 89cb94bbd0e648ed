"""What one method wrote on the scratch pad, with who wrote each token and what it took."""

from textual.content import Content

from tui import layout, wording
from tui.scratch import Attempt
from tui.state import View
from tui.widgets.document import content
from tui.widgets.panel import Panel
from tui.writing import Writing


def title(attempt: Attempt) -> str:
    """The method and its figures."""
    figures = attempt.figures
    per_step = figures.tokens_per_step
    if per_step is None:
        return attempt.method
    pace = attempt.decode_ms / figures.tokens if figures.tokens else None
    written = wording.count(sum(figures.origins.values()) + figures.plain_tokens, "token")
    return f"{attempt.method}: {per_step:.2f} a step, {wording.milliseconds(pace)} a token, {written}"


class AttemptPanel(Panel):
    """The text of an attempt, its end in sight."""

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002 - Textual's name
        super().__init__(id=id, classes="attempt")
        self.attempt: Attempt | None = None

    def tell(self, attempt: Attempt | None) -> None:
        """Draw this attempt from now on."""
        self.attempt = attempt
        self.border_title = title(attempt) if attempt else "Completion"
        self.redraw()

    def draw(self, view: View, width: int, height: int) -> Content:
        del view
        attempt = self.attempt
        if attempt is None:
            return Content.styled("ctrl+g completes at the cursor, ctrl+b compares two methods.", "$muted")
        if attempt.failure:
            return Content.styled(attempt.failure, "bold $error")
        if not attempt.steps:
            return Content.styled(f"{attempt.waiting or 'asking'} ...", "$muted")
        found = attempt.writing()
        own = Writing("", found.pieces, "" if attempt.ended else found.rejected, "")
        note = _note(attempt)
        rows = layout.lay_out(own, width, max(height - bool(note), 2), marks=True)
        drawn = content(rows, marks=True)
        return Content("\n").join([drawn, Content.styled(note, "$warning")]) if note else drawn


def _note(attempt: Attempt) -> str:
    """Where less is suggested than was written: why."""
    done = attempt.done
    if done is None or not done.reason:
        return ""
    return f"{done.finish}: {done.reason}"
