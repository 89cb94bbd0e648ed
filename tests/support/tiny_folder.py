"""Folders as users have them: a tiny random model of Qwen's family with a real tokenizer, and its draft head."""

import json
from pathlib import Path

from safetensors.torch import save_file
from torch import Tensor

from tests.support import tiny
from tests.support.tiny_tokenizer import SPECIAL, tiny_tokenizer, tokenizer_json


def write_model(folder: Path, *, shards: int = 1, seed: int = 0, context: int = 1024) -> Path:
    """A Hugging Face folder with its weights in one file or in shards with an index."""
    folder.mkdir(parents=True, exist_ok=True)
    size = tiny_tokenizer().vocab_size
    settings = {
        "architectures": ["Qwen2ForCausalLM"],
        "model_type": "qwen2",
        "vocab_size": size,
        "hidden_size": tiny.HIDDEN,
        "intermediate_size": tiny.INNER,
        "num_hidden_layers": 2,
        "num_attention_heads": tiny.HEADS,
        "num_key_value_heads": tiny.KV_HEADS,
        "max_position_embeddings": context,
        "rope_theta": 10000.0,
        "rms_norm_eps": 1e-6,
        "hidden_act": "silu",
        "tie_word_embeddings": False,
        "eos_token_id": tiny_tokenizer().special("<|im_end|>"),
    }
    (folder / "config.json").write_text(json.dumps(settings))
    (folder / "tokenizer.json").write_text(tokenizer_json())
    (folder / "tokenizer_config.json").write_text(
        json.dumps({"eos_token": "<|im_end|>", "additional_special_tokens": list(SPECIAL)})
    )
    state = tiny.tiny_state(tiny.tiny_config("qwen2", vocab_size=size), seed)
    _write_weights(folder, state, shards)
    return folder


def _write_weights(folder: Path, state: dict[str, Tensor], shards: int) -> None:
    if shards == 1:
        save_file(state, folder / "model.safetensors")
        return
    names = sorted(state)
    where: dict[str, str] = {}
    for index in range(shards):
        file = f"model-{index + 1:05d}-of-{shards:05d}.safetensors"
        part = names[index::shards]
        save_file({name: state[name] for name in part}, folder / file)
        where |= dict.fromkeys(part, file)
    (folder / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": where}))


def write_head(folder: Path, *, hidden: int = tiny.HIDDEN) -> Path:
    """A draft head's folder in SafeAILab's layout, for `write_model`'s target."""
    folder.mkdir(parents=True, exist_ok=True)
    target = tiny.tiny_target("qwen2", vocab_size=tiny_tokenizer().vocab_size, hidden_size=hidden)
    settings = {**tiny.tiny_head_config(), "hidden_size": hidden, "architectures": ["LlamaForCausalLM"]}
    (folder / "config.json").write_text(json.dumps(settings))
    save_file(tiny.tiny_head_state(target), folder / "model.safetensors")
    return folder
