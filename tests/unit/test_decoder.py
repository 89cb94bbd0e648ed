"""The lean forward: transformers' logits, trees, caches, precisions, and its converted form."""

from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from assistant.errors import ArchitectureError, ModelCorruptError, UsageError
from models.decoder import DecoderConfig, LeanDecoder
from tests.support.rows import cache_for, depths, path_to, random_ids, tree_mask
from tests.support.tiny import VOCAB, tiny_config, tiny_state, tiny_target

FAMILIES = ("llama", "qwen2", "qwen3")
LLAMA3 = {
    "rope_type": "llama3",
    "rope_theta": 500.0,
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 64,
}
YARN = {"rope_type": "yarn", "rope_theta": 10000.0, "factor": 4.0, "original_max_position_embeddings": 64}
LINEAR = {"rope_type": "linear", "rope_theta": 1000.0, "factor": 2.0}
VARIANTS: list[tuple[str, dict[str, Any]]] = [
    ("llama", {}),
    ("llama", {"attention_bias": True, "mlp_bias": True}),
    ("llama", {"tie_word_embeddings": True}),
    ("llama", {"rope_parameters": LLAMA3}),
    ("llama", {"rope_parameters": LINEAR}),
    ("qwen2", {}),
    ("qwen2", {"rope_parameters": YARN}),
    ("qwen2", {"rope_parameters": {**YARN, "mscale": 0.7, "mscale_all_dim": 0.4, "truncate": False}}),
    ("qwen2", {"rope_parameters": {**YARN, "attention_factor": 1.3}}),
    ("qwen3", {}),
    ("qwen3", {"num_key_value_heads": 1, "head_dim": 16}),
]


def whole(target: LeanDecoder, ids: Tensor) -> Tensor:
    """(n, V) logits of one fresh forward."""
    return target.forward(ids, torch.arange(ids.shape[0]), cache_for(target.spec)).logits


@pytest.mark.parametrize(("family", "changes"), VARIANTS)
def test_logits_are_those_of_transformers(family: str, changes: dict[str, Any]) -> None:
    from transformers import AutoConfig, AutoModelForCausalLM

    sizes = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4}
    more = {"vocab_size": VOCAB, "num_key_value_heads": 2, "head_dim": 8, "max_position_embeddings": 256}
    torch.manual_seed(0)
    config = AutoConfig.for_model(family, **{**sizes, **more, **changes})
    model = AutoModelForCausalLM.from_config(config).eval()
    for parameter in model.parameters():
        parameter.data.normal_(0, 0.3)
    lean = LeanDecoder.from_state(DecoderConfig.from_hf(config.to_dict()), model.state_dict(), name="tiny")
    ids = random_ids(150, VOCAB)
    with torch.no_grad():
        wanted = model(ids[None]).logits[0]
    assert float((whole(lean, ids) - wanted).abs().max()) < 1e-4


@st.composite
def trees(draw: st.DrawFn) -> list[int]:
    """Parents of up to twelve nodes, each an earlier node."""
    n = draw(st.integers(1, 12))
    return [-1] + [draw(st.integers(0, i - 1)) for i in range(1, n)]


@given(st.sampled_from(FAMILIES), st.integers(0, 20), trees())
@settings(max_examples=25)
def test_a_node_in_a_tree_scores_as_its_path_alone(family: str, past: int, parents: list[int]) -> None:
    target = tiny_target(family)
    ids = random_ids(past + len(parents), VOCAB, seed=len(parents))
    prefix, nodes = ids[:past], ids[past:]
    cache = cache_for(target.spec)
    if past:
        target.forward(prefix, torch.arange(past), cache)
    out = target.forward(nodes, past + depths(parents), cache, tree_mask(parents))
    assert cache.length == past + len(parents)
    for node in range(len(parents)):
        alone = whole(target, torch.cat((prefix, nodes[path_to(node, parents)])))[-1]
        assert torch.allclose(out.logits[node], alone, atol=1e-4)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("precision", ["float32", "bfloat16", "float16", "int8"])
def test_pieces_continue_a_cache_as_one_forward_would(family: str, precision: str) -> None:
    target = tiny_target(family, precision)
    ids, cache = random_ids(40, VOCAB), cache_for(target.spec)
    pieces = [target.forward(ids[a:b], torch.arange(a, b), cache).logits for a, b in ((0, 20), (20, 21), (21, 40))]
    tolerance = {"float32": 1e-4, "int8": 0.0}.get(precision, 0.3)
    assert float((torch.cat(pieces) - whole(target, ids)).abs().max()) <= tolerance


@pytest.mark.parametrize("precision", ["float32", "int8"])
def test_a_long_prompt_runs_in_chunks(precision: str) -> None:
    target, ids = tiny_target("qwen2", precision), random_ids(600, VOCAB)
    cache = cache_for(target.spec)
    out = target.forward(ids, torch.arange(600), cache, last_only=True)
    masked = target.forward(
        ids, torch.arange(600), cache_for(target.spec), torch.ones(600, 600, dtype=torch.bool).tril(), last_only=True
    )
    assert cache.length == 600
    assert out.features.shape == (600, 32)
    assert torch.allclose(out.logits, masked.logits, atol=1e-4)


def test_last_only_gives_the_last_row_and_all_features() -> None:
    target, ids = tiny_target(), random_ids(5, VOCAB)
    every = target.forward(ids, torch.arange(5), cache_for(target.spec))
    last = target.forward(ids, torch.arange(5), cache_for(target.spec), last_only=True)
    assert last.logits.shape == (1, VOCAB)
    assert torch.allclose(last.logits[0], every.logits[-1], atol=1e-5)
    assert torch.equal(last.features, every.features)


