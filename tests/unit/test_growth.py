"""Candidates while a tree grows: values that never rise, grafts, and the bounds on a node's children."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from assistant.engine.builders import chosen, grow_dynamic
from assistant.engine.growth import Children, Growth, within
from assistant.engine.tree import TreeShape
from assistant.engine.types import Origin
from tests.support.proposals import Proposals, check_tree, path_of, proposals, shapes

ALL = TreeShape(nodes=100, depth=9, width=9)


@pytest.mark.parametrize(
    ("shape", "kept"),
    [
        (TreeShape(width=9), 4),
        (TreeShape(width=2), 2),
        (TreeShape(width=0), 0),
        (TreeShape(top_p=0.0), 1),
        (TreeShape(top_p=0.49), 1),
        (TreeShape(top_p=0.6), 2),
        (TreeShape(top_p=0.999), 4),
    ],
)
def test_children_are_cut_by_width_and_by_the_probability_they_cover(shape: TreeShape, kept: int) -> None:
    children = Children([5, 3, 1, 0], [math.log(p) for p in (0.5, 0.25, 0.125, 0.0625)])
    assert [token for token, _ in within(children, shape)] == [5, 3, 1, 0][:kept]


def test_children_without_a_probability_are_left_out() -> None:
    children = Children([1, 2, 3, 4], [-1.0, -math.inf, math.nan, -3e38])
    assert within(children, ALL) == [(1, -1.0)]
    assert within(Children([], []), TreeShape(top_p=0.5)) == []


def test_a_probability_rounded_above_one_does_not_lift_a_child_over_its_parent() -> None:
    growth = Growth(0)
    node = growth.add(growth.add(0, 1, -0.5, "head"), 2, 1e-6, "head")
    assert growth.log_values[node] == growth.log_values[1]
    assert growth.best([node, 1], 1) == [1], "of equals the parent comes first"


@pytest.mark.parametrize("rank", ["value", "confidence"])
@given(data=st.data())
def test_a_key_never_exceeds_its_parents_even_after_a_graft(rank: str, data: st.DataObject) -> None:
    shape = TreeShape(nodes=20, depth=3, width=3, rank="value" if rank == "value" else "confidence")
    growth = grow_dynamic(9, data.draw(proposals()).expand, shape)
    for _ in range(data.draw(st.integers(1, 2))):
        tokens = data.draw(st.lists(st.integers(0, 5), max_size=6))
        growth.graft(tokens, [data.draw(st.sampled_from([-0.7, -0.1, 0.0, -1e-9]))] * len(tokens), Origin.RETRIEVAL)
    for node in range(1, len(growth)):
        parent = growth.parents[node]
        assert growth.keys[node] <= growth.keys[parent]
        assert growth.log_values[node] <= growth.log_values[parent]
        if rank == "value":
            assert growth.keys[node] == growth.log_values[node]


def test_a_graft_raises_its_twin_and_what_grows_below_it() -> None:
    growth = Growth(0)
    twin = growth.add(0, 1, -3.0, "head", spare=True)
    below = growth.add(twin, 2, -0.5, "head")
    other = growth.add(0, 3, -1.0, "head")
    laid = growth.graft([1, 4], [-0.25, -0.25], Origin.RETRIEVAL)
    assert laid == [twin, 4]
    assert growth.log_values[twin] == -0.25
    assert growth.log_values[below] == -0.75
    assert growth.log_values[laid[1]] == -0.5
    assert growth.log_values[other] == -1.0
    assert not growth.spare[twin]
    assert growth.origins == ["", "head", "head", "head", "retrieval"]


def test_ranked_by_confidence_a_graft_raises_the_lowest_confidence_on_the_path() -> None:
    growth = Growth(0, "confidence")
    top = growth.add(0, 1, -0.5, "head")
    twin = growth.add(top, 2, -3.0, "head")
    below = growth.add(twin, 3, -0.75, "head")
    growth.graft([1, 2], [-0.5, -0.25], Origin.RETRIEVAL)
    assert [growth.keys[node] for node in (top, twin, below)] == [-0.5, -0.5, -0.75]


def test_a_graft_never_lowers_its_twin() -> None:
    growth = Growth(0)
    twin = growth.add(0, 1, -0.1, "head")
    growth.graft([1, 2], [-2.0, -1.0], Origin.RETRIEVAL)
    assert growth.log_values[twin] == float(np.float32(-0.1))
    assert growth.log_values[2] == pytest.approx(-1.1)


@given(source=proposals(), shape=shapes(), tokens=st.lists(st.integers(0, 5), max_size=8), log_prob=st.floats(-2, 0))
def test_a_grafted_tree_is_a_tree_of_at_most_the_wanted_nodes(
    source: Proposals, shape: TreeShape, tokens: list[int], log_prob: float
) -> None:
    growth = grow_dynamic(9, source.expand, shape)
    tokens = tokens[: shape.nodes]
    laid = growth.graft(tokens, [log_prob] * len(tokens), Origin.RETRIEVAL)
    assert [path_of(growth.tokens, growth.parents, node) for node in laid] == [
        tuple(tokens[: n + 1]) for n in range(len(tokens))
    ]
    tree = growth.select(chosen(growth, shape))
    check_tree(tree, nodes=shape.nodes, depth=max(shape.depth, len(tokens)), width=shape.width + 1)
