"""The shape of a Llama-family decoder, read from a Hugging Face config."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from assistant.errors import ArchitectureError, ModelCorruptError

FAMILIES = ("llama", "qwen2", "qwen3")
ROPE_TYPES = ("default", "linear", "llama3", "yarn")


@dataclass(frozen=True, slots=True)
class DecoderConfig:
    """What the lean forward needs to know of a model before it sees the tensors."""

    family: str
    """llama (SmolLM and SmolLM2 included), qwen2 or qwen3"""
    vocab_size: int
    hidden_size: int
    intermediate_size: int
    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    max_positions: int
    rope_theta: float
    rope_scaling: dict[str, Any] | None
    """in Hugging Face's form: rope_type, factor, ...; None for plain rotary positions"""
    rms_norm_eps: float
    qkv_bias: bool
    qk_norm: bool
    tied_head: bool

    @classmethod
    def from_hf(cls, config: Mapping[str, Any]) -> Self:
        """Read a `config.json`, of transformers 4 (`rope_theta`, `rope_scaling`) or 5 (`rope_parameters`).

        Raises:
            ArchitectureError: another family, or a variant (activation, sliding window, rope type) that the lean
                forward does not compute.
            ModelCorruptError: a field that every decoder has is missing.
        """
        family = config.get("model_type")
        if family not in FAMILIES:
            raise ArchitectureError(f"the lean decoder runs {', '.join(FAMILIES)}, not {family!r}")
        _refuse_variants(config)
        rope = dict(config.get("rope_parameters") or config.get("rope_scaling") or {})
        theta = rope.pop("rope_theta", None) or config.get("rope_theta") or 10000.0
        try:
            heads = int(config["num_attention_heads"])
            return cls(
                family=str(family),
                vocab_size=int(config["vocab_size"]),
                hidden_size=int(config["hidden_size"]),
                intermediate_size=int(config["intermediate_size"]),
                layers=int(config["num_hidden_layers"]),
                heads=heads,
                kv_heads=int(config.get("num_key_value_heads") or heads),
                head_dim=int(config.get("head_dim") or int(config["hidden_size"]) // heads),
                max_positions=int(config.get("max_position_embeddings") or 2048),
                rope_theta=float(theta),
                rope_scaling=_scaling(rope),
                rms_norm_eps=float(config.get("rms_norm_eps") or 1e-6),
                qkv_bias=bool(config.get("attention_bias", family == "qwen2")),
                qk_norm=family == "qwen3",
                tied_head=bool(config.get("tie_word_embeddings", False)),
            )
        except KeyError as error:
            raise ModelCorruptError(f"the model's config.json lacks {error}") from error

    @property
    def group(self) -> int:
        """Query heads that share one key/value head."""
        return self.heads // self.kv_heads


def _scaling(rope: dict[str, Any]) -> dict[str, Any] | None:
    kind = rope.pop("type", None)
    kind = rope.get("rope_type") or kind or "default"
    if kind not in ROPE_TYPES:
        raise ArchitectureError(f"the lean decoder computes {', '.join(ROPE_TYPES)} rope scaling, not {kind!r}")
    return None if kind == "default" else {**rope, "rope_type": kind}


def _refuse_variants(config: Mapping[str, Any]) -> None:
    activation = config.get("hidden_act", "silu")
    if activation != "silu":
        raise ArchitectureError(f"the lean decoder computes silu, not {activation!r}")
    if config.get("use_sliding_window"):
        raise ArchitectureError("the lean decoder computes full attention, and this model uses a sliding window")
    rope = config.get("rope_parameters") or config.get("rope_scaling") or {}
    if rope.get("partial_rotary_factor", config.get("partial_rotary_factor", 1.0)) != 1.0:
        raise ArchitectureError("the lean decoder rotates whole heads, and this model rotates a part of each")
