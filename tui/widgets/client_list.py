"""Clients and their documents, to choose whose completions are shown."""

from pathlib import PurePath

from textual.content import Content
from textual.message import Message
from textual.widgets import OptionList
from textual.widgets.option_list import Option

from tui import clients, wording
from tui.state import Filter, View


def labels(view: View) -> tuple[tuple[Filter, str], ...]:
    """What each line chooses, and its text."""
    lines = [(Filter(), f"everything  {wording.count(view.figures.steps, 'step') if view.filter.everything else ''}")]
    for row in clients.rows(view):
        if row.document is not None:
            name = "/".join(PurePath(row.document).parts[-2:]) or "unnamed"
            lines.append((row.filter, f"    {name}  {wording.count(row.steps, 'step')}"))
            continue
        told = f"{wording.count(row.requests, 'request')}, {row.shown} shown, {row.accepted} accepted"
        lines.append((row.filter, f"  {row.client or 'no name'}  {told if row.requests else ''}"))
    return tuple(lines)


class ClientList(OptionList):
    """A line for everything, for each client and for each document; the chosen one has a mark."""

    class Chosen(Message):
        """Something was chosen to be shown."""

        def __init__(self, wanted: Filter) -> None:
            super().__init__()
            self.filter = wanted

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002 - Textual's name
        super().__init__(id=id, compact=True)
        self._listed: tuple[tuple[Filter, str], ...] = ()
        self._chosen = Filter()

    def tell(self, view: View) -> None:
        """List what is there now; the highlighted line stays."""
        lines = labels(view)
        if lines == self._listed and view.filter == self._chosen:
            return
        self._listed, self._chosen = lines, view.filter
        at = self.highlighted
        self.set_options([Option(self._drawn(wanted, text)) for wanted, text in lines])
        self.highlighted = min(at or 0, len(lines) - 1)

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        """Enter or a click chooses."""
        event.stop()
        self.post_message(self.Chosen(self._listed[event.option_index][0]))

    def _drawn(self, wanted: Filter, text: str) -> Content:
        chosen = wanted == self._chosen
        return Content.assemble(("▶ " if chosen else "  ", "bold $accent"), (text, "bold" if chosen else ""))
