"""Inner loops over vector registers, written in LLVM's instructions for numba to inline.

A loop that multiplies bytes into 32-bit sums, or that keeps a tile of results in registers while it reads memory once,
is out of a compiler's reach when it starts from plain loops. Each intrinsic here is one such loop. Memory is given by
addresses (int64); nothing is checked.
"""

import math
from collections.abc import Sequence
from typing import Any

import torch
from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

_BITS8, _BITS16, _BITS32, _BITS64 = ir.IntType(8), ir.IntType(16), ir.IntType(32), ir.IntType(64)
_FLOAT = ir.FloatType()
_WORDS = 4
"""bytes that one 32-bit sum takes in an instruction"""

_cpu = torch.cpu.get_capabilities()
_WIDE = bool(_cpu.get("avx512_vnni") and _cpu.get("avx512_bw"))
_SUMS_OF_FOUR = _WIDE or bool(_cpu.get("avx_vnni"))

LANES = 16 if _WIDE else 8
"""32-bit numbers in a register"""
PANEL = 2 * LANES
"""outputs of a product that are worked on together"""
TILES = (1, 2, 4, 6, 8, 12) if _WIDE else (1, 2, 4, 6)
"""rows of a product that are worked on together: their sums fill most of the registers"""
WEIGHT_BITS = 20
"""of softmax weights"""
_LEAST = -80.0
"""exp of this rounds to a weight of 0"""
LN2, LN2_REST = 0.693359375, math.log(2) - 0.693359375
"""the first has few bits, so that its products with whole numbers are exact"""
EXPONENT_BIAS, MANTISSA_BITS = 127, 23
QUERIES = 8
"""query rows of attention that are worked on together"""


class Loop:
    """Emits code that counts from 0 to `count` (at least once) and carries values from turn to turn."""

    def __init__(self, builder: Any, count: Any, start: Sequence[Any]) -> None:
        self._builder, self._count = builder, count
        before = builder.block
        self._body = builder.append_basic_block("turn")
        self._end = builder.append_basic_block("end")
        builder.branch(self._body)
        builder.position_at_end(self._body)
        self.index = builder.phi(_BITS64)
        self.index.add_incoming(_BITS64(0), before)
        self.carried = []
        for value in start:
            phi = builder.phi(value.type)
            phi.add_incoming(value, before)
            self.carried.append(phi)

    def close(self, values: Sequence[Any]) -> None:
        """End a turn with the values that the next one starts from, which are also those behind the loop."""
        last = self._builder.block
        following = self._builder.add(self.index, _BITS64(1))
        again = self._builder.icmp_signed("<", following, self._count)
        self._builder.cbranch(again, self._body, self._end)
        self.index.add_incoming(following, last)
        for phi, value in zip(self.carried, values, strict=True):
            phi.add_incoming(value, last)
        self._builder.position_at_end(self._end)


def _load(builder: Any, address: Any, kind: Any) -> Any:
    loaded = builder.load(builder.inttoptr(address, kind.as_pointer()))
    loaded.align = 1
    return loaded


def _store(builder: Any, value: Any, address: Any) -> None:
    builder.store(value, builder.inttoptr(address, value.type.as_pointer())).align = 1


def _spread(builder: Any, scalar: Any, lanes: int) -> Any:
    kind = ir.VectorType(scalar.type, lanes)
    first = builder.insert_element(ir.Constant(kind, ir.Undefined), scalar, _BITS32(0))
    return builder.shuffle_vector(
        first, ir.Constant(kind, ir.Undefined), ir.Constant(ir.VectorType(_BITS32, lanes), [0] * lanes)
    )


def _plus(builder: Any, address: Any, index: Any, step: int) -> Any:
    return builder.add(address, builder.mul(index, _BITS64(step)))


def _declared(builder: Any, name: str, result: Any, arguments: Sequence[Any]) -> Any:
    module = builder.module
    return module.globals.get(name) or ir.Function(module, ir.FunctionType(result, arguments), name=name)


