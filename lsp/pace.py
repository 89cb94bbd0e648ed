"""How long to wait for the next key before the daemon is asked: as short as the user's rhythm allows."""

from dataclasses import dataclass

_WEIGHT = 0.3
"""of the newest observation in a running mean"""
_PAUSE_MS = 1000.0
"""a longer gap between keys is a pause, no rhythm"""
_MARGIN = 1.25
"""of a usual gap: the next key has probably come by then, if it comes"""


@dataclass(frozen=True, slots=True)
class Pace:
    """The user's rhythm and the daemon's, as running means in milliseconds; a value, like everything that is judged."""

    gap_ms: float | None = None
    """between keys; None: not typing"""
    answer_ms: float | None = None
    """from a request to its answer; None: none yet"""
    last_key_ms: float | None = None

    def key(self, now_ms: float) -> "Pace":
        """The pace after a change of the text."""
        if self.last_key_ms is None or now_ms - self.last_key_ms > _PAUSE_MS:
            return Pace(None, self.answer_ms, now_ms)
        return Pace(_mean(self.gap_ms, now_ms - self.last_key_ms), self.answer_ms, now_ms)

    def answer(self, took_ms: float) -> "Pace":
        """The pace after an answer of the daemon."""
        return Pace(self.gap_ms, _mean(self.answer_ms, took_ms), self.last_key_ms)

    def wait_ms(self, least_ms: float, most_ms: float) -> float:
        """How long to wait.

        A user who types faster than answers come would see none of those asked for between two keys: so it is waited
        for the gap to pass. Where answers are quicker than keys (they come from what is typed along, mostly), or the
        user pauses, the least is enough.
        """
        if self.gap_ms is None or self.answer_ms is None or self.answer_ms <= self.gap_ms:
            return least_ms
        return max(least_ms, min(self.gap_ms * _MARGIN, most_ms))


def _mean(mean: float | None, value: float) -> float:
    return value if mean is None else mean + _WEIGHT * (value - mean)
