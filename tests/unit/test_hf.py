"""The wide path: transformers' own logits through our caches and masks, for families with other attention too."""

from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import AutoConfig, AutoModelForCausalLM, PreTrainedModel

from assistant.errors import ArchitectureError, ModelCorruptError, UsageError
from models.hf import HFTarget
from tests.support.rows import cache_for, depths, path_to, random_ids, tree_mask

VOCAB = 96
_SIZES: dict[str, Any] = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4}
_GROUPED = {**_SIZES, "num_key_value_heads": 2, "head_dim": 8, "max_position_embeddings": 256}
MODELS: dict[str, dict[str, Any]] = {
    "llama": _GROUPED,
    "qwen2": _GROUPED,
    "qwen3": _GROUPED,
    "gpt_neox": {**_SIZES, "max_position_embeddings": 256},
    "gpt2": {"n_embd": 32, "n_head": 4, "n_layer": 2, "n_positions": 256, "bos_token_id": 0, "eos_token_id": 1},
}


def tiny_model(family: str, **changes: Any) -> PreTrainedModel:
    torch.manual_seed(0)
    config = AutoConfig.for_model(family, vocab_size=VOCAB, **{**MODELS.get(family, _GROUPED), **changes})
    model: PreTrainedModel = AutoModelForCausalLM.from_config(config)
    for parameter in model.parameters():
        parameter.data.normal_(0, 0.3)
    return model


@pytest.mark.parametrize("family", MODELS)
def test_logits_and_features_are_those_of_transformers(family: str) -> None:
    model = tiny_model(family)
    target, ids = HFTarget(model, name=family), random_ids(30, VOCAB)
    cache = cache_for(target.spec)
    pieces = [target.forward(ids[a:b], torch.arange(a, b), cache) for a, b in ((0, 12), (12, 13), (13, 30))]
    with torch.no_grad():
        wanted = model(ids[None], output_hidden_states=True)
    assert torch.allclose(torch.cat([p.logits for p in pieces]), wanted.logits[0], atol=1e-4)
    assert torch.allclose(torch.cat([p.features for p in pieces]), wanted.hidden_states[-1][0], atol=1e-4)
    assert cache.length == 30


TARGETS = {family: HFTarget(tiny_model(family), name=family) for family in MODELS}


@given(st.sampled_from(sorted(MODELS)), st.integers(0, 9), st.data())
@settings(max_examples=20)
def test_a_node_in_a_tree_scores_as_its_path_alone(family: str, past: int, data: st.DataObject) -> None:
    n = data.draw(st.integers(1, 9))
    parents = [-1] + [data.draw(st.integers(0, i - 1)) for i in range(1, n)]
    target, ids = TARGETS[family], random_ids(past + n, VOCAB, seed=n)
    cache = cache_for(target.spec)
    if past:
        target.forward(ids[:past], torch.arange(past), cache)
    tree = target.forward(ids[past:], past + depths(parents), cache, tree_mask(parents)).logits
    for node in range(n):
        row = torch.cat((ids[:past], ids[past:][path_to(node, parents)]))
        alone = target.forward(row, torch.arange(len(row)), cache_for(target.spec), last_only=True).logits[0]
        assert torch.allclose(tree[node], alone, atol=1e-4)


def test_last_only_gives_the_last_row_and_all_features() -> None:
    target, ids = TARGETS["gpt_neox"], random_ids(5, VOCAB)
    every = target.forward(ids, torch.arange(5), cache_for(target.spec))
    last = target.forward(ids, torch.arange(5), cache_for(target.spec), last_only=True)
    assert torch.allclose(last.logits, every.logits[-1:], atol=1e-5)
    assert last.features.shape == (5, 32)


@pytest.mark.parametrize("family", MODELS)
def test_head_rows_and_embeddings_are_the_model_s(family: str) -> None:
    target, ids = TARGETS[family], random_ids(6, VOCAB)
    out = target.forward(ids, torch.arange(6), cache_for(target.spec))
    some = torch.tensor([5, 90, 17])
    assert torch.allclose(out.features @ target.head_rows(some).T, out.logits[:, some], atol=1e-4)
    assert target.embed(some).shape == (3, 32)


def test_the_spec_says_what_layers_keep() -> None:
    spec = TARGETS["qwen3"].spec
    assert (spec.layers, spec.kv_heads, spec.head_dim, spec.max_positions) == (2, 2, 8, 256)
    assert (spec.vocab_size, spec.hidden_size, spec.precision, spec.batch_exact) == (VOCAB, 32, "float32", False)


def test_a_sliding_window_ends_the_context() -> None:
    assert HFTarget(tiny_model("mistral", sliding_window=64), name="m").spec.max_positions == 64
    assert HFTarget(tiny_model("mistral", sliding_window=None), name="m").spec.max_positions == 256


def test_layers_without_plain_keys_and_values_are_refused() -> None:
    sizes = {"hidden_size": 32, "state_size": 4, "num_hidden_layers": 2}
    with pytest.raises(ArchitectureError, match="mamba"):
        HFTarget(
            AutoModelForCausalLM.from_config(AutoConfig.for_model("mamba", vocab_size=VOCAB, **sizes)), name="mamba"
        )


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_a_saved_folder_loads(tmp_path: Path, precision: str) -> None:
    tiny_model("llama").save_pretrained(tmp_path)
    target = HFTarget.from_folder(tmp_path, precision=precision)
    assert target.spec.precision == precision
    assert target.spec.name == tmp_path.name
    out = target.forward(random_ids(3, VOCAB), torch.arange(3), cache_for(target.spec))
    assert out.logits.dtype == torch.float32


def test_int8_belongs_to_the_lean_decoder(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="float32, bfloat16, float16"):
        HFTarget.from_folder(tmp_path, precision="int8")


def test_a_folder_without_weights_is_corrupt(tmp_path: Path) -> None:
    tiny_model("llama").config.save_pretrained(tmp_path)
    with pytest.raises(ModelCorruptError, match="cannot be loaded"):
        HFTarget.from_folder(tmp_path)


def test_a_model_that_transformers_does_not_know_is_refused(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"model_type": "nonesuch"}')
    with pytest.raises(ArchitectureError, match="cannot run"):
        HFTarget.from_folder(tmp_path)
