"""The scratch pad's editor: Textual's, with a suggestion that can be accepted whole, by word or by line."""

from typing import ClassVar

from rich.segment import Segment
from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Offset, Region, Size
from textual.message import Message
from textual.strip import Strip
from textual.widgets import TextArea

from tui.ghost import ghost_rows
from tui.scratch import next_line, next_word, remaining

_KEYS = {"tab": "all", "ctrl+right": "word"}
"""keys that accept a suggestion and otherwise mean what they mean in any editor: a binding would take them for good"""


class Editor(TextArea):
    """Shows what is left of its suggestion as ghost text: behind the cursor, and in rows of its own below it."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("tab", "accept('all')", "Accept", key_display="tab ^→ ^l"),
        Binding("ctrl+l", "accept('line')", "Accept a line", show=False),
        Binding("escape", "dismiss", "Back", priority=True),
    ]

    class Accepted(Message):
        """A part of the suggestion was taken."""

        def __init__(self, characters: int, left: str) -> None:
            super().__init__()
            self.characters = characters
            """of the suggestion so far"""
            self.left = left

    class Dismissed(Message):
        """What was left of the suggestion was not wanted."""

    class Left(Message):
        """Escape was pressed with nothing to dismiss."""

    def __init__(self, text: str, *, id: str | None = None) -> None:  # noqa: A002 - Textual's name
        self._below: tuple[str, ...] = ()
        """the ghost's rows below the cursor's; the text below it stands so much lower"""
        super().__init__(text, id=id, show_line_numbers=True, compact=True, tab_behavior="indent")
        self.hide_suggestion_on_blur = False
        self._offered = ""
        self._at = 0
        """the offset at which the suggestion begins"""

    @property
    def cursor_offset(self) -> int:
        """The cursor as a number of characters."""
        row, column = self.cursor_location
        return sum(len(line) + 1 for line in self.text.split("\n")[:row]) + column

    @property
    def left(self) -> str:
        """What of the suggestion is still ahead; "" where the text went another way."""
        offset = self.cursor_offset
        return remaining(self._offered, self.text[self._at : offset]) if offset >= self._at else ""

    def offer(self, suggestion: str, at: int) -> None:
        """Show a suggestion for the cursor at that offset."""
        self._offered, self._at = suggestion, at
        self.update_suggestion()
        self.refresh_bindings()

    def update_suggestion(self) -> None:
        """Called by the base class after every edit and move: the ghost is what is left, at the end of a line."""
        row, column = self.cursor_location
        left = self.left if column >= len(self.document.get_line(row)) else ""
        at = self.wrapped_document.location_to_offset((row, column))
        first, below = ghost_rows(left, at.x, max(self.wrap_width, 1), max(self.size.height - 1, 0))
        self.suggestion = first
        if below != self._below:
            self._below = below
            self._refresh_size()
            self.refresh()
            self.call_after_refresh(self._scroll_to_ghost)

    def watch_selection(self) -> None:
        """The cursor moved: the ghost goes with it, or away."""
        if self.is_mounted:
            self.update_suggestion()

    def on_resize(self) -> None:
        """The ghost is cut to the new width."""
        self.update_suggestion()

    def _refresh_size(self) -> None:
        """The ghost's rows can be scrolled to."""
        super()._refresh_size()
        if self._below:
            self.virtual_size = Size(0, self.wrapped_document.height + len(self._below))
            self._refresh_scrollbars()

    def _scroll_to_ghost(self) -> None:
        if self._below:
            row = self.wrapped_document.location_to_offset(self.cursor_location).y
            self.scroll_to_region(Region(0, row, 1, 1 + len(self._below)), animate=False, force=True)

    def render_line(self, y: int) -> Strip:
        """A row of the text, or of the ghost, below which the text stands lower."""
        below = self.scroll_offset.y + y - self.wrapped_document.location_to_offset(self.cursor_location).y
        if not self._below or below <= 0:
            return super().render_line(y)
        if below > len(self._below):
            return super().render_line(y - len(self._below))
        style = self.get_component_rich_style("text-area--suggestion")
        row = Segment(" " * self.gutter_width + self._below[below - 1], style)
        return Strip([row]).adjust_cell_length(self.size.width, self.rich_style).apply_style(self.rich_style)

    def get_target_document_location(self, event: events.MouseEvent) -> tuple[int, int]:
        """The place in the text that was clicked; the ghost's rows are the cursor's."""
        x = event.x + self.scroll_offset.x - self.gutter.left - self.gutter_width
        y = event.y + self.scroll_offset.y - self.gutter.top
        below = y - self.wrapped_document.location_to_offset(self.cursor_location).y
        return self.wrapped_document.offset_to_location(Offset(x, y - min(max(below, 0), len(self._below))))

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Nothing can be accepted without a suggestion."""
        if action == "accept":
            return bool(self.left)
        return super().check_action(action, parameters)

    def action_accept(self, part: str) -> None:
        """Take all of the suggestion, or its next word or line."""
        left = self.left
        taken = {"word": next_word, "line": next_line}.get(part, str)(left)
        if not taken:
            return
        self.insert(taken)
        self.post_message(self.Accepted(len(self._offered) - len(left) + len(taken), self.left))
        self.update_suggestion()
        self.refresh_bindings()

    def action_dismiss(self) -> None:
        """Drop the suggestion, or else leave the editor."""
        if self._offered and self.left:
            self.offer("", 0)
            self.post_message(self.Dismissed())
        else:
            self.post_message(self.Left())

    async def _on_key(self, event: events.Key) -> None:
        part = _KEYS.get(event.key)
        if part and self.left:
            event.prevent_default().stop()
            self.action_accept(part)
            return
        await super()._on_key(event)
