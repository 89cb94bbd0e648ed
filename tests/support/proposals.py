"""Random drafters for hypothesis, and what every draft tree must satisfy, computed without the engine's help."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st

from assistant.engine.growth import Children, Growth
from assistant.engine.tree import DraftTree, TreeShape

# Ties, certainty, impossibility, and steps too small for float32 beside what stands before them.
_LOG_PROBS = (0.0, -0.0, -1e-9, -3e-8, -0.1, -0.1, math.log(0.5), -0.7, -2.0, -3.0, -20.0, -1e5, -3e38, -math.inf, 1e-7)


@dataclass(frozen=True)
class Proposals:
    """A drafter whose answer below a node is one of a few rows, chosen by the node's path; a pure function."""

    rows: tuple[tuple[tuple[int, float], ...], ...]

    def below(self, path: Sequence[int]) -> tuple[tuple[int, float], ...]:
        return self.rows[hash(tuple(path)) % len(self.rows)]

    def expand(self, growth: Growth, nodes: Sequence[int]) -> list[Children]:
        rows = [self.below(path_of(growth.tokens, growth.parents, node)) for node in nodes]
        return [Children([t for t, _ in row], [p for _, p in row]) for row in rows]


@st.composite
def proposals(draw: st.DrawFn, *, probable: bool = False) -> Proposals:
    """Rows of distinct tokens, most probable first; `probable` keeps to distinct finite values."""
    value = (
        st.floats(-4.0, -0.0078125, width=32)
        if probable
        else st.one_of(st.sampled_from(_LOG_PROBS), st.floats(-6.0, 0.0, width=32))
    )
    vocabulary = draw(st.integers(1, 6))
    rows = []
    for _ in range(draw(st.integers(1, 5))):
        tokens = draw(st.lists(st.integers(0, vocabulary - 1), max_size=vocabulary, unique=True))
        values = draw(st.lists(value, min_size=len(tokens), max_size=len(tokens), unique=probable))
        rows.append(tuple(zip(tokens, sorted(values, reverse=True), strict=True)))
    return Proposals(tuple(rows))


@st.composite
def shapes(draw: st.DrawFn) -> TreeShape:
    """Shapes from nothing to more than any vocabulary here can fill."""
    return TreeShape(
        nodes=draw(st.integers(0, 14)),
        depth=draw(st.integers(0, 5)),
        width=draw(st.integers(0, 8)),
        threshold=draw(st.sampled_from([0.0, 0.0, 1e-3, 0.3, 1.0])),
        top_p=draw(st.sampled_from([1.0, 1.0, 0.9, 0.5, 0.0])),
        margin=draw(st.sampled_from([math.inf, math.inf, 2.5, 0.5, 0.0])),
        rerank=draw(st.booleans()),
        rank=draw(st.sampled_from(["value", "confidence"])),
    )


def path_of(tokens: Sequence[int], parents: Sequence[int], node: int) -> tuple[int, ...]:
    """Tokens from the root's child down to a node."""
    return () if node == 0 else (*path_of(tokens, parents, parents[node]), tokens[node])


def check_tree(tree: DraftTree, *, nodes: int, depth: int, width: int) -> None:
    """A connected tree within its bounds, whose mask, depths and children are what its parents say."""
    size = len(tree.tokens)
    assert tree.parents[0] == -1
    ancestors: list[set[int]] = [{0}]
    for node in range(1, size):
        parent = tree.parents[node]
        assert 0 <= parent < node
        ancestors.append(ancestors[parent] | {node})
        assert math.isfinite(tree.log_values[node])
        assert tree.log_values[node] <= tree.log_values[parent] <= 0.0
        assert tree.log_values[node] == float(np.float32(tree.log_values[node]))
    closure = np.zeros((size, size), dtype=np.bool_)
    for node, above in enumerate(ancestors):
        closure[node, sorted(above)] = True
    assert np.array_equal(tree.mask(), closure)
    assert tree.depths == tuple(len(above) - 1 for above in ancestors)
    assert tree.drafted <= nodes
    assert tree.depth <= depth
    for node in range(size):
        children = [n for n in range(1, size) if tree.parents[n] == node]
        assert sorted(tree.children[node]) == children
        assert len({tree.tokens[n] for n in children}) == len(children) <= width
        assert tree.path(node) == tuple(sorted(ancestors[node] - {0}))