def _fma(builder: Any, factor: Any, other: Any, added: Any) -> Any:
    kind = factor.type
    return builder.call(_declared(builder, f"llvm.fma.v{kind.count}f32", kind, [kind] * 3), [factor, other, added])


def _multiply_add(builder: Any, sums: Any, unsigned: Any, signed: Any) -> Any:
    """Sums (LANES 32-bit) plus, in each lane, four products of unsigned and signed bytes."""
    wide = ir.VectorType(_BITS32, LANES)
    if _SUMS_OF_FOUR:
        parts = [builder.bitcast(value, wide) for value in (unsigned, signed)]
        name = f"llvm.x86.avx512.vpdpbusd.{32 * LANES}"
        return builder.call(_declared(builder, name, wide, [wide] * 3), [sums, *parts])
    # The sums of two stay within 16 bits: `models.quant` keeps neighbours of a weight within 128 together.
    halves = ir.VectorType(_BITS16, 2 * LANES)
    pairs = builder.call(
        _declared(builder, "llvm.x86.avx2.pmadd.ub.sw", halves, [unsigned.type, signed.type]), [unsigned, signed]
    )
    ones = ir.Constant(halves, [1] * (2 * LANES))
    fours = builder.call(_declared(builder, "llvm.x86.avx2.pmadd.wd", wide, [halves, halves]), [pairs, ones])
    return builder.add(sums, fours)


def product_tile(rows: int) -> Any:
    """An intrinsic: `rows` rows of unsigned bytes by one panel of signed bytes.

    Its arguments: the rows' address and their distance in bytes; the panel's address, (groups, PANEL, 4) bytes; the
    number of groups of four channels, at least 1; the address of the sums, (rows, PANEL) int32, which it writes.
    """
    parts = PANEL // LANES
    bytes_ = ir.VectorType(_BITS8, _WORDS * LANES)

    @intrinsic
    def tile(context: Any, x: Any, distance: Any, panel: Any, groups: Any, sums: Any) -> Any:  # noqa: ARG001
        def emit(context: Any, b: Any, signature: Any, values: Any) -> Any:  # noqa: ARG001
            x, distance, panel, groups, sums = values
            loop = Loop(b, groups, [ir.Constant(ir.VectorType(_BITS32, LANES), None)] * (rows * parts))
            here = _plus(b, panel, loop.index, _WORDS * PANEL)
            weights = [_load(b, b.add(here, _BITS64(_WORDS * LANES * part)), bytes_) for part in range(parts)]
            first = _plus(b, x, loop.index, _WORDS)
            results = []
            for row in range(rows):
                word = _load(b, _plus(b, first, distance, row), _BITS32)
                inputs = b.bitcast(_spread(b, word, LANES), bytes_)
                for part, weight in enumerate(weights):
                    results.append(_multiply_add(b, loop.carried[row * parts + part], inputs, weight))
            loop.close(results)
            for place, result in enumerate(results):
                _store(b, result, b.add(sums, _BITS64(4 * LANES * place)))
            return context.get_dummy_value()

        return types.void(*[types.int64] * 5), emit

    return tile


@intrinsic
def score_tile(context: Any, queries: Any, keys: Any, distance: Any, count: Any, channels: Any, scores: Any) -> Any:  # noqa: ARG001
    """QUERIES query rows by all keys.

    Its arguments: the address of the queries, (QUERIES, channels) float32; that of the keys and their distance in
    bytes; their number, at least 1; the channels, a multiple of LANES; the address of the scores, (count, QUERIES)
    float32, which it writes.
    """

    def emit(context: Any, b: Any, signature: Any, values: Any) -> Any:  # noqa: ARG001
        queries, keys, distance, count, channels, scores = values
        kind = ir.VectorType(_FLOAT, LANES)
        each_key = Loop(b, count, [])
        key = b.add(keys, b.mul(each_key.index, distance))
        loop = Loop(b, b.udiv(channels, _BITS64(LANES)), [ir.Constant(kind, [0.0] * LANES)] * QUERIES)
        part = _load(b, _plus(b, key, loop.index, 4 * LANES), kind)
        row = _plus(b, queries, loop.index, 4 * LANES)
        sums = []
        for query in range(QUERIES):
            inputs = _load(b, b.add(row, b.mul(channels, _BITS64(4 * query))), kind)
            sums.append(_fma(b, inputs, part, loop.carried[query]))
        loop.close(sums)
        _store(b, _totals(b, sums), _plus(b, scores, each_key.index, 4 * QUERIES))
        each_key.close([])
        return context.get_dummy_value()

    return types.void(*[types.int64] * 6), emit


