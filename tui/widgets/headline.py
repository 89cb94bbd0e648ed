"""The first line: whether a daemon is there, and what it runs."""

from textual.content import Content

from tui import wording
from tui.state import Link, View
from tui.widgets.panel import Panel

_LINKS = {
    Link.CONNECTING: ("○ connecting", "$muted"),
    Link.LIVE: ("● live", "bold $success"),
    Link.ABSENT: ("○ no daemon", "bold $warning"),
    Link.LOST: ("✗ daemon lost", "bold $error"),
    Link.TRACE: ("▤ trace", "bold $accent"),
}


def headline(view: View) -> Content:
    """The link's mark, whether the view stands still, and the daemon in figures."""
    parts: list[Content | str | tuple[str, str]] = [_LINKS[view.link]]
    if view.paused:
        parts.append(("  ‖ paused", "bold $warning"))
    if not view.filter.everything:
        parts.append((f"  only {view.filter.client or view.filter.document}", "bold $accent"))
    if view.status:
        parts.append(f"  {wording.daemon(view.status)}")
    return Content.assemble(*parts)


class Headline(Panel):
    """One line at the top."""

    def draw(self, view: View, width: int, height: int) -> Content:
        del height
        return headline(view).truncate(width, ellipsis=True)
