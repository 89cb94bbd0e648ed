"""The draft head as it is trained: batched, differentiable, with the tensor names that `models.draft_head` reads."""

import math
from collections.abc import Mapping
from typing import Any, Literal

import torch
from torch import Tensor, nn

from assistant.errors import HeadMismatchError
from models.decoder_config import DecoderConfig
from models.training.layer import Keys, Layer

Inputs = Literal["both", "feature", "token"]
"""what a head is shown: feature and shifted token as it should be, or one alone for the ablation (EAGLE, figure 9)"""


class TrainableHead(nn.Module):
    """One decoder layer over `fc(embedding, feature)`, in SafeAILab's EAGLE-1/2 layout (Li et al. 2024, section 4.1).

    No norm before the attention and none at the end: the output is a feature of the target's, and goes into rows of the
    target's own, frozen head.
    """

    def __init__(self, config: DecoderConfig, inputs: Inputs = "both") -> None:
        super().__init__()
        self.config = config
        self.inputs = inputs
        self.fc = nn.Linear(2 * config.hidden_size, config.hidden_size)
        self.layers = nn.ModuleList([Layer(config, input_norm=False)])

    @property
    def layer(self) -> Layer:
        """The one layer."""
        layer = self.layers[0]
        assert isinstance(layer, Layer)
        return layer

    def forward(
        self,
        embeddings: Tensor,
        features: Tensor,
        positions: Tensor,
        past: Keys | None = None,
        mask: Tensor | None = None,
    ) -> tuple[Tensor, Keys]:
        """Run rows of B sequences.

        Args:
            embeddings: (B, n, H) of tokens i + 1.
            features: (B, n, H) of tokens i, the target's or the head's own.
            positions: (B, n) of tokens i.
            past: rows that these may see besides themselves.
            mask: (B, n, past + n) bool, what each row sees; None is causal and takes no past.

        Returns:
            (B, n, H) predicted features of tokens i + 1, and the rows that later ones see: the past and these.
        """
        if self.inputs != "both":
            shown = (embeddings, torch.zeros_like(features))
            embeddings, features = shown if self.inputs == "token" else (torch.zeros_like(embeddings), features)
        x = self.fc(torch.cat((embeddings, features.to(embeddings.dtype)), -1))
        predicted, rows = self.layer(x, positions, past, mask)
        return predicted, rows


def head_shape(target: DecoderConfig, intermediate_size: int) -> DecoderConfig:
    """A head's one layer for a target: its sizes but for the MLP's, and no q/k norms."""
    return DecoderConfig(
        family="llama",
        vocab_size=target.vocab_size,
        hidden_size=target.hidden_size,
        intermediate_size=intermediate_size,
        layers=1,
        heads=target.heads,
        kv_heads=target.kv_heads,
        head_dim=target.head_dim,
        max_positions=target.max_positions,
        rope_theta=target.rope_theta,
        rope_scaling=target.rope_scaling,
        rms_norm_eps=target.rms_norm_eps,
        qkv_bias=True,
        qk_norm=False,
        tied_head=False,
    )


def random_head(config: DecoderConfig, seed: int = 0, inputs: Inputs = "both") -> TrainableHead:
    """A head that hands the feature on and knows nothing else yet: `fc` = identity on the feature, small layers."""
    generator = torch.Generator().manual_seed(seed)
    head = TrainableHead(config, inputs)
    hidden = config.hidden_size
    with torch.no_grad():
        for name, parameter in head.named_parameters():
            if parameter.dim() == 2:
                parameter.copy_(torch.randn(parameter.shape, generator=generator) / math.sqrt(parameter.shape[1]))
            elif name.endswith("bias"):
                parameter.zero_()
        head.fc.weight.mul_(0.1)
        head.fc.weight[:, hidden:] += torch.eye(hidden)
        head.layer.self_attn.o_proj.weight.mul_(0.1)
        head.layer.mlp.down_proj.weight.mul_(0.1)
    return head


def load_state(head: TrainableHead, state: Mapping[str, Tensor]) -> None:
    """Start from another head's tensors.

    Raises:
        HeadMismatchError: a tensor is missing or has another shape; names it.
    """
    with torch.no_grad():
        for name, parameter in head.named_parameters():
            found = state.get(name)
            if found is None or found.shape != parameter.shape:
                shape = "missing" if found is None else f"of shape {tuple(found.shape)}"
                message = f"tensor {name} is {shape}; training needs {tuple(parameter.shape)}"
                raise HeadMismatchError(message)
            parameter.copy_(found)


def head_state(head: TrainableHead, draft_vocab: Tensor) -> dict[str, Tensor]:
    """The tensors of a head's file, float16, under SafeAILab's names."""
    state = {name: tensor.detach().half().contiguous() for name, tensor in head.named_parameters()}
    return state | {"draft_vocab_ids": draft_vocab.int()}


def head_config(config: DecoderConfig, target: str, draft_vocab_size: int) -> dict[str, Any]:
    """The config.json beside it."""
    described = {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "target": target,
        "hidden_size": config.hidden_size,
        "intermediate_size": config.intermediate_size,
        "num_attention_heads": config.heads,
        "num_key_value_heads": config.kv_heads,
        "head_dim": config.head_dim,
        "num_hidden_layers": 1,
        "hidden_act": "silu",
        "rms_norm_eps": config.rms_norm_eps,
        "rope_theta": config.rope_theta,
        "max_position_embeddings": config.max_positions,
        "vocab_size": config.vocab_size,
        "draft_vocab_size": draft_vocab_size,
        "qkv_bias": config.qkv_bias,
        "bias": True,
        "torch_dtype": "float16",
    }
    return described if config.rope_scaling is None else described | {"rope_scaling": config.rope_scaling}
