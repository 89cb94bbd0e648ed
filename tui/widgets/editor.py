"""The scratch pad's editor: Textual's, with a suggestion that can be accepted whole, by word or by line."""

from typing import ClassVar

from textual import events
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.widgets import TextArea

from tui.scratch import next_line, next_word, remaining

_KEYS = {"tab": "all", "ctrl+right": "word"}
"""keys that accept a suggestion and otherwise mean what they mean in any editor: a binding would take them for good"""


class Editor(TextArea):
    """Shows the first line of what is left of its suggestion as ghost text."""

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
        super().__init__(text, id=id, show_line_numbers=True, compact=True, tab_behavior="indent")
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
        """Called by the base class after every edit and move: the ghost is what is left, its first line."""
        line = self.left.split("\n", 1)[0]
        row, column = self.cursor_location
        at_end = column >= len(self.document.get_line(row))
        self.suggestion = line if at_end else ""

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
