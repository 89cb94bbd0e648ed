"""The base of every widget that draws a view."""

from typing import ClassVar

from textual.content import Content
from textual.geometry import Size
from textual.widget import Widget

from tui.state import View


class Panel(Widget):
    """Draws a view into its own size; what did not change is not painted again, so nothing flickers."""

    DEFAULT_CSS: ClassVar[str] = "Panel { height: auto; }"

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:  # noqa: A002 - Textual's name
        super().__init__(id=id, classes=classes)
        self.view = View()
        self._shown = Content("")
        self._for = Size(0, 0)
        """the size that it was drawn for"""

    def draw(self, view: View, width: int, height: int) -> Content:
        """What is to be seen of the view in so many columns and rows.

        Where the stylesheet leaves the height to the content, `height` is of no account.
        """
        raise NotImplementedError

    def show(self, view: View) -> None:
        """Draw this view from now on."""
        self.view = view
        self.redraw()

    def redraw(self) -> None:
        """Paint again, if that changes anything; lay out again, if it needs another height."""
        before = self._shown
        self._renew()
        if not self._shown.is_same(before):
            grown = self._shown.plain.count("\n") != before.plain.count("\n") or len(self._shown) != len(before)
            self.refresh(layout=grown and self.styles.is_auto_height)

    def render(self) -> Content:
        """What Textual paints."""
        if self.content_size != self._for:
            self._renew()
        return self._shown

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        """The rows that the view takes at that width."""
        del container, viewport
        return self.draw(self.view, width, 0).get_height({}, width)

    def _renew(self) -> None:
        self._for = self.content_size
        if self._for.width > 0:
            content = self.draw(self.view, self._for.width, self._for.height)
            if not content.is_same(self._shown):
                self._shown = content