def _totals(builder: Any, vectors: Sequence[Any]) -> Any:
    """The sum of each vector's lanes, side by side in one vector: pairs are folded into one another."""
    while len(vectors) > 1:
        vectors = [_folded(builder, *vectors[i : i + 2]) for i in range(0, len(vectors), 2)]
    (left,) = vectors
    # Each number of the result lies LANES / QUERIES times side by side, as that many parts.
    while left.type.count > QUERIES:
        even, odd = (_chosen(builder, left, left, range(start, left.type.count, 2)) for start in (0, 1))
        left = builder.fadd(even, odd)
    return left


def _folded(builder: Any, first: Any, second: Any) -> Any:
    """Half as many sums of each: the first's in the lower half of the lanes, the second's in the upper."""
    lanes = first.type.count
    even = [*range(0, lanes, 2), *range(lanes, 2 * lanes, 2)]
    return builder.fadd(
        _chosen(builder, first, second, even), _chosen(builder, first, second, [lane + 1 for lane in even])
    )


def _chosen(builder: Any, first: Any, second: Any, lanes: Sequence[int]) -> Any:
    kind = ir.VectorType(_BITS32, len(lanes))
    return builder.shuffle_vector(first, second, ir.Constant(kind, list(lanes)))


@intrinsic
def weight_tile(context: Any, scores: Any, count: Any, totals: Any) -> Any:  # noqa: ARG001
    """Softmax weights of QUERIES rows in place, as whole multiples of 2^-WEIGHT_BITS of each row's largest.

    Its arguments: the address of the scores, (count, QUERIES) float32, of which each row has a finite one; their
    number, at least 1; the address of the weights' sums, (QUERIES,) float64, which it writes. Sums of whole numbers are
    exact, so that a hidden row, whose weight is 0, changes nothing wherever it stands.
    """

    def emit(context: Any, b: Any, signature: Any, values: Any) -> Any:  # noqa: ARG001
        scores, count, totals = values
        kind = ir.VectorType(_FLOAT, QUERIES)
        finding = Loop(b, count, [ir.Constant(kind, [-math.inf] * QUERIES)])
        score = _load(b, _plus(b, scores, finding.index, 4 * QUERIES), kind)
        (peak,) = finding.carried
        peak = b.select(b.fcmp_ordered(">", score, peak), score, peak)
        finding.close([peak])
        wide = ir.VectorType(ir.DoubleType(), QUERIES)
        loop = Loop(b, count, [ir.Constant(wide, [0.0] * QUERIES)])
        place = _plus(b, scores, loop.index, 4 * QUERIES)
        weight = _rounded(b, _power(b, b.fsub(_load(b, place, kind), peak)))
        _store(b, weight, place)
        total = b.fadd(loop.carried[0], b.fpext(weight, wide))
        loop.close([total])
        _store(b, total, totals)
        return context.get_dummy_value()

    return types.void(*[types.int64] * 3), emit