@pytest.mark.parametrize("precision", ["float32", "bfloat16", "float16", "int8"])
def test_logits_are_float32_and_features_are_in_the_spec_s_dtype(precision: str) -> None:
    target = tiny_target("qwen2", precision)
    out = target.forward(random_ids(3, VOCAB), torch.arange(3), cache_for(target.spec))
    assert out.logits.dtype == torch.float32
    assert out.features.dtype == target.spec.dtype
    assert target.spec.precision == precision
    assert target.spec.batch_exact == (precision == "int8")


@pytest.mark.parametrize(("precision", "share"), [("bfloat16", 0.9), ("float16", 0.9), ("int8", 0.8)])
def test_other_precisions_agree_with_float32(precision: str, share: float) -> None:
    ids = random_ids(200, VOCAB)
    wanted, got = (whole(tiny_target("qwen2", p), ids).argmax(1) for p in ("float32", precision))
    assert float((wanted == got).float().mean()) > share


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("precision", ["float32", "bfloat16", "int8"])
@pytest.mark.parametrize("tied", [False, True])
def test_restore_of_an_export_is_the_same_model(family: str, precision: str, *, tied: bool) -> None:
    target = tiny_target(family, precision, tie_word_embeddings=tied)
    restored = LeanDecoder.restore(target.config, target.export(), name="tiny", precision=precision)
    ids = random_ids(9, VOCAB)
    assert torch.equal(whole(target, ids), whole(restored, ids))
    assert torch.equal(target.head_rows(ids), restored.head_rows(ids))
    assert torch.equal(target.embed(ids), restored.embed(ids))


def test_an_export_without_a_tensor_is_corrupt() -> None:
    target = tiny_target("llama", "int8")
    tensors = target.export()
    del tensors["layers.1.o.scales"]
    with pytest.raises(ModelCorruptError, match="lacks tensor"):
        LeanDecoder.restore(target.config, tensors, name="tiny", precision="int8")


def test_an_export_of_another_form_is_refused() -> None:
    target = tiny_target()
    older = {name: tensor for name, tensor in target.export().items() if not name.startswith("form")}
    with pytest.raises(ModelCorruptError, match="another form"):
        LeanDecoder.restore(target.config, older, name="tiny", precision="float32")


@pytest.mark.parametrize("precision", ["float32", "int8"])
def test_head_rows_score_features_as_the_head_does(precision: str) -> None:
    target, ids = tiny_target("llama", precision), random_ids(6, VOCAB)
    out = target.forward(ids, torch.arange(6), cache_for(target.spec))
    some = torch.tensor([5, 90, 17])
    assert torch.allclose(out.features @ target.head_rows(some).T, out.logits[:, some], atol=0.1)


def test_embed_looks_rows_up() -> None:
    config = tiny_config()
    state = tiny_state(config)
    target = LeanDecoder.from_state(config, state, name="tiny")
    ids = torch.tensor([3, 0, 3])
    assert torch.equal(target.embed(ids), state["model.embed_tokens.weight"][ids])


@pytest.mark.parametrize("name", ["model.norm.weight", "model.layers.1.mlp.up_proj.weight", "lm_head.weight"])
def test_a_missing_tensor_is_named(name: str) -> None:
    config = tiny_config()
    state = tiny_state(config)
    del state[name]
    with pytest.raises(ModelCorruptError, match=name):
        LeanDecoder.from_state(config, state, name="tiny")


def test_a_tensor_of_another_shape_is_named_with_both() -> None:
    config = tiny_config()
    state = tiny_state(config)
    state["model.layers.0.self_attn.k_proj.weight"] = torch.zeros(8, 32)
    with pytest.raises(ModelCorruptError, match=r"k_proj.weight has shape \(8, 32\); wanted \(16, 32\)"):
        LeanDecoder.from_state(config, state, name="tiny")


def test_an_unknown_precision_names_the_known() -> None:
    with pytest.raises(UsageError, match="float32, bfloat16, float16, int8"):
        tiny_target("llama", "int4")


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"model_type": "gpt2"}, "gpt2"),
        ({"hidden_act": "gelu"}, "gelu"),
        ({"use_sliding_window": True}, "sliding window"),
        ({"rope_scaling": {"type": "dynamic", "factor": 2.0}}, "dynamic"),
        ({"rope_parameters": {"rope_type": "default", "partial_rotary_factor": 0.5}}, "rotates"),
    ],
)
def test_a_variant_that_is_not_computed_is_refused(changes: dict[str, Any], word: str) -> None:
    with pytest.raises(ArchitectureError, match=word):
        tiny_config("llama", **changes)


def test_a_config_without_layers_is_corrupt() -> None:
    with pytest.raises(ModelCorruptError, match="lacks"):
        DecoderConfig.from_hf({"model_type": "llama", "num_attention_heads": 4})


def test_both_spellings_of_rope_are_read() -> None:
    old = tiny_config("llama", rope_theta=500.0, rope_scaling={"type": "linear", "factor": 2.0})
    new = tiny_config("llama", rope_parameters={"rope_type": "linear", "rope_theta": 500.0, "factor": 2.0})
    assert (old.rope_theta, old.rope_scaling) == (new.rope_theta, new.rope_scaling) == (500.0, old.rope_scaling)
