"""How large a draft tree may be while others wait.

Within those bounds a method that adapts chooses what brings the most tokens a millisecond, which is what everybody who
waits wants of it too; the bounds keep one document's long step from delaying all others' next turns.
"""

from dataclasses import replace

from assistant import protocol
from assistant.engine.tree import TreeShape


def under_load(shape: TreeShape, queue: int) -> TreeShape:
    """The largest tree that a step may grow while `queue` requests wait for the engine: a third with four waiting."""
    if queue <= 0:
        return shape
    nodes = -(-shape.nodes * 2 // (2 + queue))
    return replace(shape, nodes=nodes, depth=min(shape.depth, nodes), width=max(1, min(shape.width, nodes)))


def ration(shape: TreeShape, queue: int, *, adaptive: bool = True) -> tuple[TreeShape, protocol.Choice]:
    """The next step's bounds, and what they come from; those that were asked for where they are not to adapt."""
    chosen = under_load(shape, queue) if adaptive else shape
    reason = f"{queue} {'request waits' if queue == 1 else 'requests wait'}" if chosen != shape else ""
    return chosen, protocol.Choice(
        nodes=chosen.nodes, depth=chosen.depth, width=chosen.width, queue=queue, reason=reason
    )
