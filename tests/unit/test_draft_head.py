"""Draft heads: SafeAILab's layout against a forward written out, trees, vocabularies, and heads that do not fit."""

import math
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from assistant.errors import HeadMismatchError, UsageError
from models.draft_head import DraftHead
from models.target import Target
from tests.support.rows import cache_for, depths, path_to, random_ids, tree_mask
from tests.support.tiny import HEADS, KV_HEADS, VOCAB, tiny_head, tiny_head_config, tiny_head_state, tiny_target

N = 12


def pairs(target: Target, n: int = N) -> tuple[Tensor, Tensor]:
    """(n,) next tokens and (n, H) the features before them."""
    ids = random_ids(n + 1, VOCAB)
    return ids[1:], target.forward(ids[:-1], torch.arange(n), cache_for(target.spec)).features


def run(head: DraftHead, ids: Tensor, features: Tensor) -> tuple[Tensor, Tensor]:
    out = head.forward(ids, features, torch.arange(ids.shape[0]), cache_for(head.spec))
    return out.features, out.logits


def turned(x: Tensor, theta: float) -> Tensor:
    """(heads, n, D) rotated by positions 0..n."""
    half = x.shape[-1] // 2
    angles = torch.arange(x.shape[1])[:, None] * theta ** (-torch.arange(half) / half)
    first, second = x[..., :half], x[..., half:]
    return torch.cat((first * angles.cos() - second * angles.sin(), second * angles.cos() + first * angles.sin()), -1)


