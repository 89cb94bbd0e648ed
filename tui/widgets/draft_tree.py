"""A step's draft tree, drawn as a tree: what was guessed, how sure the drafter was, and what the target took."""

from rich.cells import cell_len
from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.content import Content

from assistant.protocol import Step
from tui import drafts, state, wording
from tui.drafts import Fate, Node
from tui.state import View
from tui.widgets.charts import bar
from tui.widgets.panel import Panel
from tui.writing import origin

MARKS = {Fate.ACCEPTED: "✓", Fate.REJECTED: "✗", Fate.UNREACHED: "·"}
_STYLES = {
    Fate.ACCEPTED: "bold $accepted",
    Fate.REJECTED: "$muted",
    Fate.UNREACHED: "$faint",
}
_BAR = 8
_FIGURES = 4 + 6 + 6 + _BAR
"""columns of origin, confidence, path value and its bar"""


def tree_content(step: Step, width: int) -> Content:
    """The tree and the tokens that came of it; "" of a step without drafts."""
    lines: list[Content] = []
    if step.tree is not None and len(step.tree.tokens) > 1:
        nodes = drafts.nodes(step.tree)
        root = f"after {drafts.visible(step.tree.texts[0]) or 'start'}"
        wanted = max(cell_len(root), *(cell_len(node.guide + node.text) + 2 for node in nodes)) + 2
        left = max(min(width - _FIGURES, wanted), 12)
        lines.append(Content.assemble((_fit(root, left) + " by  conf  path  chance", "$muted")))
        lines += [_row(node, left) for node in nodes]
    lines += _written(step)
    return Content("\n").join(lines)


def _row(node: Node, left: int) -> Content:
    style = _STYLES[node.fate]
    label = _fit(f"{node.guide}{MARKS[node.fate]} {node.text}", left)
    guide = min(len(node.guide), len(label))
    by = origin(node.origin)
    return Content.assemble(
        (label[:guide], "$faint"),
        (label[guide:], style),
        (f" {by.letter} ", by.mark_style),
        (f"{node.confidence:6.2f}{node.value:6.2f} ", style),
        (bar(node.value, _BAR), style),
    )


def _fit(text: str, width: int) -> str:
    while cell_len(text) > width:
        text = text[:-2] + "…"
    return text + " " * (width - cell_len(text))


def _written(step: Step) -> tuple[Content, Content]:
    """The tokens of the step, and below them the letters of who wrote them."""
    if not step.tokens:
        return Content.styled("wrote nothing", "$muted"), Content("")
    texts: list[tuple[str, str]] = [("wrote ", "$muted")]
    marks: list[tuple[str, str]] = [("   by ", "$muted")]
    for text, name in zip(step.texts, step.origins, strict=True):
        by = origin(name)
        shown = drafts.visible(text) or "∅"
        texts.append((shown, by.style))
        marks.append((by.letter + "─" * (cell_len(shown) - 1), by.mark_style))
    return Content.assemble(*texts), Content.assemble(*marks)


class TreeRows(Panel):
    """The rows of the tree, as high as they are many."""

    def draw(self, view: View, width: int, height: int) -> Content:
        del height
        observed = state.current(view)
        return tree_content(observed.step, width) if observed else Content("")


class DraftTree(VerticalScroll):
    """The tree of the step that is looked at, scrollable."""

    def compose(self) -> ComposeResult:
        yield TreeRows()

    def entitle(self, view: View) -> None:
        """Write the step's headline into the border."""
        observed = state.current(view)
        self.border_title = wording.headline(observed.step) if observed else "Draft tree"


class Why(Panel):
    """Why the tree has its shape."""

    def draw(self, view: View, width: int, height: int) -> Content:
        del width, height
        observed = state.current(view)
        if observed is None:
            return Content("")
        return Content.assemble(("Why this shape  ", "bold"), (wording.why(observed), "$muted"))
