"""What numba compiles: whole parts of a forward over addresses of contiguous memory, by `threads` threads at a time.

Every row goes through the same instructions whatever rows share its call, so that its results are the same bits. An
address of 0 stands for a tensor that is not there.
"""

import math
from typing import Any

import numba
import numpy as np
from numba import carray, prange

from models.kernels import store
from models.kernels.vectors import (
    EXPONENT_BIAS,
    LN2,
    LN2_REST,
    MANTISSA_BITS,
    PANEL,
    QUERIES,
    TILES,
    as_bits,
    as_float,
    mix_tile,
    pointer,
    product_tile,
    score_tile,
    weight_tile,
    whole,
)

ZERO_POINT = 128
"""added to a row's whole numbers, which makes unsigned bytes of them"""
_MOST = TILES[-1]
_STEPS = np.float32(1 / 127)
_TINY = np.float32(1e-30)
_SIZE = np.int32(0x7FFFFFFF)
_LEAST, _LARGEST = np.float32(-87), np.float32(88)
_LOG2E = np.float32(1 / math.log(2))
_LN2, _LN2_REST = np.float32(LN2), np.float32(LN2_REST)
_HALF, _THIRD, _FOURTH, _FIFTH, _SIXTH = (np.float32(1 / math.factorial(order)) for order in range(2, 7))
_ONE = np.float32(1)
_SUMS = 4 * _MOST * PANEL
"""bytes of a tile's sums"""
_MANY_ROWS = 3
"""from so many rows on sharing them among threads pays, where one takes microseconds"""

store.choose_folder()
_tile_1, _tile_2, _tile_4, _tile_6 = (product_tile(rows) for rows in TILES[:4])
_tile_8, _tile_12 = (product_tile(rows) for rows in (TILES[4:] or (TILES[-1], TILES[-1])))


def _compiled(**options: Any) -> Any:
    try:
        return numba.njit(nogil=True, cache=True, error_model="numpy", **options)
    except RuntimeError:  # no folder to keep the result in
        return numba.njit(nogil=True, error_model="numpy", **options)


@_compiled(fastmath={"reassoc"})
def _mean_square(x, channels):
    total = 0.0
    for i in range(channels):
        total += np.float64(x[i]) * np.float64(x[i])
    return total / channels


@_compiled()
def _normed(x, norm, channels, eps, out):
    factor = np.float32(1.0 / math.sqrt(_mean_square(x, channels) + eps))
    for i in range(channels):
        out[i] = x[i] * factor * norm[i]


@_compiled()
def _rounded(x, channels, out):
    """Whole numbers within ±127 as unsigned bytes; returns the row's step. As `models.quant.round_rows`."""
    largest = np.int32(0)
    for i in range(channels):
        largest = max(largest, as_bits(x[i]) & _SIZE)
    size = as_float(largest)
    step = (max(size, _TINY)) * _STEPS
    for i in range(channels):
        out[i] = np.uint8(np.int32(whole(x[i] / step)) + ZERO_POINT)
    return step


@_compiled()
def _prepared(x, channels, norm, gain, eps, spare, out):
    """One row through the norm or the gain, rounded."""
    if norm != 0:
        _normed(x, carray(pointer(norm), channels, np.float32), channels, eps, spare)
        return _rounded(spare, channels, out)
    if gain != 0:
        gains = carray(pointer(gain), channels, np.float32)
        for i in range(channels):
            spare[i] = x[i] * gains[i]
        return _rounded(spare, channels, out)
    return _rounded(x, channels, out)


