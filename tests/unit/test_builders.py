"""Builders: each gives a valid tree within its bounds, and the clever ones give what the plain definition gives."""

import itertools
import math
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from assistant.engine.builders import best_first, dynamic, static, static_choices
from assistant.engine.eagle import Builder
from assistant.engine.growth import Children, Growth
from assistant.engine.tree import DraftTree, TreeShape
from tests.support.proposals import Proposals, check_tree, path_of, proposals, shapes

BUILDERS = {"static": static, "dynamic": dynamic, "best_first": best_first}

Path = tuple[int, ...]
"""tokens from the root's child down"""


def paths(tree: DraftTree) -> set[Path]:
    return {path_of(tree.tokens, tree.parents, node) for node in range(1, len(tree))}


@pytest.mark.parametrize("build", list(BUILDERS.values()), ids=list(BUILDERS))
@given(source=proposals(), shape=shapes())
def test_whatever_is_proposed_the_result_is_a_tree_within_its_bounds(
    build: Builder, source: Proposals, shape: TreeShape
) -> None:
    tree = build(9, source.expand, shape)
    check_tree(tree, nodes=shape.nodes, depth=shape.depth, width=shape.width)
    assert tree.tokens[0] == 9
    assert set(tree.origins[1:]) <= {"head"}
    if build is not static and shape.threshold > 0.0:
        assert all(value >= float(np.float32(math.log(shape.threshold))) for value in tree.log_values[1:])


@pytest.mark.parametrize("build", list(BUILDERS.values()), ids=list(BUILDERS))
@given(source=proposals(), shape=shapes())
def test_a_call_of_the_drafter_asks_for_at_most_width_nodes_and_there_are_at_most_depth_calls(
    build: Builder, source: Proposals, shape: TreeShape
) -> None:
    calls: list[int] = []

    def counted(growth: Growth, nodes: Sequence[int]) -> list[Children]:
        calls.append(len(nodes))
        return source.expand(growth, nodes)

    build(9, counted, shape)
    assert len(calls) <= shape.depth
    if build is not static:
        assert all(1 <= size <= max(1, shape.width) for size in calls)


class Reference:
    """EAGLE-2 as the paper describes it, over token paths, without stopping early."""

    def __init__(self, source: Proposals, shape: TreeShape) -> None:
        self.source = source
        self.shape = shape
        self.order: dict[Path, int] = {(): 0}
        self.value: dict[Path, np.float32] = {(): np.float32(0)}
        self.key: dict[Path, float] = {(): 0.0}
        self.spare: dict[Path, bool] = {(): False}

    def rank(self, path: Path) -> tuple[bool, float, int]:
        return self.spare[path], -self.key[path], self.order[path]

    def certain(self, path: Path) -> bool:
        return self.shape.threshold == 0.0 or bool(self.value[path] >= np.float32(math.log(self.shape.threshold)))

    def score_children(self, path: Path) -> list[Path]:
        found: list[Path] = []
        covered = 0.0
        for token, log_prob in self.source.below(path)[: self.shape.width]:
            if log_prob < -1e30 or (found and covered >= self.shape.top_p < 1.0):
                break
            covered += math.exp(log_prob)
            step = float(np.float32(min(log_prob, 0.0)))
            child = (*path, token)
            self.order[child] = len(self.order)
            self.value[child] = np.float32(float(self.value[path]) + step)
            self.key[child] = float(self.value[child]) if self.shape.rank == "value" else min(self.key[path], step)
            self.spare[child] = log_prob < -self.shape.margin
            found.append(child)
        return found

    def chosen(self) -> set[Path]:
        frontier: list[Path] = [()]
        for _ in range(self.shape.depth):
            level = [child for path in frontier for child in self.score_children(path)]
            level = sorted(level, key=self.rank)[: self.shape.width]
            frontier = [path for path in level if self.certain(path) and not self.spare[path]]
        candidates = [path for path in self.order if path and self.certain(path)]
        return set(sorted(candidates, key=self.rank)[: self.shape.nodes])


@given(source=proposals(), shape=shapes())
def test_stopping_early_changes_nothing_against_eagle_2_in_full(source: Proposals, shape: TreeShape) -> None:
    shape = TreeShape(
        shape.nodes, shape.depth, shape.width, shape.threshold, shape.top_p, shape.margin, rank=shape.rank
    )
    assert paths(dynamic(9, source.expand, shape)) == Reference(source, shape).chosen()


