"""The draft tree as data: what it refuses, and what it derives from its parents."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from assistant.engine.tree import DraftTree, chain, root_only
from assistant.errors import TopologyError
from tests.support.proposals import check_tree


def tree(parents: list[int], values: list[float] | None = None) -> DraftTree:
    size = len(parents)
    values = values or [0.0, *[-1.0] * (size - 1)]
    return DraftTree(tuple(range(size)), tuple(parents), tuple(values), ("", *["head"] * (size - 1)))


@pytest.mark.parametrize(
    ("parents", "values", "words"),
    [
        ([], [], "begins with its root"),
        ([0], [0.0], "begins with its root"),
        ([-1, -1], [0.0, -1.0], "node 1 names -1"),
        ([-1, 1], [0.0, -1.0], "node 1 names 1"),
        ([-1, 2, 0], [0.0, -1.0, -1.0], "node 1 names 2"),
        ([-1, 0, -2], [0.0, -1.0, -1.0], "node 2 names -2"),
        ([-1, 0], [0.0, math.nan], "not a probability"),
        ([-1, 0], [0.0, -math.inf], "not a probability"),
        ([-1, 0], [0.0, 0.1], "not a probability"),
        ([-1], [math.inf], "not a probability"),
        ([-1, 0, 1], [0.0, -1.0, -0.5], "above its parent's"),
        ([-1, 0], [0.0], "2 tokens"),
        ([-1], [0.0, -1.0], "2 tokens"),
    ],
)
def test_arrays_that_are_no_tree_are_refused(parents: list[int], values: list[float], words: str) -> None:
    size = max(len(parents), len(values))
    with pytest.raises(TopologyError, match=words):
        DraftTree(tuple(range(size)), tuple(parents), tuple(values), ("",) * size)


def test_origins_and_draft_distributions_must_match_the_nodes() -> None:
    with pytest.raises(TopologyError):
        DraftTree((1, 2), (-1, 0), (0.0, -1.0), ("",))
    with pytest.raises(TopologyError, match="draft distributions"):
        DraftTree((1, 2), (-1, 0), (0.0, -1.0), ("", "draft"), torch.zeros(1, 5))


@given(st.data())
def test_what_a_tree_derives_is_what_its_parents_say(data: st.DataObject) -> None:
    size = data.draw(st.integers(1, 12))
    parents = [-1, *(data.draw(st.integers(0, node - 1)) for node in range(1, size))]
    values = [0.0]
    for parent in parents[1:]:
        values.append(float(np.float32(values[parent] + data.draw(st.sampled_from([0.0, -0.5, -2.0])))))
    made = tree(parents, values)
    check_tree(made, nodes=size - 1, depth=size, width=size)
    assert made.width == max(made.depths.count(level) for level in made.depths)
    for node in range(1, size):
        assert made.value(node) == pytest.approx(made.value(parents[node]) * made.confidence(node))
    for children in made.children:
        assert list(children) == sorted(children, key=lambda n: (-made.log_values[n], n))


def test_the_root_alone_and_a_chain() -> None:
    alone = root_only(7)
    assert (alone.tokens, alone.drafted, alone.depth, alone.width, alone.path(0)) == ((7,), 0, 0, 1, ())
    assert alone.confidence(0) == alone.value(0) == 1.0
    line = chain(7, [8, 9], [-0.5, -1.5], "retrieval")
    assert line.parents == (-1, 0, 1)
    assert line.depths == (0, 1, 2)
    assert line.path(2) == (1, 2)
    assert line.origins == ("", "retrieval", "retrieval")
    assert line.confidence(2) == pytest.approx(math.exp(-1.0))
