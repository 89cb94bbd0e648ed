"""A step's draft tree as an SVG of its own: boxes on levels, the accepted path bold, rejected branches dashed."""

from dataclasses import dataclass
from html import escape

from assistant.protocol import Step, Tree
from tui import drafts, wording
from tui.drafts import Fate, Node

_ROW, _LEVEL, _BOX, _HEIGHT, _TOP = 34, 190, 160, 26, 44
_COLOURS = {
    Fate.ACCEPTED: ("#13783f", "#e3f6ea", "none"),
    Fate.REJECTED: ("#8a8f98", "#ffffff", "4 3"),
    Fate.UNREACHED: ("#c3c7cd", "#ffffff", "2 4"),
}
_LONGEST = 13


@dataclass(frozen=True, slots=True)
class _Placed:
    node: Node
    x: int
    y: int


def tree_svg(step: Step) -> str:
    """The drawing; without fonts or anything else from outside.

    The step must have a tree.
    """
    assert step.tree is not None
    placed = _place(step.tree)
    size = drafts.shape(step.tree)
    width, height = 20 + (size.depth + 1) * _LEVEL, max((item.y for item in placed), default=_TOP) + _ROW + 10
    at = {0: (10, _TOP), **{item.node.index: (item.x, item.y) for item in placed}}
    parts = [
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
            f'viewBox="0 0 {width} {height}" font-family="monospace" font-size="13">'
        ),
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
        f'<text x="10" y="20" fill="#1c2128" font-weight="bold">{escape(wording.headline(step))}</text>',
    ]
    parts += [_edge(at[step.tree.parents[item.node.index]], item) for item in placed]
    parts.append(_box(10, _TOP, drafts.visible(step.tree.texts[0]) or "start", "", ("#1c2128", "#eef1f4", "none")))
    parts += [_node(item) for item in placed]
    return "\n".join([*parts, "</svg>", ""])


def _place(tree: Tree) -> tuple[_Placed, ...]:
    """A row for every leaf; an inner node stands on the row of its first child."""
    placed, row, before = [], 0, 0
    for node in drafts.nodes(tree):
        row += node.depth <= before
        before = node.depth
        placed.append(_Placed(node, 10 + node.depth * _LEVEL, _TOP + row * _ROW))
    return tuple(placed)


def _edge(start: tuple[int, int], item: _Placed) -> str:
    colour, _, dash = _COLOURS[item.node.fate]
    x, y = start[0] + _BOX, start[1] + _HEIGHT // 2
    end = item.y + _HEIGHT // 2
    middle = (x + item.x) // 2
    weight = 3 if item.node.fate is Fate.ACCEPTED else 1
    return (
        f'<path d="M{x} {y} C{middle} {y} {middle} {end} {item.x} {end}" fill="none" stroke="{colour}" '
        f'stroke-width="{weight}" stroke-dasharray="{dash}"/>'
    )


def _node(item: _Placed) -> str:
    label = f"{item.node.confidence:.2f}"
    return _box(item.x, item.y, item.node.text, label, _COLOURS[item.node.fate], item.node)


def _box(x: int, y: int, text: str, label: str, look: tuple[str, str, str], node: Node | None = None) -> str:
    colour, fill, dash = look
    shown = text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
    title = f"<title>{escape(_explain(node))}</title>" if node else ""
    return (
        f'<g>{title}<rect x="{x}" y="{y}" width="{_BOX}" height="{_HEIGHT}" rx="6" fill="{fill}" stroke="{colour}" '
        f'stroke-dasharray="{dash}"/><text x="{x + 8}" y="{y + 18}" fill="{colour}">{escape(shown)}</text>'
        f'<text x="{x + _BOX - 8}" y="{y + 18}" fill="{colour}" text-anchor="end">{label}</text></g>'
    )


def _explain(node: Node) -> str:
    return f"{node.text}: {node.fate.value}, by {node.origin}, confidence {node.confidence:.3f}, path {node.value:.3f}"
