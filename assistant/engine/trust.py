"""How much a drafter's own word is worth in the text at hand."""

from dataclasses import dataclass

_MEMORY = 0.97
"""share of what was seen that is kept with each new draft"""
_ASSUMED = 2.0
"""predicted acceptances that stand behind a drafter's word before anything was seen"""
_BOUNDS = (0.05, 1.25)


@dataclass(slots=True)
class Trust:
    """How much more or less often a drafter is right in this text than it says: a factor on its confidences."""

    predicted: float = _ASSUMED
    right: float = _ASSUMED

    @property
    def factor(self) -> float:
        """1 for a drafter that is as good as its word."""
        return min(max(self.right / self.predicted, _BOUNDS[0]), _BOUNDS[1])

    def see(self, predicted: float, *, right: bool) -> None:
        """Of the drafts below a node that the text went through, whether one was right, and how probable that was."""
        self.predicted = _MEMORY * self.predicted + (1 - _MEMORY) * _ASSUMED + predicted
        self.right = _MEMORY * self.right + (1 - _MEMORY) * _ASSUMED + right
