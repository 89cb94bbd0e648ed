"""Where a head's weights come from before training: closed form, from the target's last layer and its features."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from models.decoder_config import DecoderConfig
from models.training.features import FeatureText
from models.training.head import Inputs, TrainableHead, random_head
from models.weights import LayerWeights, StateReader, read_layer

_RIDGE = 1e-3
_MOST_TOKENS = 120_000
"""more do not make a better map"""

Embed = Callable[[Tensor], Tensor]
Weights = Callable[[], tuple[DecoderConfig, Mapping[str, Tensor]] | None]
"""opens a target's tensors, float and under Hugging Face's names; None for what is no lean decoder"""


@dataclass(frozen=True, slots=True)
class Donor:
    """The target's last layer, whose attention and strongest neurons a head can start with."""

    layer: LayerWeights
    norm: Tensor
    """(H,) the target's final norm, which stands between that layer's output and features"""

    @classmethod
    def of(cls, weights: tuple[DecoderConfig, Mapping[str, Tensor]] | None) -> "Donor | None":
        """The donor among a target's own tensors; None where they cannot be read."""
        if weights is None:
            return None
        config, state = weights
        reader = StateReader(state)
        layer = read_layer(reader, config, f"model.layers.{config.layers - 1}.")
        return cls(layer, reader.get("model.norm.weight", (config.hidden_size,)))


def closed_form_head(
    config: DecoderConfig,
    texts: Sequence[FeatureText],
    embed: Embed,
    *,
    donor: Donor | None = None,
    seed: int = 0,
    inputs: Inputs = "both",
) -> TrainableHead:
    """A head whose linear outputs are solved for, one after another, by ridge regression on the target's features.

    First `fc`, the best linear map from (embedding of token i + 1, feature i) to feature i + 1; then, of what is left,
    the best output projections of attention and of MLP. Their inner weights are the donor's, or random and small
    where there is none: those have nothing to say, and their outputs stay as they are.

    Args:
        config: the head's shape.
        texts: with the target's features.
        embed: the target's embedding.
        donor: the target's last layer.
        seed: of random weights.
        inputs: what the head is shown.
    """
    head = random_head(config, seed, inputs)
    head.to(embed(torch.zeros(1, dtype=torch.int64)).device)
    chosen = list(_some(texts))
    attention, mlp = head.layer.self_attn.o_proj, head.layer.mlp.down_proj
    kept = (attention.weight.detach().clone(), mlp.weight.detach().clone())
    with torch.no_grad():
        attention.weight.zero_()
        mlp.weight.zero_()
        head.fc.weight.zero_()
        _solve(head, head.fc, chosen, embed)
        if donor is None:
            attention.weight.copy_(kept[0])
            mlp.weight.copy_(kept[1])
        else:
            _give(head, donor, _feature_size(chosen))
            _solve(head, attention, chosen, embed)
            _solve(head, mlp, chosen, embed)
    return head


def _some(texts: Sequence[FeatureText]) -> Iterator[FeatureText]:
    """Texts spread evenly over all of them, of `_MOST_TOKENS` tokens at most."""
    total = sum(len(text.ids) for text in texts)
    step = max(1, -(-total // _MOST_TOKENS))
    yield from texts[::step]


def _feature_size(texts: Sequence[FeatureText]) -> float:
    """Root mean square of features."""
    squares = [float(text.features.float().square().mean()) for text in texts[:64]]
    return math.sqrt(sum(squares) / max(1, len(squares)))


def _solve(head: TrainableHead, linear: nn.Linear, texts: Sequence[FeatureText], embed: Embed) -> None:
    """Set a linear layer to what is missing between the head's output and the features, given the layer's inputs."""
    device = linear.weight.device
    inputs: list[Tensor] = []
    hook = linear.register_forward_pre_hook(lambda _, given: inputs.append(given[0]))
    outputs, width = linear.weight.shape
    biased = linear.bias is not None
    square = torch.zeros((width + biased, width + biased), device=device)
    cross = torch.zeros((width + biased, outputs), device=device)
    for text in texts:
        given, wanted = embed(text.ids.to(device)).float(), text.features.to(device).float()
        end = len(text.ids) - 2
        positions = torch.arange(end, device=device)
        predicted, _ = head(given[None, 1:-1], wanted[None, :-2], positions[None])
        x = inputs.pop()[0].float()
        if biased:
            x = torch.cat((x, torch.ones((end, 1), device=device)), 1)
        square += x.mT @ x
        cross += x.mT @ (wanted[1:-1] - predicted[0])
    hook.remove()
    # Each input has a ridge of its own: embeddings are hundreds of times smaller than features.
    ridge = _RIDGE * square.diagonal() + 1e-6 * square.diagonal().mean() + 1e-12
    solved = torch.linalg.solve(square + ridge.diag(), cross)
    linear.weight.copy_(solved[:width].mT)
    if biased:
        linear.bias.copy_(solved[width])


def _give(head: TrainableHead, donor: Donor, size: float) -> None:
    """Copy the donor's queries, keys, values and strongest neurons.

    The donor's inputs are normed rows of the residual stream, the head's are features: those rows times the final norm.
    """
    config, given = head.config, donor.layer
    attention, mlp = head.layer.self_attn, head.layer.mlp
    norm = donor.norm.sign() * donor.norm.abs().clamp_min(1e-2 * donor.norm.abs().mean())
    before = given.input_norm if given.input_norm is not None else torch.ones_like(norm)
    queries, keys = config.heads * config.head_dim, config.kv_heads * config.head_dim
    parts = (given.qkv * (before / norm)).split((queries, keys, keys))
    biases = (torch.zeros(len(given.qkv)) if given.qkv_bias is None else given.qkv_bias).split((queries, keys, keys))
    for linear, weight, bias in zip((attention.q_proj, attention.k_proj, attention.v_proj), parts, biases, strict=True):
        linear.weight.copy_(weight)
        linear.bias.copy_(bias)
    gate, up = given.gate_up.chunk(2)
    strength = up.norm(dim=1) * gate.norm(dim=1) * given.down.norm(dim=0)
    strongest = strength.topk(min(config.intermediate_size, len(strength))).indices.sort().values
    mlp.gate_proj.weight[: len(strongest)] = gate[strongest]
    mlp.up_proj.weight[: len(strongest)] = up[strongest]
    head.layer.post_attention_layernorm.weight.copy_(given.post_norm / norm * size)
