"""An independent small draft model for speculative sampling: some of its target's layers, taught to answer like it.

Embedding, output head and tokenizer are the target's, and stay as they are: what is learned are the layers between.
Distillation is by the forward KL divergence from the target's distribution (DistillSpec, Zhou et al. 2023, section 3).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from models.decoder_config import DecoderConfig
from models.training.dataset import collate
from models.training.features import FeatureText
from models.training.layer import Layer
from models.training.unroll import Batch

_BATCH = 8
_PREFIX = "model."
_CHAINS = (1, 2, 4, 8)
"""lengths of chains whose tokens a step are reported"""


class Student(nn.Module):
    """Decoder layers and a final norm, with Hugging Face's tensor names less their first part."""

    def __init__(self, config: DecoderConfig) -> None:
        super().__init__()
        self.config = config
        self.layers = nn.ModuleList([Layer(config, input_norm=True) for _ in range(config.layers)])
        self.norm = nn.RMSNorm(config.hidden_size, eps=config.rms_norm_eps)

    def forward(self, embeddings: Tensor) -> Tensor:
        """(B, n, H) embeddings of tokens from position 0 on -> (B, n, H) features after the norm."""
        positions = torch.arange(embeddings.shape[1], device=embeddings.device).expand(embeddings.shape[:2])
        x = embeddings.float()
        for layer in self.layers:
            x, _ = layer(x, positions)
        normed: Tensor = self.norm(x.float())
        return normed


def student_from(config: DecoderConfig, state: Mapping[str, Tensor], layers: int) -> Student:
    """A student made of `layers` of its target's layers, the first and the last always among them.

    Args:
        config: the target's.
        state: the target's tensors under Hugging Face's names.
        layers: fewer than the target has.
    """
    student = Student(replace(config, layers=layers))
    last = config.layers - 1
    kept = [round(place * last / max(1, layers - 1)) for place in range(layers)] if layers > 1 else [last]
    with torch.no_grad():
        for name, parameter in student.named_parameters():
            parameter.copy_(state[_PREFIX + _renamed(name, kept)])
    return student


def _renamed(name: str, kept: Sequence[int]) -> str:
    """The target's name of a student's tensor."""
    parts = name.split(".")
    return ".".join(["layers", str(kept[int(parts[1])]), *parts[2:]]) if parts[0] == "layers" else name


class StudentLesson:
    """The target's next-token distribution at every place of a text."""

    def __init__(self, student: Student, head: Tensor) -> None:
        """`head` is the target's whole output head, (V, H)."""
        self.model = student
        self._head = head

    def blank(self) -> Student:
        """A student of the same shape."""
        return Student(self.model.config)

    def loss(self, batch: Batch, generator: torch.Generator) -> tuple[Tensor, list[float]]:
        """See `Lesson.loss`; there are no estimated features, so there is one share."""
        del generator
        places = batch.weights.flatten().nonzero()[:, 0]
        weight = batch.weights.flatten()[places]
        weight = weight / weight.sum().clamp_min(1e-9)
        predicted = self.model(batch.embeddings).flatten(0, 1)[places]
        logits = F.linear(predicted.to(self._head.dtype), self._head).float()
        with torch.no_grad():
            wanted = F.linear(batch.features.flatten(0, 1)[places].to(self._head.dtype), self._head).float()
        divergence = F.kl_div(logits.log_softmax(-1), wanted.log_softmax(-1), reduction="none", log_target=True)
        right = (logits.argmax(-1) == wanted.argmax(-1)).float() @ weight
        return divergence.sum(-1) @ weight, [float(right)]


@torch.inference_mode()
def chain_figures(
    student: Student, texts: Sequence[FeatureText], head: Tensor, embed: Callable[[Tensor], Tensor]
) -> dict[str, Any]:
    """Tokens per step of greedy chains on what the target wrote, by chain length; "score" is the longest chain's.

    A chain's next draft is only reached where those before it were the text's own tokens, so that one forward over the
    text tells what every chain would have drafted.
    """
    totals = {length: [0, 0] for length in _CHAINS}
    right, places = 0, 0
    for start in range(0, len(texts), _BATCH):
        some = texts[start : start + _BATCH]
        batch = collate(some, torch.ones(len(head), dtype=torch.bool), embed)
        best = F.linear(student(batch.embeddings).to(head.dtype), head).argmax(-1)
        for row, text in enumerate(some):
            own = best[row, text.prompt_tokens : len(text.ids) - 1] == text.ids[text.prompt_tokens + 1 :].to(
                best.device
            )
            right, places = right + int(own.sum()), places + len(own)
            for length, total in totals.items():
                tokens, steps = _walk(own.tolist(), length)
                total[0] += tokens
                total[1] += steps
    chains = {str(length): round(tokens / max(1, steps), 4) for length, (tokens, steps) in totals.items()}
    return {
        "tokens_per_step": {"all": chains},
        "top1_by_estimated": [round(right / max(1, places), 4)],
        "score": chains[str(_CHAINS[-1])],
    }


def _walk(right: Sequence[bool], length: int) -> tuple[int, int]:
    """Tokens written and steps taken when `right` says where a draft is the text's next token."""
    place, steps = 0, 0
    while place < len(right):
        accepted = 0
        while accepted < length and place + accepted < len(right) and right[place + accepted]:
            accepted += 1
        place, steps = min(place + accepted + 1, len(right)), steps + 1
    return place, steps


def student_state(student: Student, embedding: Tensor, head: Tensor | None) -> dict[str, Tensor]:
    """The tensors of a model folder, float16; `head` is None where it is the embedding."""
    state = {_PREFIX + name: tensor.detach().half().contiguous() for name, tensor in student.named_parameters()}
    state[f"{_PREFIX}embed_tokens.weight"] = embedding.half().contiguous()
    return state if head is None else state | {"lm_head.weight": head.half().contiguous()}


def student_config(config: DecoderConfig, eos_ids: Sequence[int]) -> dict[str, Any]:
    """The config.json beside them."""
    names = {"llama": "LlamaForCausalLM", "qwen2": "Qwen2ForCausalLM", "qwen3": "Qwen3ForCausalLM"}
    described: dict[str, Any] = {
        "architectures": [names[config.family]],
        "model_type": config.family,
        "vocab_size": config.vocab_size,
        "hidden_size": config.hidden_size,
        "intermediate_size": config.intermediate_size,
        "num_hidden_layers": config.layers,
        "num_attention_heads": config.heads,
        "num_key_value_heads": config.kv_heads,
        "head_dim": config.head_dim,
        "hidden_act": "silu",
        "max_position_embeddings": config.max_positions,
        "rms_norm_eps": config.rms_norm_eps,
        "rope_theta": config.rope_theta,
        "attention_bias": config.qkv_bias,
        "tie_word_embeddings": config.tied_head,
        "eos_token_id": list(eos_ids),
        "torch_dtype": "float16",
    }
    return described if config.rope_scaling is None else described | {"rope_scaling": config.rope_scaling}
