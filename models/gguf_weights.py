"""A GGUF file as Hugging Face would write it: its config, and its tensors under Hugging Face's names."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from assistant.errors import ArchitectureError, ModelCorruptError
from models.gguf_files import GgufFile

FAMILIES = ("llama", "qwen2", "qwen3")
_TOP = {
    "token_embd.weight": "model.embed_tokens.weight",
    "output_norm.weight": "model.norm.weight",
    "output.weight": "lm_head.weight",
}
_IN_LAYER = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "attn_q_norm": "self_attn.q_norm",
    "attn_k_norm": "self_attn.k_norm",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
_LAYER = re.compile(r"blk\.(?P<layer>\d+)\.(?P<part>\w+)\.(?P<kind>weight|bias)")
_LLAMA3 = {"low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 8192}
"""what every Llama 3.1 to 3.3 has; a GGUF keeps only the factors that these make"""


def hf_config(file: GgufFile) -> dict[str, Any]:
    """The file's shape in the form of a `config.json`.

    Raises:
        ArchitectureError: another family, or a variant that the tensors' names cannot express.
        ModelCorruptError: a value that every decoder has is missing.
    """
    family = file.architecture
    if family not in FAMILIES:
        raise ArchitectureError(
            f"{file.path} is of the family {family!r}; those that run here are {', '.join(FAMILIES)}."
        )
    if file.parameter("expert_count", 0):
        raise ArchitectureError(f"{file.path} is a mixture of experts, which cannot run here; choose a dense model.")
    theta = float(file.parameter("rope.freq_base", 10000.0))
    try:
        hidden, heads = int(file.parameter("embedding_length")), int(file.parameter("attention.head_count"))
        head_dim = int(file.parameter("attention.key_length", hidden // heads))
        config = {
            "model_type": family,
            "vocab_size": file.tensors["token_embd.weight"].shape[0],
            "hidden_size": hidden,
            "intermediate_size": int(file.parameter("feed_forward_length")),
            "num_hidden_layers": int(file.parameter("block_count")),
            "num_attention_heads": heads,
            "num_key_value_heads": int(file.parameter("attention.head_count_kv", heads)),
            "head_dim": head_dim,
            "max_position_embeddings": int(file.parameter("context_length")),
            "rope_theta": theta,
            "rms_norm_eps": float(file.parameter("attention.layer_norm_rms_epsilon")),
            "partial_rotary_factor": int(file.parameter("rope.dimension_count", head_dim)) / head_dim,
            "tie_word_embeddings": "output.weight" not in file.tensors,
            "attention_bias": "blk.0.attn_q.bias" in file.tensors,
        }
    except (KeyError, TypeError, ZeroDivisionError) as error:
        raise ModelCorruptError(
            f"{file.path} lacks values that a decoder of the family {family!r} has; fetch the file again."
        ) from error
    return config | {"rope_scaling": _rope_scaling(file, head_dim, theta)}


def _rope_scaling(file: GgufFile, head_dim: int, theta: float) -> dict[str, Any] | None:
    if "rope_freqs.weight" in file.tensors:
        return _llama3_scaling(file, head_dim, theta)
    kind, factor = file.parameter("rope.scaling.type", "none"), file.parameter("rope.scaling.factor")
    if kind == "none" or factor is None:
        return None
    original = file.parameter("rope.scaling.original_context_length")
    known = {} if original is None else {"original_max_position_embeddings": int(original)}
    return {"rope_type": kind, "factor": float(factor), **known}


def _llama3_scaling(file: GgufFile, head_dim: int, theta: float) -> dict[str, Any]:
    """Recognise Llama 3's rule in the factors that it made; (D/2,) of them."""
    factors = file.tensor("rope_freqs.weight").astype(np.float64)
    scale, rule = float(factors.max()), _LLAMA3
    frequencies = theta ** -(np.arange(0, head_dim, 2) / head_dim)
    turns = rule["original_max_position_embeddings"] * frequencies / (2 * np.pi)
    keep = np.clip((turns - rule["low_freq_factor"]) / (rule["high_freq_factor"] - rule["low_freq_factor"]), 0, 1)
    expected = 1 / ((1 - keep) / scale + keep)
    if factors.shape != expected.shape or not np.allclose(factors, expected, rtol=1e-3):
        raise ArchitectureError(
            f"{file.path} scales its rotary positions in a way that cannot run here; use the safetensors folder."
        )
    return {"rope_type": "llama3", "factor": scale, **rule}


class GgufState(Mapping[str, Tensor]):
    """The file's tensors in float32 under Hugging Face's names, each dequantized when it is asked for and not kept."""

    def __init__(self, file: GgufFile) -> None:
        self._file = file
        self._names = {name: original for original in file.tensors if (name := _hf_name(original)) is not None}
        heads = int(file.parameter("attention.head_count"))
        # llama.cpp's llama rotates neighbouring values and had its rows put in that order; the other families did not.
        permuted = file.architecture == "llama"
        self._heads = (
            {"q_proj": heads, "k_proj": int(file.parameter("attention.head_count_kv", heads))} if permuted else {}
        )

    def __getitem__(self, name: str) -> Tensor:
        tensor = torch.from_numpy(self._file.tensor(self._names[name]))
        heads = next((count for part, count in self._heads.items() if f".{part}." in name), None)
        return tensor if heads is None else _halves_apart(tensor, heads)

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def __contains__(self, name: object) -> bool:
        return name in self._names


def _hf_name(name: str) -> str | None:
    match = _LAYER.fullmatch(name)
    if match is None:
        return _TOP.get(name)
    part = _IN_LAYER.get(match["part"])
    return None if part is None else f"model.layers.{match['layer']}.{part}.{match['kind']}"


def _halves_apart(tensor: Tensor, heads: int) -> Tensor:
    """Rows (heads, D/2, 2, ...) -> (heads, 2, D/2, ...): the two that rotate together move half a head apart."""
    apart: Tensor = tensor.unflatten(0, (heads, -1, 2)).transpose(1, 2).reshape(tensor.shape)
    return apart
