"""How large a draft tree may be while others wait, and whether drafting pays at all."""

from dataclasses import dataclass, replace

from assistant import protocol
from assistant.engine.tree import TreeShape
from assistant.engine.types import StepResult

_MEMORY = 0.95
"""what an average keeps of its past with every step"""
_ENOUGH = 8
"""steps of a kind before its average is believed"""
_LOOK = 48
"""drafted steps after which a plain one is taken under load, to know what it costs"""


def under_load(shape: TreeShape, queue: int, worth: float | None = None) -> TreeShape:
    """The tree that a step may grow while `queue` requests wait for the engine.

    A large tree buys its owner a few tokens a step at the cost of everybody's next turn. So the budget shrinks with
    the queue, to a third of its nodes with four waiting; and to plain decoding where that gives more tokens a
    millisecond.

    Args:
        shape: what was asked for.
        queue: requests that wait.
        worth: tokens a millisecond of drafted steps over those of plain ones; None where nobody measured it yet.
    """
    if queue <= 0:
        return shape
    if worth is not None and worth < 1.0:
        return replace(shape, nodes=0, depth=0)
    nodes = -(-shape.nodes * 2 // (2 + queue))
    return replace(shape, nodes=nodes, depth=min(shape.depth, nodes), width=max(1, min(shape.width, nodes)))


@dataclass(slots=True)
class _Mean:
    """A running mean of tokens and milliseconds."""

    tokens: float = 0.0
    ms: float = 0.0
    steps: int = 0

    def add(self, tokens: int, ms: float) -> None:
        self.tokens = self.tokens * _MEMORY + tokens
        self.ms = self.ms * _MEMORY + ms
        self.steps += 1

    @property
    def rate(self) -> float | None:
        """Tokens a millisecond."""
        return self.tokens / self.ms if self.steps >= _ENOUGH and self.ms > 0 else None


class TreeBudget:
    """Measures what drafting is worth here and now, and rations it."""

    def __init__(self) -> None:
        self._drafted = _Mean()
        self._plain = _Mean()
        self._alike = 0
        """steps of one kind in a row: above 0 drafted ones, below 0 plain ones"""

    @property
    def worth(self) -> float | None:
        """Tokens a millisecond of drafted steps over those of plain ones."""
        drafted, plain = self._drafted.rate, self._plain.rate
        return drafted / plain if drafted is not None and plain else None

    def observe(self, step: StepResult) -> None:
        """Take in what a step cost and brought."""
        if not step.forwards:
            return
        drafted = bool(step.tree.drafted)
        (self._drafted if drafted else self._plain).add(1 + len(step.accepted), step.draft_ms + step.verify_ms)
        self._alike = max(self._alike, 0) + 1 if drafted else min(self._alike, 0) - 1

    def choose(self, shape: TreeShape, queue: int, *, adaptive: bool = True) -> tuple[TreeShape, protocol.Choice]:
        """The next step's tree, and why; the one that was asked for where it is not `adaptive`."""
        chosen, reason = shape, ""
        if adaptive and queue > 0:
            chosen, reason = self._ration(shape, queue)
        return chosen, protocol.Choice(
            nodes=chosen.nodes, depth=chosen.depth, width=chosen.width, queue=queue, reason=reason
        )

    def _ration(self, shape: TreeShape, queue: int) -> tuple[TreeShape, str]:
        """Under load; now and then a step of the other kind, or nobody would notice that it pays more by now."""
        waiting = f"{queue} {'request waits' if queue == 1 else 'requests wait'}"
        if self._alike >= _LOOK:
            return under_load(shape, queue, 0.0), f"{waiting}; looking what a plain step costs"
        if self._alike <= -_LOOK:
            return under_load(shape, queue), f"{waiting}; looking what drafting brings"
        chosen = under_load(shape, queue, self.worth)
        return chosen, f"{waiting}; plain decoding is quicker" if chosen.nodes == 0 else waiting
