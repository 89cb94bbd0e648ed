"""How much a drafter's own word is worth in the text at hand."""

from dataclasses import dataclass
from typing import Self

_MEMORY = 0.97
"""share of what was seen that is kept with each new draft"""
_ASSUMED = 2.0
"""predicted acceptances that stand behind a drafter's word before anything was seen"""
_BOUNDS = (0.05, 1.25)
_HOT = 4.0
"""power of a temperature above 1 by which a drafter is believed less: such text soon surprises its own target"""


@dataclass(slots=True)
class Trust:
    """How much more or less often a drafter is right in this text than it says: a factor on its confidences."""

    predicted: float = _ASSUMED
    right: float = _ASSUMED

    @classmethod
    def at(cls, temperature: float) -> Self:
        """Before anything was seen of a text that is drawn at this temperature."""
        return cls(right=_ASSUMED * max(1.0, temperature) ** -_HOT)

    @property
    def factor(self) -> float:
        """1 for a drafter that is as good as its word."""
        return min(max(self.right / self.predicted, _BOUNDS[0]), _BOUNDS[1])

    def see(self, predicted: float, *, right: bool) -> None:
        """Of the drafts below a node that the text went through, whether one was right, and how probable that was."""
        self.predicted = _MEMORY * self.predicted + (1 - _MEMORY) * _ASSUMED + predicted
        self.right = _MEMORY * self.right + (1 - _MEMORY) * _ASSUMED + right
