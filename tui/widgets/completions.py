"""The newest completions, a line each: whose, how many tokens in how many steps, and what became of them."""

from pathlib import PurePath

from textual.content import Content

from tui import clients, wording
from tui.clients import Ended
from tui.state import View
from tui.widgets.panel import Panel

_MARKS = {"accepted": "✓", "kept": "✓", "partly": "◐", "rejected": "✗"}


class Completions(Panel):
    """The list, the newest at the top."""

    def draw(self, view: View, width: int, height: int) -> Content:
        found = clients.ended(view, max(height - 1, 1))
        if not found:
            return Content.styled("no completions yet", "$muted")
        head = Content.styled(f"  {'client':<10}{'document':<16}{'tokens':>7}{'steps':>7}{'time':>9}  end", "$muted")
        return Content("\n").join([head, *(_line(end).truncate(width, ellipsis=True) for end in found)])


def _line(end: Ended) -> Content:
    mark = next((_MARKS[outcome] for outcome in reversed(end.outcomes) if outcome in _MARKS), " ")
    document = PurePath(end.document).name or "unnamed"
    spent = wording.milliseconds(end.total_ms or None)
    figures = f"{end.client:<10.9}{document:<16.15}{end.tokens:>7}{end.steps:>7}{spent:>9}"
    return Content.assemble(
        (f"{mark} ", "bold $accepted"),
        figures,
        (f"  {', '.join(end.outcomes) or 'running'} · {end.method}", "$muted"),
    )