@_compiled()
def _prepare(x, first, end, channels, norm, gain, eps, spare, rows, steps):
    """Rows from `first` to `end` as unsigned bytes, and their steps."""
    distance = 4 * -(-channels // 4)
    step = carray(pointer(steps), end, np.float32)
    for r in range(first, end):
        row = carray(pointer(x + 4 * r * channels), channels, np.float32)
        kept = carray(pointer(rows + r * distance), channels, np.uint8)
        step[r] = _prepared(row, channels, norm, gain, eps, carray(pointer(spare), channels, np.float32), kept)


@_compiled()
def _aligned(size):
    return -(-size // 64) * 64


@_compiled()
def _linear_parts(space, n, channels, threads):
    """Where rows, steps, sums and spare rows lie in the space, and where it ends."""
    # A tile may read more rows than there are; what it makes of them is not looked at.
    steps = space + _aligned((n + _MOST) * 4 * -(-channels // 4))
    sums = steps + _aligned(4 * n)
    spare = sums + threads * _SUMS
    return space, steps, sums, spare, spare + threads * _aligned(4 * channels)


def linear_space(n: int, channels: int, threads: int) -> int:
    """Bytes that `linear` works in."""
    return int(_linear_parts.py_func(0, n, channels, threads)[-1])


@_compiled()
def _share(n):
    """How many of `n` rows to multiply together next, so that none of the tiles is much emptier than the others."""
    return -(-n // -(-n // _MOST))


@_compiled()
def _product(rows, distance, n, panel, groups, sums):
    if n == 1:
        _tile_1(rows, distance, panel, groups, sums)
    elif n == 2:
        _tile_2(rows, distance, panel, groups, sums)
    elif n <= 4:
        _tile_4(rows, distance, panel, groups, sums)
    elif n <= 6:
        _tile_6(rows, distance, panel, groups, sums)
    elif n <= 8:
        _tile_8(rows, distance, panel, groups, sums)
    else:
        _tile_12(rows, distance, panel, groups, sums)


@_compiled(parallel=True)
def linear(x, n, channels, norm, gain, eps, weight, corrections, scales, bias, outputs, out, space, threads):
    """`models.quant.Int8Linear`: (n, channels) float32 -> (n, outputs) float32.

    `weight` is (panels, groups, PANEL, 4) int8; `corrections` (panels · PANEL,) int32 are what the zero point adds to
    sums; `scales` (panels · PANEL,) float32; `space` is of `linear_space` bytes.
    """
    groups = -(-channels // 4)
    panels = -(-outputs // PANEL)
    distance = 4 * groups
    rows, steps, sums, spare, _ = _linear_parts(space, n, channels, threads)
    if n < _MANY_ROWS * threads:
        _prepare(x, 0, n, channels, norm, gain, eps, spare, rows, steps)
    else:
        for part in prange(threads):
            first, end = n * part // threads, n * (part + 1) // threads
            _prepare(x, first, end, channels, norm, gain, eps, spare + part * _aligned(4 * channels), rows, steps)
    for thread in prange(threads):
        own = sums + thread * _SUMS
        for p in range(panels * thread // threads, panels * (thread + 1) // threads):
            width = min(PANEL, outputs - p * PANEL)
            correct = carray(pointer(corrections + 4 * p * PANEL), PANEL, np.int32)
            scale = carray(pointer(scales + 4 * p * PANEL), PANEL, np.float32)
            first = 0
            while first < n:
                size = _share(n - first)
                _product(rows + first * distance, distance, size, weight + p * PANEL * distance, groups, own)
                for r in range(size):
                    step = carray(pointer(steps), n, np.float32)[first + r]
                    total = carray(pointer(own + 4 * r * PANEL), PANEL, np.int32)
                    y = carray(pointer(out + 4 * ((first + r) * outputs + p * PANEL)), PANEL, np.float32)
                    for c in range(width):
                        y[c] = np.float32(total[c] - correct[c]) * scale[c] * step
                    if bias != 0:
                        added = carray(pointer(bias + 4 * p * PANEL), PANEL, np.float32)
                        for c in range(width):
                            y[c] += added[c]
                first += size


@_compiled()
def _turned(x, cos, sin, half, out):
    """One head's query or key, rotated; the first half of the sines is negative."""
    for i in range(half):
        out[i] = x[i] * cos[i] + x[half + i] * sin[i]
    for i in range(half):
        out[half + i] = x[half + i] * cos[i] + x[i] * sin[half + i]


@_compiled()
def turn(qkv, n, heads, kv_heads, channels, cos, sin, q_norm, k_norm, eps, rounded, queries, keys, values):
    """Fused rows -> queries (n, heads, D), keys and values (kv_heads, n, D), as whole numbers if `rounded`.

    `cos` is (n, D / 2), `sin` (n, 2, D / 2) as `models.rope` makes them.
    """
    spare = np.empty(channels, np.float32)
    half = channels // 2
    every = heads + 2 * kv_heads
    for r in range(n):
        cosines = carray(pointer(cos + 4 * r * half), half, np.float32)
        sines = carray(pointer(sin + 4 * r * channels), channels, np.float32)
        for head in range(every):
            x = carray(pointer(qkv + 4 * (r * every + head) * channels), channels, np.float32)
            if head < heads:
                to, norm = queries + 4 * (r * heads + head) * channels, q_norm
            elif head < heads + kv_heads:
                to, norm = keys + 4 * ((head - heads) * n + r) * channels, k_norm
            else:
                to, norm = values + 4 * ((head - heads - kv_heads) * n + r) * channels, 0
            out = carray(pointer(to), channels, np.float32)
            if head >= heads + kv_heads:
                for i in range(channels):
                    out[i] = x[i]
            elif norm != 0:
                _normed(x, carray(pointer(norm), channels, np.float32), channels, eps, spare)
                _turned(spare, cosines, sines, half, out)
            else:
                _turned(x, cosines, sines, half, out)
            if rounded:
                for i in range(channels):
                    out[i] = whole(out[i])


@_compiled()
def _attend_parts(space, thread, channels, total):
    """Where a thread's queries, sums of values, sums of weights and scores lie in the space, and where they end."""
    rows = 4 * QUERIES * channels
    size = 2 * rows + 8 * QUERIES + 4 * QUERIES * total
    start = space + thread * _aligned(size)
    return start, start + rows, start + 2 * rows, start + 2 * rows + 8 * QUERIES, start + _aligned(size)


def attend_space(channels: int, total: int, threads: int) -> int:
    """Bytes that `attend` works in."""
    return int(_attend_parts.py_func(0, threads - 1, channels, total)[-1])


@_compiled()
def _gather(queries, scale, group, heads, head, first, count, channels, rows):
    """QUERIES scaled rows of one key/value head's queries, from number `first` on; zeros where there are no more."""
    for r in range(QUERIES):
        row = carray(pointer(rows + 4 * r * channels), channels, np.float32)
        if r < count:
            place = _place(first + r, group, heads, head)
            query = carray(pointer(queries + 4 * place * channels), channels, np.float32)
            for c in range(channels):
                row[c] = query[c] * scale
        else:
            for c in range(channels):
                row[c] = np.float32(0)


@_compiled()
def _place(number, group, heads, head):
    """Where a key/value head's query of that number stands among all (n, heads)."""
    return number // group * heads + head * group + number % group


@_compiled()
def _hide(mask, m, group, first, count, total, scores):
    """Nothing is left of the scores of rows that a query does not see."""
    for r in range(count):
        seen = carray(pointer(mask + (first + r) // group * m), m, np.uint8)
        new = carray(pointer(scores + 4 * ((total - m) * QUERIES + r)), m * QUERIES, np.float32)
        for j in range(m):
            if seen[j] == 0:
                new[j * QUERIES] = np.float32(-np.inf)


@_compiled()
def _scatter(mixed, totals, group, heads, head, first, count, channels, out):
    """The rows' sums of values, divided by their sums of weights, where their queries stood."""
    divisors = carray(pointer(totals), QUERIES, np.float64)
    for r in range(count):
        row = carray(pointer(mixed + 4 * r * channels), channels, np.float32)
        y = carray(pointer(out + 4 * _place(first + r, group, heads, head) * channels), channels, np.float32)
        for c in range(channels):
            y[c] = np.float32(np.float64(row[c]) / divisors[r])


@_compiled(parallel=True)
def attend(
    queries, n, heads, kv_heads, channels, scale, keys, key_gap, values, value_gap, total, mask, m, out, space, threads
):
    """Attention of (n, heads, D) queries over `total` rows of keys and values, (n, heads, D) float32.

    Keys and values are (total, D) for each head, the heads that many bytes apart; `mask` is (n, m) bool over the last m
    rows. QUERIES rows of one key/value head go together, of whichever queries; none of them changes another. `space` is
    of `attend_space` bytes.
    """
    group = heads // kv_heads
    size = n * group
    blocks = -(-size // QUERIES)
    items = kv_heads * blocks
    for thread in prange(threads):
        rows, mixed, totals, scores, _ = _attend_parts(space, thread, channels, total)
        for item in range(items * thread // threads, items * (thread + 1) // threads):
            head = item // blocks
            first = (item - head * blocks) * QUERIES
            count = min(QUERIES, size - first)
            _gather(queries, scale, group, heads, head, first, count, channels, rows)
            score_tile(rows, keys + head * key_gap, 4 * channels, total, channels, scores)
            if m > 0:
                _hide(mask, m, group, first, count, total, scores)
            weight_tile(scores, total, totals)
            mix_tile(scores, values + head * value_gap, 4 * channels, total, channels, mixed)
            _scatter(mixed, totals, group, heads, head, first, count, channels, out)


@_compiled()
def _exp(x):
    """Exp of a float32, in steps of 2^k · exp(r) with |r| up to ln(2) / 2 (Cephes' expf)."""
    x = min(max(x, _LEAST), _LARGEST)
    doublings = whole(x * _LOG2E)
    rest = x - doublings * _LN2 - doublings * _LN2_REST
    power = _SIXTH * rest + _FIFTH
    power = power * rest + _FOURTH
    power = power * rest + _THIRD
    power = power * rest + _HALF
    power = power * rest + _ONE
    power = power * rest + _ONE
    return power * as_float((np.int32(doublings) + np.int32(EXPONENT_BIAS)) << np.int32(MANTISSA_BITS))


@_compiled()
def _spread(x, width, size):
    """`models.hadamard.spread` of one row of size · width numbers, in place."""
    half = size // 2
    while half > 0:
        for m in range(size):
            if m & half == 0:
                low = carray(pointer(x + 4 * m * width), width, np.float32)
                high = carray(pointer(x + 4 * (m + half) * width), width, np.float32)
                for i in range(width):
                    a, b = low[i], high[i]
                    low[i] = a + b
                    high[i] = a - b
        half //= 2


@_compiled(parallel=True)
def gated_silu(gate_up, n, inner, size, out, threads):
    """(n, 2 inner) -> (n, inner): silu(gate) * up, spread over groups of `size`."""
    parts = threads if n >= _MANY_ROWS else 1
    for part in prange(parts):
        for r in range(n * part // parts, n * (part + 1) // parts):
            gate = carray(pointer(gate_up + 8 * r * inner), inner, np.float32)
            up = carray(pointer(gate_up + 8 * r * inner + 4 * inner), inner, np.float32)
            y = carray(pointer(out + 4 * r * inner), inner, np.float32)
            for i in range(inner):
                y[i] = gate[i] * up[i] / (_exp(-gate[i]) + _ONE)
            _spread(out + 4 * r * inner, inner // size, size)


@_compiled()
def spread(x, n, channels, size):
    """`models.hadamard.spread` of (n, channels) rows, in place."""
    for r in range(n):
        _spread(x + 4 * r * channels, channels // size, size)
