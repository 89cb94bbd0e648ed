"""The base of every widget that draws a view."""

from textual.content import Content
from textual.widgets import Static

from tui.state import View


class Panel(Static):
    """Draws a view into its own size; what did not change is not painted again, so nothing flickers."""

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:  # noqa: A002 - Textual's name
        super().__init__("", id=id, classes=classes)
        self.view = View()
        self._shown = Content("")

    def draw(self, view: View, width: int, height: int) -> Content:
        """What is to be seen of the view in so many columns and rows."""
        raise NotImplementedError

    def show(self, view: View) -> None:
        """Draw this view from now on."""
        self.view = view
        self.redraw()

    def redraw(self) -> None:
        """Draw the view as it is, if that changes anything."""
        size = self.content_size
        if size.width < 1:
            return
        content = self.draw(self.view, size.width, size.height)
        if content.is_same(self._shown):
            return
        taller = content.plain.count("\n") != self._shown.plain.count("\n")
        self._shown = content
        self.update(content, layout=taller and self.styles.is_auto_height)

    def on_resize(self) -> None:
        """Draw for the new size."""
        self.redraw()
