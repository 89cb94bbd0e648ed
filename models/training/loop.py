"""Training: batches, steps, checkpoints that a killed run goes on from, and a log of what was learned."""

import json
import math
import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Generic

import torch
from torch import Tensor

from assistant.errors import EagleAssistError, UserError
from assistant.files import atomic_file, ensure_dir
from models.training.dataset import Embed, epoch
from models.training.features import FeatureText
from models.training.lesson import Lesson, M
from models.training.options import TrainOptions
from models.training.scaled import ScaledAdamW
from models.training.unroll import Batch

CHECKPOINT = "checkpoint.pt"
_LOG = "log.jsonl"


class DivergedError(UserError):
    """The loss is no number any more."""


@dataclass(slots=True)
class Progress:
    """Where a run stands."""

    step: int = 0
    tokens: int = 0
    """tokens of texts that went through step 0 so far"""
    seconds: float = 0.0


class Trainer(Generic[M]):
    """One run. Deterministic: the same options and texts give the same weights, killed and resumed or not."""

    def __init__(
        self,
        lesson: Lesson[M],
        draft_vocab: Tensor,
        embed: Embed,
        options: TrainOptions,
        out: Path,
        scales: Mapping[str, Tensor] | None = None,
    ) -> None:
        """Train `lesson.model` on tokens of the draft vocabulary; checkpoints and the log lie in `out`.

        `scales` are those of `models.training.scaled`, by parameter; a resumed run takes its own from the checkpoint.
        """
        self.model = lesson.model
        self.progress = Progress()
        self._lesson = lesson
        self._draft_vocab = draft_vocab
        self._embed = embed
        self._options = options
        self._out = ensure_dir(out)
        self._learned = {name: p for name, p in self.model.named_parameters() if p.requires_grad}
        self._optimizers = _optimizers(self._learned, options, scales)
        self._average = {name: p.detach().clone() for name, p in self._learned.items()}

    def run(
        self,
        texts: Callable[[], Sequence[FeatureText]],
        evaluate: Callable[[M], dict[str, Any]],
        report: Callable[[dict[str, Any]], None] = lambda _: None,
    ) -> None:
        """Train to the last step, evaluating and saving as it goes.

        Args:
            texts: asked at every epoch's beginning, so that they may still be growing.
            evaluate: given the averaged model, the one that it starts with first; its figures go into the log.
            report: told each step's figures.

        Raises:
            DivergedError: the loss is no number.
        """
        if self.progress.step == 0:
            self._log(asdict(self.progress) | evaluate(self.averaged()))
        saved = time.monotonic()
        for batch in self._batches(texts):
            begun = time.monotonic()
            figures = self._step(batch)
            self.progress.step += 1
            self.progress.tokens += int((batch.ids != 0).sum())
            self.progress.seconds += time.monotonic() - begun
            report(asdict(self.progress) | figures)
            if self.progress.step % self._options.evaluate_every == 0 or self.progress.step == self._options.steps:
                self._log(asdict(self.progress) | figures | evaluate(self.averaged()))
            if time.monotonic() - saved > self._options.save_every or self.progress.step == self._options.steps:
                self.save()
                saved = time.monotonic()

    def _batches(self, texts: Callable[[], Sequence[FeatureText]]) -> Iterator[Batch]:
        """Batches from where the run stands; an epoch's order depends on its number alone."""
        passed, number = 0, 0
        while True:
            rng = random.Random(f"{self._options.seed}-{number}")  # noqa: S311 - nothing secret
            for batch in epoch(texts(), self._options.batch_tokens, self._draft_vocab, self._embed, rng):
                if self.progress.step >= self._options.steps:
                    return
                passed += 1
                if passed > self.progress.step:
                    yield batch
            number += 1
            if not passed:
                raise EagleAssistError("no texts to train on")

    def _step(self, batch: Batch) -> dict[str, Any]:
        options = self._options
        generator = torch.Generator().manual_seed(options.seed * 1_000_003 + self.progress.step)
        rate = _rate(self.progress.step, options)
        for optimizer in self._optimizers:
            for group in optimizer.param_groups:
                group["lr"] = rate
            optimizer.zero_grad(set_to_none=True)
        with torch.autocast(batch.ids.device.type, torch.bfloat16, enabled=options.precision == "bfloat16"):
            loss, right = self._lesson.loss(batch, generator)
        if not math.isfinite(float(loss.detach())):
            message = (
                f"the loss is no number at step {self.progress.step}: run again with a lower --learning-rate (it was "
                f"{options.learning_rate:g}); the checkpoint from before is kept."
            )
            raise DivergedError(message)
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(self._learned.values(), 1.0)
        for optimizer in self._optimizers:
            optimizer.step()
        self._keep_average()
        return {
            "loss": float(loss.detach()),
            "top1": [round(share, 4) for share in right],
            "rate": rate,
            "norm": float(norm),
        }

    def _keep_average(self) -> None:
        decay = min(self._options.average, (1 + self.progress.step) / (10 + self.progress.step))
        with torch.no_grad():
            for name, parameter in self._learned.items():
                self._average[name].lerp_(parameter, 1 - decay)

    def averaged(self) -> M:
        """A copy of the model with the running average of its weights."""
        copy = self._lesson.blank().to(self._draft_vocab.device)
        copy.load_state_dict({**self.model.state_dict(), **self._average})
        return copy.eval()

    def save(self) -> None:
        """Write a checkpoint, whole or not at all."""
        state = {
            "progress": asdict(self.progress),
            "model": {name: parameter.detach() for name, parameter in self._learned.items()},
            "average": self._average,
            "optimizers": [optimizer.state_dict() for optimizer in self._optimizers],
            "draft_vocab": self._draft_vocab,
        }
        with atomic_file(self._out / CHECKPOINT) as temporary:
            torch.save(state, temporary)

    def resume(self) -> bool:
        """Take up the last checkpoint, if there is one."""
        path = self._out / CHECKPOINT
        if not path.exists():
            return False
        state = torch.load(path, map_location=self._draft_vocab.device, weights_only=True)
        self.progress = Progress(**state["progress"])
        self.model.load_state_dict({**self.model.state_dict(), **state["model"]})
        self._average = state["average"]
        for optimizer, saved in zip(self._optimizers, state["optimizers"], strict=True):
            optimizer.load_state_dict(saved)
        return True

    def _log(self, row: dict[str, Any]) -> None:
        with (self._out / _LOG).open("a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")


