"""Two sentences on the completion that is looked at: who wrote it and how much faster that went."""

from textual.content import Content

from tui import state, wording
from tui.state import View
from tui.widgets.panel import Panel


def story(view: View) -> Content:
    """The sentences; or what to do before there is anything to tell."""
    steps = state.completion(view)
    if not steps:
        return Content.styled("Nothing completed yet. Type in your editor, or try the scratch pad (3).", "$muted")
    authors, pace = wording.story(view, steps, state.whole_completion(view))
    return Content.assemble((authors, "bold"), "\n", (pace, "bold $accent"))


class Story(Panel):
    """What a newcomer reads first."""

    def draw(self, view: View, width: int, height: int) -> Content:
        del width, height
        return story(view)