@given(source=proposals(probable=True), nodes=st.integers(1, 12), depth=st.integers(1, 3))
def test_best_first_finds_the_most_probable_nodes_when_its_calls_are_wide_enough(
    source: Proposals, nodes: int, depth: int
) -> None:
    values: list[np.float32] = []
    border: list[tuple[Path, np.float32]] = [((), np.float32(0))]
    for _ in range(depth):
        border = [
            ((*path, token), np.float32(float(value) + log_prob))
            for path, value in border
            for token, log_prob in source.below(path)
        ]
        values += [value for _, value in border]
    tree = best_first(9, source.expand, TreeShape(nodes=nodes, depth=depth, width=1000))
    assert sorted(tree.log_values[1:], reverse=True) == sorted(map(float, values), reverse=True)[:nodes]


def test_best_first_goes_deep_where_the_drafter_is_sure_and_wide_where_it_is_not() -> None:
    sure = Proposals((((1, math.log(0.98)), (2, math.log(0.01))),))
    tree = best_first(9, sure.expand, TreeShape(nodes=6, depth=6, width=4))
    assert tree.depth == 6
    unsure = Proposals((tuple((token, math.log(1 / 6)) for token in range(6)),))
    assert best_first(9, unsure.expand, TreeShape(nodes=6, depth=6, width=6)).depth == 1


def test_children_beyond_the_margin_only_take_slots_that_are_left() -> None:
    source = Proposals((((1, math.log(0.9)), (2, math.log(0.05))),))
    margin = TreeShape(nodes=4, depth=4, width=4, margin=2.5)
    assert paths(best_first(9, source.expand, margin)) == {(1,), (1, 1), (1, 1, 1), (1, 1, 1, 1)}
    more = TreeShape(nodes=5, depth=4, width=4, margin=2.5)
    assert (2,) in paths(best_first(9, source.expand, more)), "the slot left goes beside the shallowest node"


def test_a_slot_left_over_does_not_end_the_expansion_of_better_nodes() -> None:
    """The early stop measures by nodes that are not spare: spare ones stand behind any child that is not."""

    def expand(_growth: Growth, nodes: Sequence[int]) -> list[Children]:
        first = Children([1, 2], [-0.1, -2.9])
        return [first if node == 0 else Children([3], [-2.4]) for node in nodes]

    shape = TreeShape(nodes=4, depth=4, width=4, margin=2.5)
    assert paths(dynamic(9, expand, shape)) == {(1,), (1, 3), (1, 3, 3), (1, 3, 3, 3)}
    assert paths(best_first(9, expand, shape)) == {(1,), (1, 3), (1, 3, 3), (1, 3, 3, 3)}


def test_without_reranking_each_level_gets_its_share() -> None:
    source = Proposals((tuple((token, -0.1 * (token + 1)) for token in range(4)),))
    tree = dynamic(9, source.expand, TreeShape(nodes=6, depth=3, width=4, rerank=False))
    assert [tree.depths.count(level) for level in (1, 2, 3)] == [2, 2, 2]


def test_ranking_by_confidence_prefers_an_even_path_to_a_valuable_node() -> None:
    def expand(_growth: Growth, nodes: Sequence[int]) -> list[Children]:
        tops = {0: Children([1, 2], [-0.5, -0.6])}
        return [tops.get(node, Children([3], [-0.5])) for node in nodes]

    by_value = dynamic(9, expand, TreeShape(nodes=2, depth=2, width=2))
    by_confidence = dynamic(9, expand, TreeShape(nodes=2, depth=2, width=2, rank="confidence"))
    assert paths(by_value) == {(1,), (2,)}
    assert paths(by_confidence) == {(1,), (1, 3)}


@pytest.mark.parametrize("shape", list(itertools.product([1, 7, 26], [1, 3, 6], [1, 4, 8])))
def test_static_choices_are_connected_and_as_many_as_asked_for(shape: tuple[int, int, int]) -> None:
    nodes, depth, width = shape
    choices = static_choices(nodes, depth, width)
    assert len(set(choices)) == len(choices) == min(nodes, sum(width**level for level in range(1, depth + 1)))
    assert all(path[:-1] in choices or len(path) == 1 for path in choices)
    assert max(len(path) for path in choices) <= depth
    assert all(rank < width for path in choices for rank in path)


def test_a_static_tree_does_not_depend_on_confidence() -> None:
    flat = Proposals((tuple((token, -1.5) for token in range(4)),))
    steep = Proposals((tuple((token, -1.0 - 5 * token) for token in range(4)),))
    shape = TreeShape(nodes=8, depth=4, width=4)
    assert paths(static(9, flat.expand, shape)) == paths(static(9, steep.expand, shape))