def _power(builder: Any, exponent: Any) -> Any:
    """2^WEIGHT_BITS · exp of numbers up to 0, in steps of 2^k · exp(r) with |r| up to ln(2) / 2 (Cephes' expf)."""
    kind = exponent.type

    def every(number: float) -> Any:
        return ir.Constant(kind, [number] * kind.count)

    exponent = builder.select(builder.fcmp_ordered(">", exponent, every(_LEAST)), exponent, every(_LEAST))
    doublings = _rounded(builder, builder.fmul(exponent, every(1 / math.log(2))))
    rest = _fma(builder, doublings, every(-LN2), exponent)
    rest = _fma(builder, doublings, every(-LN2_REST), rest)
    power = every(1 / math.factorial(6))
    for order in range(5, -1, -1):
        power = _fma(builder, power, rest, every(1 / math.factorial(order)))
    whole = ir.VectorType(_BITS32, kind.count)
    exponents = builder.add(
        builder.fptosi(doublings, whole), ir.Constant(whole, [WEIGHT_BITS + EXPONENT_BIAS] * kind.count)
    )
    scale = builder.bitcast(builder.shl(exponents, ir.Constant(whole, [MANTISSA_BITS] * kind.count)), kind)
    return builder.fmul(power, scale)


def _rounded(builder: Any, numbers: Any) -> Any:
    kind = numbers.type
    return builder.call(_declared(builder, f"llvm.rint.v{kind.count}f32", kind, [kind]), [numbers])


@intrinsic
def mix_tile(context: Any, weights: Any, values: Any, distance: Any, count: Any, channels: Any, mixed: Any) -> Any:  # noqa: ARG001
    """Sums of all value rows, each times its weight, for QUERIES rows of weights; added up in the rows' order.

    Its arguments: the address of the weights, (count, QUERIES) float32; that of the values and their distance in bytes;
    their number, at least 1; the channels, a multiple of LANES; the address of the sums, (QUERIES, channels) float32,
    which it writes.
    """

    def emit(context: Any, b: Any, signature: Any, arguments: Any) -> Any:  # noqa: ARG001
        weights, values, distance, count, channels, mixed = arguments
        kind = ir.VectorType(_FLOAT, LANES)
        each_part = Loop(b, b.udiv(channels, _BITS64(LANES)), [])
        first = _plus(b, values, each_part.index, 4 * LANES)
        loop = Loop(b, count, [ir.Constant(kind, [0.0] * LANES)] * QUERIES)
        part = _load(b, b.add(first, b.mul(loop.index, distance)), kind)
        row = _plus(b, weights, loop.index, 4 * QUERIES)
        sums = []
        for query in range(QUERIES):
            weight = _spread(b, _load(b, b.add(row, _BITS64(4 * query)), _FLOAT), LANES)
            sums.append(_fma(b, weight, part, loop.carried[query]))
        loop.close(sums)
        place = _plus(b, mixed, each_part.index, 4 * LANES)
        for query, total in enumerate(sums):
            _store(b, total, b.add(place, b.mul(channels, _BITS64(4 * query))))
        each_part.close([])
        return context.get_dummy_value()

    return types.void(*[types.int64] * 6), emit


@intrinsic
def pointer(context: Any, address: Any) -> Any:  # noqa: ARG001
    """int64 -> an address as `numba.carray` takes it."""

    def emit(context: Any, b: Any, signature: Any, values: Any) -> Any:  # noqa: ARG001
        return b.inttoptr(values[0], _BITS8.as_pointer())

    return types.voidptr(types.int64), emit


@intrinsic
def as_float(context: Any, bits: Any) -> Any:  # noqa: ARG001
    """int32 -> the float32 of the same bits."""

    def emit(context: Any, b: Any, signature: Any, values: Any) -> Any:  # noqa: ARG001
        return b.bitcast(values[0], _FLOAT)

    return types.float32(types.int32), emit


@intrinsic
def as_bits(context: Any, number: Any) -> Any:  # noqa: ARG001
    """float32 -> the int32 of the same bits."""

    def emit(context: Any, b: Any, signature: Any, values: Any) -> Any:  # noqa: ARG001
        return b.bitcast(values[0], _BITS32)

    return types.int32(types.float32), emit


@intrinsic
def whole(context: Any, number: Any) -> Any:  # noqa: ARG001
    """float32 -> the nearest whole number, of two the even one."""

    def emit(context: Any, b: Any, signature: Any, values: Any) -> Any:  # noqa: ARG001
        return b.call(_declared(b, "llvm.rint.f32", _FLOAT, [_FLOAT]), values)

    return types.float32(types.float32), emit
