"""What a run teaches: a model, and how a batch is judged. The loop is the same for all."""

from typing import Protocol, TypeVar

import torch
from torch import Tensor, nn

from models.training.head import TrainableHead
from models.training.losses import loss_of
from models.training.options import TrainOptions
from models.training.unroll import Batch, choose_anchors, unroll

M = TypeVar("M", bound=nn.Module)


class Lesson(Protocol[M]):
    """A model in training."""

    model: M

    def blank(self) -> M:
        """Another model of the same shape, to hold averaged weights."""
        ...

    def loss(self, batch: Batch, generator: torch.Generator) -> tuple[Tensor, list[float]]:
        """What to minimise, and shares of places whose best token is the target's, by estimated features.

        Args:
            batch: texts with the target's features.
            generator: for whatever is drawn at random.
        """
        ...


class HeadLesson:
    """EAGLE-2's head: feature and soft token losses (EAGLE, section 4.2), aligned over its own steps (HASS)."""

    def __init__(self, head: TrainableHead, vocabulary: Tensor, options: TrainOptions) -> None:
        """`vocabulary` is (k, H) rows of the target's head for the draft vocabulary."""
        self.model = head
        self._vocabulary = vocabulary
        self._options = options

    def blank(self) -> TrainableHead:
        """A head of the same shape and inputs."""
        return TrainableHead(self.model.config, self.model.inputs)

    def loss(self, batch: Batch, generator: torch.Generator) -> tuple[Tensor, list[float]]:
        """See `Lesson.loss`."""
        options, anchors = self._options, None
        if options.unroll > 1:
            count = max(1, round(options.anchors * batch.ids.shape[1]))
            anchors = choose_anchors(batch.weights, count, generator)
        return loss_of(unroll(self.model, batch, anchors, options.unroll), batch, self._vocabulary, options.losses)
