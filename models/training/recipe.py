"""What a training run is asked to make, and from what."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from models.training.budget import Budget
from models.training.features import BATCH
from models.training.options import TrainOptions
from models.training.samples import Mix

Say = Callable[[str], None]
"""told one line of progress at a time"""


@dataclass(frozen=True, slots=True)
class Recipe:
    """Everything that decides what a run makes."""

    data: tuple[Path, ...]
    out: Path
    log: Path | None = None
    """completions that the daemon kept, see `models.training.logged`"""
    exclude: tuple[Path, ...] = ()
    """task files whose texts are refused"""
    mix: Mix = field(default_factory=lambda: Mix.of(3000))
    held_out: Mix = field(default_factory=lambda: Mix.of(120))
    files_per_language: int = 600
    draft_vocab_size: int | None = None
    """None: the usual one (`vocabulary.DRAFT_VOCABULARY`), or that of the head to start from"""
    intermediate_size: int = 2048
    """neurons of the head's MLP"""
    layers: int = 4
    """of an independent draft model"""
    start: str | None = None
    """a head to start from; None solves for one in closed form"""
    sequences: int = BATCH
    """texts that the target writes at once; a GPU takes hundreds"""
    judged: int = 36
    """held-out texts of the evaluations during training; the last one takes all"""
    budget: Budget = field(default_factory=Budget)
    training: TrainOptions = field(default_factory=TrainOptions)
    target: str = ""
    """the name by which a head is found for its model; the target's own where empty"""
    command: str = ""
    """for the card"""
