"""The names of the panes in one line, with the keys that open them; a click opens one too."""

from collections.abc import Sequence

from textual.content import Content
from textual.widgets import Static


class TabStrip(Static):
    """One line; the open pane stands out by brackets as well as by colour."""

    def __init__(self, names: Sequence[tuple[str, str]]) -> None:
        """Take (id, title) of each pane in order."""
        super().__init__()
        self._names = tuple(names)

    def mark(self, active: str) -> None:
        """Let a pane stand out."""
        parts = []
        for key, (name, title) in enumerate(self._names, 1):
            label = f"[{key} {title}]" if name == active else f" {key} {title} "
            style = "bold $accent" if name == active else "$muted"
            parts.append(Content.styled(label, f"{style} @click=app.pane('{name}')"))
        self.update(Content(" ").join(parts))
