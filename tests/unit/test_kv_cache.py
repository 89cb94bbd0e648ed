"""The cache against lists of rows: writing, keeping, rewinding and growing in any order."""

from collections.abc import Sequence

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from assistant.engine.kv_cache import KVCache
from assistant.errors import ContextOverflowError
from tests.support.fakes import tiny_cache_spec

LAYERS, HEADS, WIDTH = 2, 2, 3


def rows(numbers: Sequence[int], layer: int, side: int) -> Tensor:
    """(G, n, D) rows, each known by its number, its layer and whether it is a key or a value."""
    base = torch.tensor(numbers, dtype=torch.float32)[None, :, None] * 1000 + layer * 100 + side * 10
    return base + torch.arange(HEADS * WIDTH, dtype=torch.float32).view(HEADS, 1, WIDTH)


def write(cache: KVCache, numbers: Sequence[int], held: Sequence[int]) -> None:
    """One forward: every layer writes, and sees what is held and what is new."""
    for layer in range(LAYERS):
        seen = cache.write(layer, rows(numbers, layer, 0), rows(numbers, layer, 1))
        for side in (0, 1):
            assert torch.equal(seen[side], rows([*held, *numbers], layer, side))
    cache.advance(len(numbers))


def new_cache(limit: int = 40, capacity: int = 4) -> KVCache:
    return KVCache(LAYERS, HEADS, WIDTH, limit=limit, capacity=capacity)


@given(st.data())
def test_any_sequence_of_operations_leaves_the_rows_that_lists_would_hold(data: st.DataObject) -> None:
    cache, held, number = new_cache(), list[int](), 0
    for _ in range(data.draw(st.integers(1, 14))):
        operation = data.draw(st.sampled_from(["write", "write", "keep", "rewind", "reserve"]))
        if operation == "write":
            count = data.draw(st.integers(1, 9))
            new = list(range(number, number + count))
            number += count
            if len(held) + count > cache.limit:
                with pytest.raises(ContextOverflowError):
                    write(cache, new, held)
            else:
                write(cache, new, held)
                held += new
        elif operation == "keep":
            base = data.draw(st.integers(0, len(held)))
            kept = sorted(data.draw(st.sets(st.integers(0, len(held) - base - 1)))) if base < len(held) else []
            cache.keep(base, kept)
            held = [*held[:base], *(held[base + row] for row in kept)]
        elif operation == "rewind":
            length = data.draw(st.integers(0, len(held)))
            cache.rewind(length)
            held = held[:length]
        else:
            cache.reserve(data.draw(st.integers(0, cache.limit)))
        assert cache.length == len(held)
        assert cache.length <= cache.capacity <= cache.limit
    if len(held) < cache.limit:
        write(cache, [number], held)


def test_growth_in_mid_forward_keeps_what_earlier_layers_wrote() -> None:
    cache = new_cache()
    write(cache, [0, 1, 2], [])
    before = cache.memory_bytes
    write(cache, [3, 4, 5], [0, 1, 2])
    assert cache.capacity == 8
    assert cache.memory_bytes == 2 * before
    cache.write(0, rows([6], 0, 0), rows([6], 0, 1))
    cache.reserve(20)
    cache.write(1, rows([6], 1, 0), rows([6], 1, 1))
    cache.advance(1)
    write(cache, [7], list(range(7)))


def test_a_failed_forward_leaves_no_trace() -> None:
    cache = new_cache()
    write(cache, [0, 1], [])
    cache.write(0, rows([7, 8], 0, 0), rows([7, 8], 0, 1))
    write(cache, [2], [0, 1])


@pytest.mark.parametrize("rows_wanted", [41, 1000])
def test_past_the_context_is_the_users_error(rows_wanted: int) -> None:
    cache = new_cache()
    with pytest.raises(ContextOverflowError, match=f"{rows_wanted} positions .* holds 40"):
        cache.reserve(rows_wanted)
    cache.reserve(40)
    assert cache.capacity == 40


def test_misuse_is_caught() -> None:
    cache = new_cache()
    write(cache, [0, 1], [])
    with pytest.raises(AssertionError):
        cache.rewind(3)
    with pytest.raises(AssertionError):
        cache.keep(0, [1, 0])
    with pytest.raises(AssertionError):
        cache.keep(1, [1])


def test_a_cache_is_made_from_a_spec() -> None:
    cache = KVCache.of(tiny_cache_spec(limit=5))
    assert (cache.length, cache.capacity, cache.limit) == (0, 5, 5)
    write(cache, [0, 1, 2, 3, 4], [])
    with pytest.raises(ContextOverflowError):
        write(cache, [5], [0, 1, 2, 3, 4])
