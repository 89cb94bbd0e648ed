"""How often a draft is accepted at each depth of the tree, of the steps whose path came that far."""

from textual.content import Content

from tui.figures import acceptance
from tui.state import View
from tui.widgets.charts import bar
from tui.widgets.panel import Panel

_DEEPEST = 10
_ENOUGH = 5
"""tries below which a share says little"""


class Depth(Panel):
    """A bar a depth."""

    def draw(self, view: View, width: int, height: int) -> Content:
        del height
        found = acceptance(view.figures)[:_DEEPEST]
        if not found:
            return Content.styled("no drafts yet", "$muted")
        most = len(f"{found[0][2]:,}")
        room = max(width - 10 - most - 4 - len(" (few)"), 4)
        return Content("\n").join(
            Content.assemble(
                (f"{depth:>2} ", "$muted"),
                (f"{share:>5.0%} ", "bold"),
                (bar(share, room).ljust(room), "$accepted" if tries >= _ENOUGH else "$faint"),
                (f" of {tries:,}{'' if tries >= _ENOUGH else ' (few)'}", "$muted"),
            )
            for depth, share, tries in found
        )
