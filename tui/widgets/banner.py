"""One line that says that no daemon is there, and which key starts one."""

from textual.content import Content

from tui.state import Link, View
from tui.widgets.panel import Panel


def banner(view: View) -> str:
    """What there is to say, "" where all is well."""
    if view.link is Link.ABSENT:
        return f"{view.sentence} g starts one."
    if view.link is Link.LOST:
        return f"{view.sentence} Trying again; g starts a new one. What is shown is what came before."
    if view.link is Link.LIVE and view.status and view.status.state == "degraded":
        return view.status.message
    return ""


class Banner(Panel):
    """There only where something is wrong."""

    def show(self, view: View) -> None:
        """Appear and vanish with the trouble."""
        self.set_class(bool(banner(view)), "-shown")
        super().show(view)

    def draw(self, view: View, width: int, height: int) -> Content:
        del width, height
        return Content(banner(view))
