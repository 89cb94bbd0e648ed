"""What a plain step costs on this machine: the yardstick of drafting, where `eagle-assist bench cost` was never run."""

from collections.abc import Callable
from statistics import median

from assistant.engine import cost
from assistant.engine.measure import plain_timer
from models.target import Target

SAMPLES = 5


class Pace:
    """Times plain forwards of a target, one whenever it is told to; costs that were measured before make that needless.

    Args:
        target: what is timed; the engine's thread alone calls `sample`.
    """

    def __init__(self, target: Target) -> None:
        self._target = target
        known = cost.load(target.spec)
        self._known = None if known is None else known.verify(1)
        self._times: list[float] = []
        self._timer: Callable[[], float] | None = None
        self._left = 0 if known is not None else SAMPLES + 1
        """one for warming up"""

    @property
    def plain_ms(self) -> float:
        """Milliseconds of a plain step, the median of what was measured; 0 where nothing was yet."""
        if self._known is not None:
            return self._known
        return median(self._times) if self._times else 0.0

    def sample(self) -> bool:
        """Time one forward; False where enough were timed. One that fails counts, so that nobody tries for ever."""
        if not self._left:
            return False
        self._left -= 1
        if self._timer is None:
            self._timer = plain_timer(self._target)
            self._timer()
        else:
            self._times = [*self._times, self._timer()]
        if not self._left:
            self._timer = None  # its cache goes with it
        return True
