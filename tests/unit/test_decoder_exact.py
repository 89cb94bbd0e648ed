"""int8 rows are bit-equal alone, in batches and in trees, for every number of threads and any order in the cache.

By the compiled loops and by torch's operations alike.
"""

import itertools
import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from assistant.engine.kv_cache import KVCache
from models import kernels
from models.attention import ExactAttention, HeadShape, Rows, heads_of
from models.decoder import LeanDecoder
from models.int8_kernels import CompiledWeight
from models.layers import gated_silu_exact
from models.quant import Int8Linear
from models.rope import RopeTable
from tests.support.rows import cache_for, depths, path_to, random_ids, tree_mask
from tests.support.tiny import VOCAB, tiny_config, tiny_target

SIZES = (1, 2, 3, 7, 8, 16, 33, 64)


@pytest.fixture(params=["compiled", "torch"], scope="module", autouse=True)
def loops(request: pytest.FixtureRequest) -> Iterator[str]:
    """Which of the two does the work."""
    if request.param == "compiled" and kernels.find() is None:
        pytest.skip("nothing can be compiled here")
    with pytest.MonkeyPatch.context() as patch:
        if request.param == "torch":
            patch.setattr(kernels, "find", lambda: None)
        yield request.param


def int8_target(family: str, **changes: Any) -> LeanDecoder:
    """A tiny target whose heads are of a size that the compiled attention takes."""
    target = tiny_target(family, "int8", head_dim=16, **changes)
    assert isinstance(target._head, Int8Linear)
    assert isinstance(target._head.weight, CompiledWeight) == (kernels.find() is not None)
    return target


@pytest.fixture(params=[1, 2, 3, 4])
def threads(request: pytest.FixtureRequest) -> Iterator[int]:
    before = torch.get_num_threads()
    torch.set_num_threads(request.param)
    yield request.param
    torch.set_num_threads(before)


def row_by_row(target: LeanDecoder, ids: Tensor) -> Tensor:
    """(n, V) logits, each row in a forward of its own."""
    cache = cache_for(target.spec)
    rows = [target.forward(ids[i : i + 1], torch.tensor([i]), cache).logits for i in range(ids.shape[0])]
    return torch.cat(rows)


@given(st.sampled_from(["llama", "qwen2", "qwen3"]), st.integers(0, 30), st.data())
@settings(max_examples=25)
def test_a_node_in_a_tree_is_bit_equal_to_its_path_row_by_row(family: str, past: int, data: st.DataObject) -> None:
    n = data.draw(st.integers(1, 16))
    parents = [-1] + [data.draw(st.integers(0, i - 1)) for i in range(1, n)]
    target = int8_target(family)
    ids = random_ids(past + n, VOCAB, seed=n)
    cache = cache_for(target.spec)
    if past:
        target.forward(ids[:past], torch.arange(past), cache)
    tree = target.forward(ids[past:], past + depths(parents), cache, tree_mask(parents)).logits
    node = data.draw(st.integers(0, n - 1))
    path = path_to(node, parents)
    assert torch.equal(tree[path], row_by_row(target, torch.cat((ids[:past], ids[past:][path])))[past:])
    cache.keep(past, path)
    after = torch.tensor([past + len(path)])
    follow = target.forward(ids[:1], after, cache).logits
    fresh = cache_for(target.spec)
    target.forward(torch.cat((ids[:past], ids[past:][path])), torch.arange(past + len(path)), fresh)
    assert torch.equal(follow, target.forward(ids[:1], after, fresh).logits)


def test_batches_of_every_size_and_context_are_bit_equal(threads: int) -> None:
    """A width that no vector divides (a remainder in every kernel) and contexts up to 700 rows."""
    target = int8_target("qwen2", intermediate_size=44, hidden_size=36, seed=threads)
    ids = random_ids(700, VOCAB, seed=threads)
    for past in (0, 1, 40, 636):
        context = cache_for(target.spec)
        if past:
            target.forward(ids[:past], torch.arange(past), context)
        new = ids[past : past + max(SIZES)]
        wanted = torch.cat(
            [target.forward(new[i : i + 1], torch.tensor([past + i]), context).logits for i in range(max(SIZES))]
        )
        for n in SIZES:
            context.rewind(past)
            got = target.forward(new[:n], torch.arange(past, past + n), context).logits
            assert torch.equal(got, wanted[:n]), (past, n)


