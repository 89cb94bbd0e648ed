"""The configuration in force, each value with where it came from; what was set stands out from the defaults."""

from textual.content import Content
from textual.widgets import Static

from tui.configuration import Configuration, Line

_KEY = 27
_VALUE = 16
_ROOM = 64
"""columns from which on values and origins stand below one another"""


class ConfigList(Static):
    """A line a setting, those that were set first; or the problems that keep it from holding."""

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002 - Textual's name
        super().__init__("", id=id)
        self._configuration = Configuration()

    def tell(self, configuration: Configuration) -> None:
        """Show this configuration."""
        self._configuration = configuration
        self._draw()

    def on_resize(self) -> None:
        """Columns where there is room for them."""
        self._draw()

    def _draw(self) -> None:
        found = self._configuration
        if found.problems:
            self.update(Content("\n").join(Content.styled(str(p), "$error") for p in found.problems))
            return
        columns = self.size.width >= _ROOM
        lines = sorted(found.lines, key=lambda line: line.default)
        self.update(Content("\n").join(_line(line, columns=columns) for line in lines))


def _line(line: Line, *, columns: bool) -> Content:
    key, value = (f"{line.key:<{_KEY}}", f"{line.value:<{_VALUE}}") if columns else (f"{line.key} =", line.value)
    if line.default:
        return Content.assemble(f"  {key} ", (f"{value} ", "$muted"), ("default" if columns else "", "$faint"))
    return Content.assemble(("▶ ", "bold $accent"), (f"{key} {value} ", "bold"), (line.origin, "$accent"))