def read_log(out: Path) -> list[dict[str, Any]]:
    """The figures of every evaluation so far; a resumed run's repeat replaces what it repeats."""
    path = out / _LOG
    if not path.exists():
        return []
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return sorted({row["step"]: row for row in rows}.values(), key=lambda row: row["step"])


def _rate(step: int, options: TrainOptions) -> float:
    """Warm-up, a constant rate, then a straight line to nothing."""
    rising = min(1.0, (step + 1) / max(1, options.warm_up))
    falling = min(1.0, (options.steps - step) / max(1.0, options.cool_down * options.steps))
    return options.learning_rate * min(rising, falling)


def _optimizers(
    learned: Mapping[str, torch.nn.Parameter], options: TrainOptions, scales: Mapping[str, Tensor] | None
) -> list[torch.optim.Optimizer]:
    """AdamW for all, scaled where it can be; or Muon (Jordan et al. 2024) with updates of AdamW's size for matrices."""
    if options.optimizer == "scaled" and scales is not None:
        return [ScaledAdamW(((p, scales.get(name, 1.0)) for name, p in learned.items()), options.learning_rate)]
    matrices = [p for p in learned.values() if p.dim() == 2]
    rest = [p for p in learned.values() if p.dim() != 2]
    if options.optimizer == "muon":
        muon = torch.optim.Muon(
            matrices, lr=options.learning_rate, momentum=0.95, weight_decay=0.01, adjust_lr_fn="match_rms_adamw"
        )
        return [muon, torch.optim.AdamW(rest, lr=options.learning_rate, betas=(0.9, 0.95), weight_decay=0.0)]
    groups = [{"params": matrices, "weight_decay": 0.01}, {"params": rest, "weight_decay": 0.0}]
    return [torch.optim.AdamW(groups, lr=options.learning_rate, betas=(0.9, 0.95))]
