"""Where a head's weights come from before training."""

from collections.abc import Callable, Iterable

import torch
from torch import Tensor

from models.decoder_config import DecoderConfig
from models.training.features import FeatureText
from models.training.head import TrainableHead, random_head

_RIDGE = 1e-3


def least_squares_head(
    config: DecoderConfig, texts: Iterable[FeatureText], embed: Callable[[Tensor], Tensor], seed: int = 0
) -> TrainableHead:
    """A head whose `fc` is the best linear map from (embedding of token i + 1, feature i) to feature i + 1.

    Ridge regression in closed form over the texts; attention and MLP start small, so that the map is what it does.
    """
    hidden = config.hidden_size
    size = 2 * hidden + 1
    square, cross, rows = torch.zeros((size, size)), torch.zeros((size, hidden)), 0
    for text in texts:
        inputs = torch.cat((embed(text.ids[1:]).float(), text.features[:-1].float()), 1)[:-1]
        inputs = torch.cat((inputs, torch.ones((len(inputs), 1))), 1)
        square += inputs.mT @ inputs
        cross += inputs.mT @ text.features[1:-1].float()
        rows += len(inputs)
    ridge = _RIDGE * square.diagonal().mean() * torch.eye(size)
    solved = torch.linalg.solve(square + ridge, cross)
    head = random_head(config, seed)
    with torch.no_grad():
        head.fc.weight.copy_(solved[:-1].mT)
        head.fc.bias.copy_(solved[-1])
    return head
