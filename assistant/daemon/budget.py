"""How large a draft tree may be while others wait, and whether drafting pays at all."""

from collections import deque
from dataclasses import dataclass, field, replace

from assistant import protocol
from assistant.engine.tree import TreeShape
from assistant.engine.types import StepResult

_WINDOW = 32
"""steps of a size that are remembered"""
_ENOUGH = 8
"""steps of a size before its average is believed"""
_LOOK = 48
"""times the time of a step of another size, after which one is taken, or nobody would notice that it pays by now"""


def under_load(shape: TreeShape, queue: int) -> TreeShape:
    """The largest tree that a step may grow while `queue` requests wait for the engine.

    A large tree buys its owner a few tokens a step at the cost of everybody's next turn. So the budget shrinks with
    the queue, to a third of its nodes with four waiting.
    """
    if queue <= 0:
        return shape
    return _cut(shape, -(-shape.nodes * 2 // (2 + queue)))


def _cut(shape: TreeShape, nodes: int) -> TreeShape:
    return replace(shape, nodes=nodes, depth=min(shape.depth, nodes), width=max(1, min(shape.width, nodes)))


@dataclass(slots=True)
class _Seen:
    """The latest steps of one size."""

    last: float = 0.0
    """when the last one was, in milliseconds of all steps"""
    latest: deque[tuple[int, float]] = field(default_factory=lambda: deque(maxlen=_WINDOW))
    """tokens and milliseconds of each"""

    @property
    def ms(self) -> float:
        """Milliseconds of a step, on average.

        The slowest is left out: one that was held up says nothing about its size, and a size that is given up is looked
        at too rarely to live a mistake down.
        """
        times = [ms for _, ms in self.latest]
        return (sum(times) - max(times)) / (len(times) - 1) if len(times) > 1 else sum(times)

    @property
    def rate(self) -> float | None:
        """Tokens a millisecond; None before there were enough steps."""
        if len(self.latest) < _ENOUGH or not self.ms:
            return None
        return sum(tokens for tokens, _ in self.latest) / len(self.latest) / self.ms


class TreeBudget:
    """Measures what trees of each size bring here and now, plain steps being those of size 0, and rations by that.

    Under load a step is of the size that gave the most tokens a millisecond among those that the queue leaves, so
    drafting is given up where it does not pay. Only steps that look what another size brings are of one that is known
    to be worse: `_ENOUGH` of each at first, and later no more than `1 / _LOOK` of the time for each.
    """

    def __init__(self) -> None:
        self._sizes: dict[int, _Seen] = {}
        self._spent = 0.0
        """milliseconds of all steps"""

    def rate(self, nodes: int) -> float | None:
        """Tokens a millisecond of steps with a budget of so many nodes; None where too few were seen."""
        return self._sizes[nodes].rate if nodes in self._sizes else None

    def observe(self, step: StepResult, nodes: int) -> None:
        """Take in what a step cost and brought whose budget was `nodes`, whatever was drafted of it."""
        if step.forwards:
            seen = self._sizes.setdefault(nodes, _Seen())
            ms = step.draft_ms + step.verify_ms
            self._spent += ms
            seen.last = self._spent
            seen.latest.append((1 + len(step.accepted), ms))

    def choose(self, shape: TreeShape, queue: int, *, adaptive: bool = True) -> tuple[TreeShape, protocol.Choice]:
        """The next step's tree, and why; the one that was asked for where it is not `adaptive`."""
        chosen, reason = shape, ""
        if adaptive and queue > 0 and shape.nodes:
            waiting = f"{queue} {'request waits' if queue == 1 else 'requests wait'}"
            nodes, why = self._ration(under_load(shape, queue).nodes)
            chosen, reason = _cut(shape, nodes), waiting + why
        return chosen, protocol.Choice(
            nodes=chosen.nodes, depth=chosen.depth, width=chosen.width, queue=queue, reason=reason
        )

    def _ration(self, most: int) -> tuple[int, str]:
        """The size of a step under load, and why it is not the most that the queue leaves."""
        for nodes in (most, 0):
            if self.rate(nodes) is None:
                return nodes, _LOOKING[nodes == 0]
        rates = {nodes: self.rate(nodes) or 0.0 for nodes in self._sizes if nodes <= most}
        best = max(rates, key=lambda nodes: (rates[nodes], nodes))
        for nodes in {most, 0} - {best}:
            if self._spent - self._sizes[nodes].last >= _LOOK * self._sizes[nodes].ms:
                return nodes, _LOOKING[nodes == 0]
        return best, _CHOSEN[best == 0] if best < most else ""


_LOOKING = ("; looking what drafting brings", "; looking what a plain step costs")
_CHOSEN = ("; a smaller tree brings more", "; plain decoding is quicker")
