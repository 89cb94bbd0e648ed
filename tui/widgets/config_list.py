"""The configuration in force, each value with where it came from; what was set stands out from the defaults."""

from textual.content import Content

from tui.configuration import Configuration, Line
from tui.state import View
from tui.widgets.panel import Panel

_KEY = 27
_VALUE = 16
_ROOM = 64
"""columns from which on values and origins stand below one another"""


class ConfigList(Panel):
    """A line a setting, those that were set first; or the problems that keep it from holding."""

    configuration = Configuration()

    def tell(self, configuration: Configuration) -> None:
        """Show this configuration."""
        self.configuration = configuration
        self.redraw()

    def draw(self, view: View, width: int, height: int) -> Content:
        del view, height
        found = self.configuration
        if found.problems:
            return Content("\n").join(Content.styled(str(p), "$error") for p in found.problems)
        lines = sorted(found.lines, key=lambda line: line.default)
        return Content("\n").join(_line(line, columns=width >= _ROOM) for line in lines)


def _line(line: Line, *, columns: bool) -> Content:
    key, value = (f"{line.key:<{_KEY}}", f"{line.value:<{_VALUE}}") if columns else (f"{line.key} =", line.value)
    if line.default:
        return Content.assemble(f"  {key} ", (f"{value} ", "$muted"), ("default" if columns else "", "$faint"))
    return Content.assemble(("▶ ", "bold $accent"), (f"{key} {value} ", "bold"), (line.origin, "$accent"))
