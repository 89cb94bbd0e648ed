"""GGUF files as llama.cpp's converter writes them, with tiny random weights and a real vocabulary."""

import json
from pathlib import Path
from typing import Any

import numpy as np
from gguf import GGMLQuantizationType, GGUFWriter, TokenType, quants
from torch import Tensor

from models.decoder import DecoderConfig
from tests.support.tiny import tiny_config, tiny_state
from tests.support.tiny_tokenizer import SPECIAL, tiny_encoder, tiny_tokenizer

_NAMES = {
    "model.embed_tokens.weight": "token_embd.weight",
    "model.norm.weight": "output_norm.weight",
    "lm_head.weight": "output.weight",
}
_PARTS = {
    "input_layernorm": "attn_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "self_attn.q_norm": "attn_q_norm",
    "self_attn.k_norm": "attn_k_norm",
    "post_attention_layernorm": "ffn_norm",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}


def write_gguf(
    path: Path, family: str = "llama", *, seed: int = 0, pre: str = "qwen2", tied: bool = False, **extra: Any
) -> dict[str, Tensor]:
    """Write a model of two layers; returns its tensors under Hugging Face's names.

    `extra` are further values of the family's own section, such as `expert_count=4`.
    """
    config = tiny_config(family, vocab_size=tiny_tokenizer().vocab_size, tie_word_embeddings=tied)
    state = tiny_state(config, seed)
    writer = GGUFWriter(path, family)
    _shape(writer, config)
    for key, value in extra.items():
        name = f"{family}.{key.replace('__', '.')}"
        (writer.add_string if isinstance(value, str) else writer.add_float32)(name, value)
    _vocabulary(writer, pre)
    for name, tensor in state.items():
        writer.add_tensor(gguf_name(name), _permuted(name, tensor.numpy(), config))
    _finish(writer)
    return state


def write_single_tensor(path: Path, values: np.ndarray[Any, Any], kind: GGMLQuantizationType) -> None:
    """A file with nothing but one tensor, `token_embd.weight`, in a block format."""
    writer = GGUFWriter(path, "llama")
    writer.add_tensor("token_embd.weight", quants.quantize(values, kind), raw_dtype=kind)
    _finish(writer)


def write_vocabulary(path: Path, *, tokens: list[str], kinds: list[TokenType], model: str, **more: Any) -> None:
    """A file with nothing but a vocabulary; `more` are `scores` or `merges`."""
    writer = GGUFWriter(path, "llama")
    writer.add_tokenizer_model(model)
    writer.add_token_list(tokens)
    writer.add_token_types(kinds)
    if "scores" in more:
        writer.add_token_scores(more["scores"])
    if "merges" in more:
        writer.add_token_merges(more["merges"])
    if "bos" in more:
        writer.add_bos_token_id(more["bos"])
    _finish(writer)


def gguf_name(name: str) -> str:
    """llama.cpp's name of a tensor."""
    if name in _NAMES:
        return _NAMES[name]
    _, _, layer, rest = name.split(".", 3)
    part, kind = rest.rsplit(".", 1)
    return f"blk.{layer}.{_PARTS[part]}.{kind}"


def _shape(writer: GGUFWriter, config: DecoderConfig) -> None:
    writer.add_block_count(config.layers)
    writer.add_context_length(config.max_positions)
    writer.add_embedding_length(config.hidden_size)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.heads)
    writer.add_head_count_kv(config.kv_heads)
    writer.add_rope_freq_base(config.rope_theta)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)


def _vocabulary(writer: GGUFWriter, pre: str) -> None:
    model = json.loads(tiny_encoder().to_str())["model"]
    tokens = sorted(model["vocab"], key=model["vocab"].__getitem__)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre(pre)
    writer.add_token_list([*tokens, *SPECIAL])
    writer.add_token_types([TokenType.NORMAL] * len(tokens) + [TokenType.CONTROL] * len(SPECIAL))
    writer.add_token_merges([" ".join(pair) for pair in model["merges"]])
    special = tiny_tokenizer().special("<|im_end|>")
    assert special is not None
    writer.add_eos_token_id(special)


def _permuted(name: str, values: np.ndarray[Any, Any], config: DecoderConfig) -> np.ndarray[Any, Any]:
    """What llama.cpp's converter does to the query and key rows of a llama: halves of each head interleaved."""
    heads = {"q_proj": config.heads, "k_proj": config.kv_heads}.get(name.split(".")[-2])
    if config.family != "llama" or heads is None:
        return values
    rows = values.reshape(heads, 2, -1, *values.shape[1:])
    return np.ascontiguousarray(rows.swapaxes(1, 2).reshape(values.shape))


def _finish(writer: GGUFWriter) -> None:
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
