"""How to train."""

from dataclasses import dataclass, field

from models.training.losses import LossWeights

RATE, RATE_ON = 1.5e-4, 5e-5
"""learning rates from a start in closed form, and from a trained head"""


@dataclass(frozen=True, slots=True)
class TrainOptions:
    """How to train."""

    steps: int = 1000
    """optimizer steps in all"""
    batch_tokens: int = 2048
    learning_rate: float = 1.5e-4
    warm_up: int = 20
    cool_down: float = 0.35
    """the last share of the steps, over which the rate falls to nothing"""
    unroll: int = 5
    """steps on the head's own outputs, the first one included; 1 is EAGLE-1's training"""
    anchors: float = 0.3
    """chains that are unrolled, as a share of the batch's positions"""
    optimizer: str = "scaled"
    """scaled (`models.training.scaled`; adamw where no scales are known), adamw or muon"""
    losses: LossWeights = field(default_factory=LossWeights)
    average: float = 0.98
    """decay of the running average of the weights, which is what is kept"""
    seed: int = 0
    save_every: float = 120.0
    """seconds between checkpoints"""
    evaluate_every: int = 100
    precision: str = "float32"
    """of the matrix products, bfloat16 or float32; weights and optimizer stay float32"""
