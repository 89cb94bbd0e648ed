"""Ways to grow a draft tree from a drafter's proposals. Pure functions of what `expand` answers.

`dynamic`     EAGLE-2: level by level, expansion by path value, reranking of all candidates
`best_first`  one queue over all levels, stopped by an adaptive threshold
`static`      EAGLE-1: a fixed topology, whatever the drafter's confidence
"""

import math
from functools import lru_cache

import numpy as np

from assistant.engine.growth import Expand, Growth, within
from assistant.engine.tree import DraftTree, TreeShape
from assistant.engine.types import Origin

# How often a draft head's r-th candidate is the target's token, as a static tree must assume beforehand; the shape of
# the curve is what matters, and it is much alike for heads of very different strength.
_STATIC_RANKS = (0.60, 0.13, 0.06, 0.035, 0.025, 0.018, 0.013, 0.010)


def grow_dynamic(root: int, expand: Expand, shape: TreeShape) -> Growth:
    """EAGLE-2's expansion phase (section 4.1): of each level's candidates the `width` best are expanded.

    A node that is worth no more than the least of the best `nodes` so far is not: none of its children could be
    chosen, so leaving it out changes nothing but the time.
    """
    growth = Growth(root, shape.rank)
    frontier = [0]
    for _ in range(shape.depth):
        level = growth.best(growth.grow(frontier, expand, shape), shape.width)
        floor = _least_of_best(growth, shape.nodes) if shape.rerank else -math.inf
        frontier = [n for n in level if growth.keys[n] > floor and _worth(growth, n, shape)]
        if not frontier:
            break
    return growth


def dynamic(root: int, expand: Expand, shape: TreeShape) -> DraftTree:
    """EAGLE-2's dynamic tree: expansion, then the `nodes` best of all candidates (section 4.2)."""
    growth = grow_dynamic(root, expand, shape)
    return growth.select(chosen(growth, shape))


def best_first(root: int, expand: Expand, shape: TreeShape) -> DraftTree:
    """Expand the most valuable candidates anywhere, `width` of them in one call, for at most `depth` calls.

    The threshold adapts: once there are `nodes` candidates, only those worth more than the least of the best `nodes`
    can still have children that belong to the tree, so the queue ends by itself on sure text and on hopeless text.
    Children cut by `margin` take the slots that are left, which puts them beside shallow nodes first.
    """
    growth = Growth(root, shape.rank)
    frontier = [0]
    waiting: list[int] = []
    for _ in range(shape.depth):
        waiting += growth.grow(frontier, expand, shape)
        floor = _least_of_best(growth, shape.nodes)
        waiting = [n for n in waiting if growth.keys[n] > floor and _worth(growth, n, shape)]
        frontier = growth.best(waiting, shape.width)
        if not frontier:
            break
        waiting = [n for n in waiting if n not in set(frontier)]
    return growth.select(chosen(growth, shape))


def static(root: int, expand: Expand, shape: TreeShape) -> DraftTree:
    """EAGLE-1's static tree: node (r1, r2, ...) is the r1-th candidate, then below it the r2-th, and so on."""
    growth = Growth(root)
    placed: dict[tuple[int, ...], int] = {(): 0}
    choices = static_choices(shape.nodes, shape.depth, shape.width)
    for depth in range(1, shape.depth + 1):
        wanted = [path for path in choices if len(path) == depth and path[:-1] in placed]
        parents = sorted({placed[path[:-1]] for path in wanted})
        if not parents:
            break
        proposals = dict(zip(parents, expand(growth, parents), strict=True))
        for path in wanted:
            parent = placed[path[:-1]]
            children = within(proposals[parent], shape)
            if path[-1] < len(children):
                placed[path] = growth.add(parent, *children[path[-1]], Origin.HEAD)
    return growth.select([n for n in placed.values() if n])


@lru_cache(maxsize=64)
def static_choices(nodes: int, depth: int, width: int) -> tuple[tuple[int, ...], ...]:
    """The `nodes` paths of candidate ranks most probable if ranks succeed independently, shallow ones first."""
    ranks = _STATIC_RANKS[:width]
    paths: list[tuple[tuple[int, ...], float]] = []
    border: list[tuple[tuple[int, ...], float]] = [((), 1.0)]
    for _ in range(depth):
        # No path outside a level's best `nodes` can be among the best `nodes` of all, nor can its descendants.
        border = [((*path, r), value * p) for path, value in border for r, p in enumerate(ranks)]
        border = sorted(border, key=lambda item: (-item[1], item[0]))[:nodes]
        paths += border
    best = sorted(paths, key=lambda item: (-item[1], len(item[0]), item[0]))[:nodes]
    return tuple(sorted((path for path, _ in best), key=lambda path: (len(path), path)))


def chosen(growth: Growth, shape: TreeShape) -> list[int]:
    """The candidates to verify: the best `nodes` of all, which are connected since no child outranks its parent."""
    candidates = [n for n in range(1, len(growth)) if worth_verifying(growth, n, shape)]
    if shape.rerank:
        return growth.best(candidates, shape.nodes)
    # Without reranking, levels do not compete: each gets an equal share of the nodes.
    share = max(1, shape.nodes // max(1, shape.depth))
    kept = [0]
    for depth in range(1, shape.depth + 1):
        level = [n for n in candidates if growth.depths[n] == depth and growth.parents[n] in kept]
        kept += growth.best(level, share)
    return kept[1 : shape.nodes + 1]


def _worth(growth: Growth, node: int, shape: TreeShape) -> bool:
    return not growth.spare[node] and worth_verifying(growth, node, shape)


def worth_verifying(growth: Growth, node: int, shape: TreeShape) -> bool:
    """Whether a node's path value reaches the shape's threshold."""
    return shape.threshold <= 0.0 or growth.log_values[node] >= float(np.float32(math.log(shape.threshold)))


def _least_of_best(growth: Growth, count: int) -> float:
    """What a node must be worth more than for its children to have a chance of one of `count` slots."""
    if count < 1:
        return math.inf
    # Spare nodes stand behind every child that is not one, however little that is worth.
    taken = growth.best([n for n in range(1, len(growth)) if not growth.spare[n]], count)
    return growth.keys[taken[-1]] if len(taken) == count else -math.inf