def written_out(state: dict[str, Tensor], embedded: Tensor, features: Tensor, theta: float) -> Tensor:
    """The one-layer head of the paper, straight from its description."""

    def project(name: str, x: Tensor) -> Tensor:
        return F.linear(x, state[f"layers.0.{name}.weight"], state.get(f"layers.0.{name}.bias"))

    x = F.linear(torch.cat((embedded, features), -1), state["fc.weight"], state.get("fc.bias"))
    q, k, v = (
        project(f"self_attn.{p}_proj", x).unflatten(-1, (h, -1)).transpose(0, 1)
        for p, h in (("q", HEADS), ("k", KV_HEADS), ("v", KV_HEADS))
    )
    k, v = (t.repeat_interleave(HEADS // KV_HEADS, 0) for t in (turned(k, theta), v))
    scores = turned(q, theta) @ k.mT / math.sqrt(q.shape[-1])
    scores = scores.masked_fill(~torch.ones(scores.shape[1:], dtype=torch.bool).tril(), -math.inf)
    x = x + project("self_attn.o_proj", (scores.softmax(-1) @ v).transpose(0, 1).flatten(1))
    y = F.rms_norm(x, x.shape[1:], state["layers.0.post_attention_layernorm.weight"], 1e-6)
    return x + project("mlp.down_proj", F.silu(project("mlp.gate_proj", y)) * project("mlp.up_proj", y))


@pytest.mark.parametrize("biases", [False, True])
@pytest.mark.parametrize("theta", [None, 500.0])
def test_features_are_those_of_the_paper_s_head(*, biases: bool, theta: float | None) -> None:
    target = tiny_target("qwen2")
    ids, features = pairs(target)
    state = tiny_head_state(target)
    if biases:
        state |= {f"layers.0.self_attn.{p}_proj.bias": torch.ones(w) for p, w in (("q", 32), ("k", 16), ("v", 16))}
    else:
        del state["fc.bias"]
    config = {**tiny_head_config(), **({} if theta is None else {"rope_theta": theta})}
    got, logits = run(DraftHead.from_state(config, state, target), ids, features)
    wanted = written_out(state, target.embed(ids), features, theta or 10000.0)
    assert torch.allclose(got, wanted, atol=1e-4)
    assert torch.allclose(logits, wanted @ target.head_rows(state["draft_vocab_ids"]).T, atol=1e-3)


@given(st.integers(0, 12), st.sampled_from([1, 2]), st.data())
@settings(max_examples=20)
def test_a_node_in_a_tree_drafts_as_its_path_alone(past: int, layers: int, data: st.DataObject) -> None:
    n = data.draw(st.integers(1, 9))
    parents = [-1] + [data.draw(st.integers(0, i - 1)) for i in range(1, n)]
    target = tiny_target()
    head = tiny_head(target, layers=layers)
    ids, features = pairs(target, past + n)
    cache = cache_for(head.spec)
    if past:
        head.forward(ids[:past], features[:past], torch.arange(past), cache)
    out = head.forward(ids[past:], features[past:], past + depths(parents), cache, tree_mask(parents))
    assert cache.length == past + n
    for node in range(n):
        rows = torch.tensor([*range(past), *(past + i for i in path_to(node, parents))])
        alone = run(head, ids[rows], features[rows])
        assert torch.allclose(out.features[node], alone[0][-1], atol=1e-4)
        assert torch.allclose(out.logits[node], alone[1][-1], atol=1e-3)


def test_draft_ids_map_to_the_target_s() -> None:
    target = tiny_target()
    head = tiny_head(target, draft_vocab=48)
    assert head.to_target_ids(torch.tensor([[0, 1], [47, 2]])).tolist() == [[0, 2], [94, 4]]
    whole = tiny_head(target, draft_vocab=None)
    assert whole.draft_vocab is None
    assert whole.to_target_ids(torch.tensor([7])).tolist() == [7]
    ids, features = pairs(target)
    assert run(whole, ids, features)[1].shape == (N, VOCAB)
    assert torch.allclose(run(whole, ids, features)[1][:, ::2], run(head, ids, features)[1], atol=1e-4)


def test_last_only_gives_the_last_row_and_all_features() -> None:
    target = tiny_target()
    head = tiny_head(target)
    ids, features = pairs(target)
    out = head.forward(ids, features, torch.arange(N), cache_for(head.spec), last_only=True)
    assert out.logits.shape == (1, 48)
    assert out.features.shape == (N, 32)


def test_a_head_uses_its_own_embedding_where_it_has_one() -> None:
    target = tiny_target()
    ids, features = pairs(target)
    state = tiny_head_state(target)
    plain = run(DraftHead.from_state(tiny_head_config(), state, target), ids, features)[0]
    state["embed_tokens.weight"] = target.embed(torch.arange(VOCAB))
    same = run(DraftHead.from_state(tiny_head_config(), state, target), ids, features)[0]
    state["embed_tokens.weight"] = torch.zeros(VOCAB, 32)
    other = run(DraftHead.from_state(tiny_head_config(), state, target), ids, features)[0]
    assert torch.equal(plain, same)
    assert not torch.allclose(plain, other)


def test_norms_over_heads_are_taken_from_the_tensors() -> None:
    target = tiny_target()
    ids, features = pairs(target)
    state = tiny_head_state(target)
    plain = run(DraftHead.from_state(tiny_head_config(), state, target), ids, features)[0]
    state |= {"layers.0.self_attn.q_norm.weight": torch.ones(8), "layers.0.self_attn.k_norm.weight": torch.ones(8)}
    assert not torch.allclose(plain, run(DraftHead.from_state(tiny_head_config(), state, target), ids, features)[0])


@pytest.mark.parametrize(("precision", "share"), [("bfloat16", 0.9), ("int8", 0.85)])
@pytest.mark.parametrize("of_target", ["float32", "int8"])
def test_other_precisions_agree_with_float32(precision: str, share: float, of_target: str) -> None:
    target = tiny_target("qwen2", of_target)
    ids, features = pairs(target, 150)
    wanted, got = (run(tiny_head(target, p), ids, features)[1].argmax(1) for p in ("float32", precision))
    assert float((wanted == got).float().mean()) > share


def test_a_draft_is_the_same_every_time() -> None:
    target = tiny_target("qwen2", "int8")
    ids, features = pairs(target)
    first, second = (run(tiny_head(target, "int8"), ids, features) for _ in range(2))
    assert torch.equal(first[1], second[1])


_MISFITS: list[tuple[str, Tensor, str]] = [
    ("fc.weight", torch.zeros(32, 32), r"fc.weight has shape \(32, 32\); wanted \(32, 64\)"),
    ("fc.weight", torch.zeros(64, 128), r"fc.weight has shape \(64, 128\); wanted \(32, 64\)"),
    ("layers.0.self_attn.q_proj.weight", torch.zeros(32, 64), r"q_proj.weight has shape \(32, 64\); wanted \(32, 32\)"),
    ("layers.0.mlp.gate_proj.weight", torch.zeros(48, 16), r"gate_proj.weight has shape \(48, 16\)"),
    ("layers.0.mlp.down_proj.weight", torch.zeros(32, 40), r"down_proj.weight has shape \(32, 40\); wanted \(32, 48\)"),
    ("fc.bias", torch.zeros(7), r"fc.bias has shape \(7,\); wanted \(32,\)"),
    ("embed_tokens.weight", torch.zeros(5, 32), r"embed_tokens.weight has shape \(5, 32\); wanted \(96, 32\)"),
    ("draft_vocab_ids", torch.tensor([0, 96]), r"draft_vocab_ids .* to 96"),
    ("draft_vocab_ids", torch.zeros(2, 2), r"draft_vocab_ids has shape \(2, 2\)"),
    ("draft_vocab_ids", torch.zeros(0), r"draft_vocab_ids has shape \(0,\)"),
]


@pytest.mark.parametrize(("name", "tensor", "message"), _MISFITS)
def test_a_tensor_that_does_not_fit_is_named_with_both_shapes(name: str, tensor: Tensor, message: str) -> None:
    target = tiny_target()
    state = {**tiny_head_state(target), name: tensor}
    with pytest.raises(HeadMismatchError, match=message):
        DraftHead.from_state(tiny_head_config(), state, target)


@pytest.mark.parametrize("name", ["fc.weight", "layers.0.mlp.gate_proj.weight", "layers.0.self_attn.o_proj.weight"])
def test_a_missing_tensor_is_named(name: str) -> None:
    target = tiny_target()
    state = tiny_head_state(target)
    del state[name]
    with pytest.raises(HeadMismatchError, match=f"{name} is missing"):
        DraftHead.from_state(tiny_head_config(), state, target)


@pytest.mark.parametrize(
    "changes",
    [{"hidden_size": 64}, {"num_attention_heads": 3}, {"num_key_value_heads": 3}, {"head_dim": 4}],
)
def test_a_config_that_does_not_fit_is_a_mismatch(changes: dict[str, Any]) -> None:
    target = tiny_target()
    with pytest.raises(HeadMismatchError):
        DraftHead.from_state({**tiny_head_config(), **changes}, tiny_head_state(target), target)


def test_an_unknown_precision_names_the_known() -> None:
    target = tiny_target()
    with pytest.raises(UsageError, match="float32, bfloat16, float16, int8"):
        DraftHead.from_state(tiny_head_config(), tiny_head_state(target), target, "int4")
