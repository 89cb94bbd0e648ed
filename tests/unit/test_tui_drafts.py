"""Reading draft trees: rows, fates, shapes, and the exported drawing."""

import math
import xml.etree.ElementTree as ET

import pytest

from assistant.protocol import Tree
from tests.support.scripted import step, tree
from tui import drafts, svg
from tui.drafts import Fate, Shape


def test_rows_come_depth_first_the_most_confident_first_with_guides() -> None:
    assert [(row.guide, row.text) for row in drafts.nodes(tree())] == [
        ("├─", "return"),
        ("│ ├─", "·sum"),
        ("│ │ ├─", "("),
        ("│ │ │ └─", "values"),
        ("│ │ │   └─", ")"),
        ("│ │ └─", "["),
        ("│ └─", "·values"),
        ("└─", "total"),
    ]


def test_a_node_is_accepted_rejected_or_never_reached() -> None:
    fates = {row.index: row.fate for row in drafts.nodes(tree())}
    assert [node for node, fate in fates.items() if fate is Fate.ACCEPTED] == [1, 3, 5]
    assert fates[7] is fates[6] is fates[4] is fates[2] is Fate.REJECTED
    assert fates[8] is Fate.UNREACHED


def test_confidence_is_the_step_from_the_parents_path_value() -> None:
    row = next(row for row in drafts.nodes(tree()) if row.index == 3)
    assert row.confidence == pytest.approx(math.exp(-0.2))
    assert row.value == pytest.approx(math.exp(-0.3))


def test_shape_expectation_and_rejected_path() -> None:
    assert drafts.shape(tree()) == Shape(nodes=8, depth=5, width=2)
    assert drafts.expected(tree()) == pytest.approx(1 + sum(math.exp(v) for v in tree().values[1:]))
    assert drafts.rejected_texts(tree()) == ("values", ")")
    assert list(drafts.tried(tree())) == [(1, True), (2, True), (3, True), (4, False)]


def test_only_nodes_after_accepted_ones_judge_the_confidence() -> None:
    assert sorted(accepted for _, accepted in drafts.judged(tree())) == [False] * 4 + [True] * 3


def test_a_root_alone_has_no_rows() -> None:
    root = Tree(tokens=(1,), texts=("x",), parents=(-1,), values=(0.0,), origins=("",), accepted=())
    assert drafts.nodes(root) == ()
    assert drafts.shape(root) == Shape(0, 0, 0)
    assert drafts.rejected_texts(root) == ()


def test_invisible_characters_are_seen() -> None:
    assert drafts.visible(" a\n\t\x1b") == "·a\\n\\t\\x1b"


def test_the_drawing_is_an_svg_that_names_every_node_and_loads_nothing() -> None:
    hostile = tree()
    hostile = Tree(**{name: getattr(hostile, name) for name in hostile.__struct_fields__} | {
        "texts": (*hostile.texts[:-1], '<script>&"'),
    })  # fmt: skip
    drawing = svg.tree_svg(step(tree=hostile))
    root = ET.fromstring(drawing)  # noqa: S314 - our own
    titles = [title.text for title in root.iter("{http://www.w3.org/2000/svg}title")]
    assert len(titles) == 8
    assert sum("accepted" in str(title) for title in titles) == 3
    assert not {"script", "image", "use", "a"} & {node.tag.rsplit("}", 1)[-1] for node in root.iter()}
    assert "http" not in drawing.replace("http://www.w3.org/2000/svg", "")