def test_the_activation_is_bit_equal_where_threads_share_a_row(threads: int) -> None:
    """torch's own silu is not: where the threads' shares end, another exponential takes the last few elements."""
    x = torch.randn(64, 2 * 2047, generator=torch.Generator().manual_seed(threads)) * 4
    alone = torch.cat([gated_silu_exact(row[None]) for row in x])
    for n in range(1, 65):
        for start in {0, 64 - n}:
            rows = slice(start, start + n)
            assert torch.equal(gated_silu_exact(x[rows]), alone[rows])


@given(st.integers(1, 9), st.integers(0, 40), st.booleans(), st.integers(0, 2**32))
@settings(max_examples=25)
def test_attention_is_what_integers_say(n: int, past: int, normed: bool, seed: int) -> None:  # noqa: FBT001 - drawn
    """Every bit of torch's, from sums in 64-bit integers and one softmax for each head of each row."""
    random = torch.Generator().manual_seed(seed)
    shape, D = HeadShape(6, 2, 8), 8
    norms = (torch.rand(D, generator=random) * 2**18, torch.rand(D, generator=random) * 2**18) if normed else ()
    attention = ExactAttention(shape, 2.0**-36, *norms)
    cache = KVCache(1, 2, D, limit=64)
    earlier = torch.randint(-(2**20), 2**20, (2, 2, past, D), generator=random).float()
    cache.write(0, *earlier)
    cache.advance(past)
    parents = [-1] + [int(torch.randint(i, (1,), generator=random)) for i in range(1, n)]
    mask, at = tree_mask(parents), past + depths(parents)
    qkv = torch.randn(n, 10 * D, generator=random) * 2**19
    rows = Rows(*RopeTable.build(tiny_config(head_dim=D), torch.float32, torch.device("cpu")).at(at), cache, None)
    biased = replace(rows, bias=attention.bias(mask, past))
    queries, keys, values = (part.round().long() for part in heads_of(qkv, attention, rows))
    got = attention(qkv, biased, 0).view(n, 6, D)
    for i, head in itertools.product(range(n), range(6)):
        seen = mask[i].nonzero()[:, 0]
        k, v = (torch.cat((earlier[w, head // 3].long(), p[seen, head // 3])) for w, p in ((0, keys), (1, values)))
        scores = (k * queries[i, head]).sum(1).double() * 2.0**-36
        weights = (scores - (scores.max() - 20 * math.log(2))).exp().round()
        total = (weights.long()[:, None] * v).sum(0)
        assert torch.equal(got[i, head], (total.double() / weights.sum()).float())


def test_thread_counts_do_not_change_a_bit(threads: int) -> None:
    target = int8_target("qwen3")
    ids = random_ids(120, VOCAB)
    got = target.forward(ids, torch.arange(120), cache_for(target.spec)).logits
    torch.set_num_threads(1)
    assert threads
    assert torch.equal(got, target.forward(ids, torch.arange(120), cache_for(target.spec)).logits)


def test_exp_gives_each_element_the_same_bits_everywhere(threads: int) -> None:
    """The one function in the forward that is not correctly rounded; exactness rests on this."""
    assert threads
    for dtype in (torch.float32, torch.float64):
        x = torch.cat((torch.randn(70001, dtype=dtype) * 8, torch.rand(7, dtype=dtype)))
        alone = torch.stack([x[i : i + 1].clone().exp_()[0] for i in range(0, len(x), 997)])
        for start in (0, 1, 5):
            padded = torch.cat((torch.zeros(start, dtype=dtype), x)).exp_()[start:]
            assert torch.equal(padded[::997], alone)
