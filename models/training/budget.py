"""How much a run may take, and how training is fitted into what is left of it."""

from dataclasses import asdict, dataclass, replace
from pathlib import Path

import msgspec

from assistant.files import write_atomic
from models.training.features import Collected
from models.training.options import TrainOptions

_DATA_SHARE = 0.4
_EVALUATIONS = 8
_FEWEST_STEPS = 8


@dataclass(frozen=True, slots=True)
class Budget:
    """Bounds; None leaves one open."""

    minutes: float | None = None
    """of the whole run: two fifths for texts and features, the rest for training and its evaluations"""
    tokens: int | None = None
    """of training texts with features"""

    def enough(self, collected: Collected, before: float = 0.0) -> bool:
        """Whether there are texts enough, `before` being the seconds that held-out texts took."""
        return self.share(collected, before) >= 1.0

    def share(self, collected: Collected, before: float = 0.0) -> float:
        """The share of the bound that is nearest to being reached; 0 without bounds."""
        of_tokens = 0.0 if self.tokens is None else collected.tokens / self.tokens
        of_time = 0.0 if self.minutes is None else (collected.seconds + before) / (_DATA_SHARE * 60 * self.minutes)
        return max(of_tokens, of_time)

    def fitted(self, options: TrainOptions, spent: float, step: float, evaluation: float) -> TrainOptions:
        """Options with as many steps as fit.

        Args:
            options: as asked for.
            spent: seconds of the run so far.
            step: seconds of a training step.
            evaluation: seconds of an evaluation.
        """
        if self.minutes is None:
            return options
        left = 60 * self.minutes - spent - (_EVALUATIONS + 2) * evaluation
        steps = max(_FEWEST_STEPS, int(left / step))
        return replace(options, steps=steps, evaluate_every=max(1, -(-steps // _EVALUATIONS)))


def keep_plan(path: Path, options: TrainOptions) -> None:
    """Remember what a run was fitted to, so that a resumed one does the same."""
    write_atomic(path, msgspec.json.encode(asdict(options)))


def kept_plan(path: Path) -> TrainOptions | None:
    """What `keep_plan` wrote, or None."""
    return msgspec.json.decode(path.read_bytes(), type=TrainOptions) if path.exists() else None
