"""The training stage of a run: fitted into its budget, resumed where it was killed, the best model kept."""

import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Generic

import torch
from torch import Tensor

from assistant.files import atomic_file
from models.training.budget import keep_plan, kept_plan
from models.training.dataset import Embed
from models.training.features import FeatureText
from models.training.lesson import Lesson, M
from models.training.loop import Trainer, read_log
from models.training.options import TrainOptions
from models.training.recipe import Recipe, Say

TRAINING, BEST = "training", "best.pt"
_TRIAL_STEPS = 4


@dataclass(frozen=True, slots=True)
class Stage(Generic[M]):
    """What is trained, on what, and how it is judged."""

    lesson: Lesson[M]
    texts: Sequence[FeatureText]
    draft_vocab: Tensor
    """(k,) tokens that count"""
    embed: Embed
    judge: Callable[[M], dict[str, Any]]
    """figures for the log; the best by "score" is kept"""
    what: str
    """what the score is, for people"""
    scales: Mapping[str, Tensor] | None = None
    """see `Trainer`"""

    def trainer(self, options: TrainOptions, out: Path) -> Trainer[M]:
        """A run of this stage."""
        return Trainer(self.lesson, self.draft_vocab, self.embed, options, out, self.scales)


def fit(stage: Stage[M], recipe: Recipe, spent: float, say: Say) -> M:
    """Train, or go on; returns the best model so far, which lies in `best.pt`.

    Args:
        stage: what to do.
        recipe: the run's; its options, and its budget of which `spent` seconds are gone.
        spent: see `recipe`.
        say: told every step.

    Raises:
        DivergedError: the loss is no number.
    """
    out = recipe.out / TRAINING
    options = _fitted(stage, recipe, spent, say)
    trainer = stage.trainer(options, out)
    trainer.resume()
    kept = out / BEST
    scores = [row["score"] for row in read_log(out) if row["step"] <= trainer.progress.step]
    best = [max(scores, default=-1.0)]

    def assess(averaged: M) -> dict[str, Any]:
        figures = stage.judge(averaged)
        say(f"held-out: {figures['score']:.3f} {stage.what}")
        if figures["score"] >= best[0]:
            best[0] = figures["score"]
            with atomic_file(kept) as temporary:
                torch.save(averaged.state_dict(), temporary)
        return figures

    def report(figures: dict[str, Any]) -> None:
        step = figures["step"]
        left = figures["seconds"] / step * (options.steps - step)
        say(
            f"step {step} of {options.steps}: loss {figures['loss']:.3f}, "
            f"{figures['tokens'] / figures['seconds']:.0f} tokens a second, about {left / 60:.0f} minutes left"
        )

    trainer.run(lambda: stage.texts, assess, report)
    finished = stage.lesson.blank().to(stage.draft_vocab.device)
    finished.load_state_dict(torch.load(kept, map_location=stage.draft_vocab.device, weights_only=True))
    return finished.eval()


def _fitted(stage: Stage[M], recipe: Recipe, spent: float, say: Say) -> TrainOptions:
    """The recipe's options, with steps as its minutes allow; measured once, and kept."""
    if recipe.budget.minutes is None:
        return recipe.training
    path = recipe.out / "plan.json"
    plan = kept_plan(path)
    if plan is not None:
        return plan
    evaluations: list[float] = []

    def assess(model: M) -> dict[str, Any]:
        begun = time.monotonic()
        figures = stage.judge(model)
        evaluations.append(time.monotonic() - begun)
        return figures

    with tempfile.TemporaryDirectory(dir=recipe.out) as folder:
        few = replace(recipe.training, steps=_TRIAL_STEPS, evaluate_every=_TRIAL_STEPS + 1)
        trial = replace(stage, lesson=deepcopy(stage.lesson)).trainer(few, Path(folder))
        trial.run(lambda: stage.texts, assess)
    step = trial.progress.seconds / _TRIAL_STEPS
    plan = recipe.budget.fitted(recipe.training, spent, step, evaluations[-1])
    keep_plan(path, plan)
    say(f"a step takes {step:.1f} s and an evaluation {evaluations[-1]:.0f} s: {plan.steps} steps will be trained")
    return plan
