"""Tiny random models for tests: a target of any family and precision, and a draft head that fits it."""

from typing import Any

import torch
from torch import Tensor

from models.decoder import DecoderConfig, LeanDecoder
from models.draft_head import DraftHead
from models.target import Target

VOCAB = 96
HIDDEN = 32
HEADS = 4
KV_HEADS = 2
HEAD_DIM = 8
INNER = 48


def tiny_config(family: str = "llama", **changes: Any) -> DecoderConfig:
    """A config of two layers, four heads over two key/value heads."""
    values: dict[str, Any] = {
        "model_type": family,
        "vocab_size": VOCAB,
        "hidden_size": HIDDEN,
        "intermediate_size": INNER,
        "num_hidden_layers": 2,
        "num_attention_heads": HEADS,
        "num_key_value_heads": KV_HEADS,
        "head_dim": HEAD_DIM,
        "max_position_embeddings": 1024,
        "rope_theta": 10000.0,
        "rms_norm_eps": 1e-6,
        "tie_word_embeddings": False,
    }
    return DecoderConfig.from_hf({**values, **changes})


def tiny_state(config: DecoderConfig, seed: int = 0, spread: float = 0.3) -> dict[str, Tensor]:
    """Random float32 tensors with Hugging Face's names."""
    random = torch.Generator().manual_seed(seed)

    def normal(*shape: int) -> Tensor:
        return torch.randn(shape, generator=random) * spread

    state = {
        "model.embed_tokens.weight": normal(config.vocab_size, config.hidden_size),
        "model.norm.weight": 1 + normal(config.hidden_size) / 3,
    }
    if not config.tied_head:
        state["lm_head.weight"] = normal(config.vocab_size, config.hidden_size)
    for index in range(config.layers):
        state |= _layer(config, f"model.layers.{index}.", normal)
        state[f"model.layers.{index}.input_layernorm.weight"] = 1 + normal(config.hidden_size) / 3
    return state


def tiny_target(
    family: str = "llama", precision: str = "float32", *, seed: int = 0, device: str = "cpu", **changes: Any
) -> LeanDecoder:
    """A random decoder; `changes` are config.json fields."""
    config = tiny_config(family, **changes)
    state = tiny_state(config, seed)
    return LeanDecoder.from_state(config, state, name=f"tiny-{family}", precision=precision, device=device)


def tiny_head_state(
    target: Target, *, seed: int = 1, layers: int = 1, draft_vocab: int | None = 48
) -> dict[str, Tensor]:
    """Random tensors of an EAGLE-1/2 head; its draft vocabulary is every second id."""
    spec = target.spec
    config = tiny_config(hidden_size=spec.hidden_size, vocab_size=spec.vocab_size, num_hidden_layers=layers)
    random = torch.Generator().manual_seed(seed)

    def normal(*shape: int) -> Tensor:
        return torch.randn(shape, generator=random) * 0.3

    state = {"fc.weight": normal(spec.hidden_size, 2 * spec.hidden_size), "fc.bias": normal(spec.hidden_size)}
    for index in range(layers):
        state |= _layer(config, f"layers.{index}.", normal)
        if index:
            state[f"layers.{index}.input_layernorm.weight"] = 1 + normal(spec.hidden_size) / 3
    if draft_vocab is not None:
        state["draft_vocab_ids"] = torch.arange(draft_vocab) * 2
    return state


def tiny_head(
    target: Target, precision: str = "float32", *, seed: int = 1, layers: int = 1, draft_vocab: int | None = 48
) -> DraftHead:
    """A random draft head that fits `target`."""
    state = tiny_head_state(target, seed=seed, layers=layers, draft_vocab=draft_vocab)
    return DraftHead.from_state(tiny_head_config(), state, target, precision)


def tiny_head_config() -> dict[str, Any]:
    """The head's config.json."""
    return {"num_attention_heads": HEADS, "num_key_value_heads": KV_HEADS, "head_dim": HEAD_DIM, "rms_norm_eps": 1e-6}


def _layer(config: DecoderConfig, prefix: str, normal: Any) -> dict[str, Tensor]:
    hidden, inner, width = config.hidden_size, config.intermediate_size, config.head_dim
    sizes = {"q": config.heads * width, "k": config.kv_heads * width, "v": config.kv_heads * width}
    state = {
        f"{prefix}self_attn.o_proj.weight": normal(hidden, sizes["q"]),
        f"{prefix}mlp.gate_proj.weight": normal(inner, hidden),
        f"{prefix}mlp.up_proj.weight": normal(inner, hidden),
        f"{prefix}mlp.down_proj.weight": normal(hidden, inner),
        f"{prefix}post_attention_layernorm.weight": 1 + normal(hidden) / 3,
    }
    for part, size in sizes.items():
        state[f"{prefix}self_attn.{part}_proj.weight"] = normal(size, hidden)
        if config.qkv_bias:
            state[f"{prefix}self_attn.{part}_proj.bias"] = normal(size)
    if config.qk_norm:
        state[f"{prefix}self_attn.q_norm.weight"] = 1 + normal(width) / 3
        state[f"{prefix}self_attn.k_norm.weight"] = 1 + normal(width) / 3
    return state
