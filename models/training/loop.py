"""Training: batches, steps, checkpoints that a killed run goes on from, and a log of what was learned."""

import json
import math
import random
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from assistant.errors import EagleAssistError, UserError
from assistant.files import atomic_file, ensure_dir
from models.training.dataset import Embed, epoch
from models.training.features import FeatureText
from models.training.head import TrainableHead
from models.training.losses import LossWeights, loss_of
from models.training.unroll import Batch, choose_anchors, unroll

CHECKPOINT = "checkpoint.pt"
_LOG = "log.jsonl"


class DivergedError(UserError):
    """The loss is no number any more."""


@dataclass(frozen=True, slots=True)
class TrainOptions:
    """How to train."""

    steps: int = 1000
    """optimizer steps in all"""
    batch_tokens: int = 2048
    learning_rate: float = 4e-4
    warm_up: int = 20
    cool_down: float = 0.35
    """the last share of the steps, over which the rate falls to nothing"""
    unroll: int = 5
    """steps on the head's own outputs, the first one included; 1 is EAGLE-1's training"""
    anchors: float = 0.3
    """chains that are unrolled, as a share of the batch's positions"""
    optimizer: str = "adamw"
    """adamw or muon"""
    losses: LossWeights = field(default_factory=LossWeights)
    average: float = 0.98
    """decay of the running average of the weights, which is what is kept"""
    seed: int = 0
    save_every: float = 120.0
    """seconds between checkpoints"""
    evaluate_every: int = 100
    precision: str = "bfloat16"
    """of the matrix products; weights and optimizer stay float32"""


@dataclass(slots=True)
class Progress:
    """Where a run stands."""

    step: int = 0
    tokens: int = 0
    """tokens of texts that went through step 0 so far"""
    seconds: float = 0.0


class Trainer:
    """One run. Deterministic: the same options and texts give the same weights, killed and resumed or not."""

    def __init__(
        self,
        head: TrainableHead,
        vocabulary: Tensor,
        draft_vocab: Tensor,
        embed: Embed,
        options: TrainOptions,
        out: Path,
    ) -> None:
        self.head = head
        self.progress = Progress()
        self._vocabulary = vocabulary
        self._draft_vocab = draft_vocab
        self._embed = embed
        self._options = options
        self._out = ensure_dir(out)
        self._optimizers = _optimizers(head, options)
        self._average = {name: p.detach().clone() for name, p in head.named_parameters()}

    def run(
        self,
        texts: Callable[[], Sequence[FeatureText]],
        evaluate: Callable[[TrainableHead], dict[str, Any]],
        report: Callable[[dict[str, Any]], None] = lambda _: None,
    ) -> None:
        """Train to the last step, evaluating and saving as it goes.

        Args:
            texts: asked at every epoch's beginning, so that they may still be growing.
            evaluate: given the averaged head, the one that it starts with first; its figures go into the log.
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
        anchors = None
        if options.unroll > 1:
            count = max(1, round(options.anchors * batch.ids.shape[1]))
            anchors = choose_anchors(batch.weights, count, generator)
        rate = _rate(self.progress.step, options)
        for optimizer in self._optimizers:
            for group in optimizer.param_groups:
                group["lr"] = rate
            optimizer.zero_grad(set_to_none=True)
        with torch.autocast(batch.ids.device.type, torch.bfloat16, enabled=options.precision == "bfloat16"):
            steps = unroll(self.head, batch, anchors, options.unroll)
            loss, right = loss_of(steps, batch, self._vocabulary, options.losses)
        if not math.isfinite(float(loss.detach())):
            message = (
                f"the loss is no number at step {self.progress.step}: run again with a lower --learning-rate (it was "
                f"{options.learning_rate:g}); the checkpoint from before is kept."
            )
            raise DivergedError(message)
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(self.head.parameters(), 1.0)
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
            for name, parameter in self.head.named_parameters():
                self._average[name].lerp_(parameter, 1 - decay)

    def averaged(self) -> TrainableHead:
        """A copy of the head with the running average of its weights."""
        copy = TrainableHead(self.head.config)
        copy.load_state_dict(self._average)
        return copy.eval()

    def save(self) -> None:
        """Write a checkpoint, whole or not at all."""
        state = {
            "progress": asdict(self.progress),
            "head": self.head.state_dict(),
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
        self.head.load_state_dict(state["head"])
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


def _optimizers(head: TrainableHead, options: TrainOptions) -> list[torch.optim.Optimizer]:
    """AdamW for all, or Muon (Jordan et al. 2024) for matrices with updates of AdamW's size and AdamW for the rest."""
    matrices = [p for p in head.parameters() if p.dim() == 2]
    rest = [p for p in head.parameters() if p.dim() != 2]
    if options.optimizer == "muon":
        muon = torch.optim.Muon(
            matrices, lr=options.learning_rate, momentum=0.95, weight_decay=0.01, adjust_lr_fn="match_rms_adamw"
        )
        return [muon, torch.optim.AdamW(rest, lr=options.learning_rate, betas=(0.9, 0.95), weight_decay=0.0)]
    groups = [{"params": matrices, "weight_decay": 0.01}, {"params": rest, "weight_decay": 0.0}]
    return [torch.optim.AdamW(groups, lr=options.learning_rate, betas=(0.9, 0.95))]
