"""int8 linears: exact integer products, no saturation on any x86 kernel, results that no neighbour changes."""

import subprocess
import sys
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from assistant.errors import UsageError
from models import kernels as compiled
from models.hadamard import spread, spread_size
from models.int8_kernels import (
    LIMIT,
    CompiledWeight,
    FbgemmWeight,
    OneDnnWeight,
    PackedWeight,
    has_tiles,
    pack_weight,
)
from models.kernels.around import Around
from models.quant import PAIR_LIMIT, Int8Linear, quantize_weight, require_int8

ROOT = Path(__file__).parents[2]
SIZES = (1, 2, 3, 7, 8, 16, 33, 64)
Kernel = type[CompiledWeight] | type[FbgemmWeight] | type[OneDnnWeight]
needs_compiler = pytest.mark.skipif(compiled.find() is None, reason="nothing can be compiled here")
KERNELS = [pytest.param(CompiledWeight, marks=needs_compiler), FbgemmWeight, OneDnnWeight]
kernels = pytest.mark.parametrize("kernel", KERNELS)


def exact_product(rows: Tensor, values: Tensor, scales: Tensor) -> Tensor:
    """The product in 64-bit integers, scaled as the kernel scales it."""
    assert bool((rows.abs().amax(1) == LIMIT).all()), "a row that reaches the limit is its own rounding"
    return (rows.long() @ values.long().T).float() * scales


def whole_rows(n: int, channels: int, random: torch.Generator) -> Tensor:
    """Whole numbers, of which each row has one at the limit."""
    rows = torch.randint(-LIMIT, LIMIT + 1, (n, channels), generator=random).float()
    rows[:, channels // 2] = LIMIT
    return rows


def extremes(channels: int) -> tuple[Tensor, Tensor]:
    """Weights that take every pair to its limit, and rows at both ends of the range."""
    pair = torch.tensor([[64, 64], [127, 1], [1, 127], [-64, -64], [-127, -1], [64, -64]], dtype=torch.int8)
    values = pair.repeat(1, channels // 2)
    rows = torch.stack((torch.full((channels,), 127.0), torch.full((channels,), -127.0), torch.zeros(channels)))
    rows[2, ::2] = 127.0
    return values, rows


@kernels
@pytest.mark.parametrize("channels", [2, 34, 896, 4864])
def test_extremes_equal_integer_arithmetic(kernel: Kernel, channels: int) -> None:
    values, rows = extremes(channels)
    scales = torch.full((values.shape[0],), 0.5)
    assert torch.equal(kernel.pack(values, scales).linear(rows, Around()), exact_product(rows, values, scales))


_FORCED = """
import ctypes, pathlib, sys, torch
from models.int8_kernels import FbgemmWeight
from models.kernels.around import Around
from tests.unit.test_quant import exact_product, extremes
library = ctypes.CDLL(str(pathlib.Path(torch.__file__).parent / "lib" / "libtorch_cpu.so"))
library["_ZN6fbgemm14fbgemmForceIsaENS_10inst_set_tE"](ctypes.c_int(1))
over = FbgemmWeight.pack(torch.full((8, 64), 127, dtype=torch.int8), torch.ones(8))
if over.linear(torch.full((1, 64), 127.0), Around())[0, 0] == 127 * 127 * 64:
    sys.exit(77)
for channels in (2, 34, 896):
    values, rows = extremes(channels)
    scales = torch.ones(values.shape[0])
    assert torch.equal(FbgemmWeight.pack(values, scales).linear(rows, Around()), exact_product(rows, values, scales))
"""


def test_extremes_do_not_saturate_without_vnni() -> None:
    """The kernel for AVX2 alone adds pairs in 16 bits; it is forced here, and shown to saturate past the limit."""
    run = subprocess.run([sys.executable, "-c", _FORCED], cwd=ROOT, capture_output=True, text=True, check=False)
    if run.returncode == 77 or "undefined symbol" in run.stderr or "cannot open" in run.stderr:
        pytest.skip("this torch does not let a process force the AVX2 kernel")
    assert run.returncode == 0, run.stderr


@given(st.integers(0, 2**32), st.integers(1, 70), st.sampled_from([0.0, 1.0, 30.0]))
@settings(max_examples=40, deadline=None)
def test_quantized_weights_keep_the_pair_limit(seed: int, channels: int, tail: float) -> None:
    random = torch.Generator().manual_seed(seed)
    weight = torch.randn(5, channels, generator=random)
    weight = weight + tail * weight**3
    values, scales = quantize_weight(weight)
    padded = torch.nn.functional.pad(values.abs().int(), (0, channels % 2)).view(5, -1, 2)
    assert int(padded.sum(2).max()) <= PAIR_LIMIT
    assert int(values.abs().max()) <= LIMIT
    assert bool(((values * scales[:, None] - weight).abs() <= 1.51 * scales[:, None]).all())


@kernels
@given(st.integers(1, 40).map(lambda k: 8 * k), st.integers(0, 2**32))
@settings(max_examples=20, deadline=None)
def test_product_is_exact_for_every_number_of_rows(kernel: Kernel, channels: int, seed: int) -> None:
    random = torch.Generator().manual_seed(seed)
    values, scales = quantize_weight(torch.randn(33, channels, generator=random))
    rows = whole_rows(30, channels, random)
    packed = kernel.pack(values, scales)
    for n in (1, 3, 7, 16, 30):
        assert torch.equal(packed.linear(rows[:n], Around()), exact_product(rows[:n], values, scales))


@kernels
@pytest.mark.parametrize("threads", [1, 2, 3, 4])
@pytest.mark.parametrize(
    "around",
    [Around(), Around(torch.ones(200), torch.rand(896), torch.rand(896)), Around(gain=torch.rand(896))],
    ids=["alone", "norm", "gain"],
)
def test_a_row_is_bit_equal_in_every_batch(kernel: Kernel, around: Around, threads: int) -> None:
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        x = torch.randn(max(SIZES), 896, generator=torch.Generator().manual_seed(0))
        weight = torch.randn(200, 896, generator=torch.Generator().manual_seed(1))
        packed: PackedWeight = kernel.pack(*quantize_weight(weight))
        linear = Int8Linear(packed, around)
        alone = torch.cat([linear(row[None]) for row in x])
        for n in SIZES:
            assert torch.equal(linear(x[:n]), alone[:n])
    finally:
        torch.set_num_threads(before)


@kernels
@pytest.mark.parametrize("channels", [31, 896])
def test_all_kernels_give_the_same_bits(kernel: Kernel, channels: int) -> None:
    random = torch.Generator().manual_seed(0)
    values, scales = quantize_weight(torch.randn(77, channels, generator=random))
    rows = torch.randn(70, channels, generator=random)
    around = Around(bias=torch.randn(77, generator=random), gain=torch.rand(channels, generator=random))
    expected = FbgemmWeight.pack(values, scales).linear(rows, around)
    assert torch.equal(kernel.pack(values, scales).linear(rows, around), expected)


@pytest.mark.parametrize(
    ("tiles", "compiler", "expected"),
    [(True, True, OneDnnWeight), (False, False, FbgemmWeight), (False, True, CompiledWeight)],
)
def test_the_kernel_fits_the_cpu(
    monkeypatch: pytest.MonkeyPatch, expected: Kernel, *, tiles: bool, compiler: bool
) -> None:
    if compiler and compiled.find() is None:
        pytest.skip("nothing can be compiled here")
    found = compiled.find()
    monkeypatch.setattr(compiled, "find", lambda: found if compiler else None)
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: {"amx_int8": tiles})
    has_tiles.cache_clear()
    try:
        packed = pack_weight(*quantize_weight(torch.ones(2, 2)))
    finally:
        has_tiles.cache_clear()
    assert isinstance(packed, expected)


def test_linear_is_near_the_float_product() -> None:
    x = torch.randn(9, 128, generator=torch.Generator().manual_seed(0))
    weight = torch.randn(64, 128, generator=torch.Generator().manual_seed(1))
    got = Int8Linear(pack_weight(*quantize_weight(weight)))(x)
    assert float((got - x @ weight.T).norm() / (x @ weight.T).norm()) < 0.02


def test_a_row_of_zeros_stays_zero() -> None:
    linear = Int8Linear(pack_weight(*quantize_weight(torch.ones(3, 8))))
    assert torch.equal(linear(torch.zeros(2, 8)), torch.zeros(2, 3))


@kernels
def test_packing_keeps_values_scales_and_the_engine(kernel: Kernel) -> None:
    before = torch.backends.quantized.engine
    values, scales = quantize_weight(torch.randn(20, 32, generator=torch.Generator().manual_seed(0)))
    unpacked = kernel.pack(values, scales).unpack()
    assert torch.equal(unpacked[0], values)
    assert torch.equal(unpacked[1], scales)
    assert torch.backends.quantized.engine == before


def test_dequantized_rows_are_near_the_weight() -> None:
    weight = torch.randn(20, 32, generator=torch.Generator().manual_seed(0))
    linear = Int8Linear(pack_weight(*quantize_weight(weight)))
    ids = torch.tensor([3, 17])
    assert torch.allclose(linear.dequantized(ids), weight[ids], atol=0.03)


@kernels
def test_packing_is_silent(kernel: Kernel, recwarn: pytest.WarningsRecorder) -> None:
    kernel.pack(*quantize_weight(torch.ones(2, 2)))
    assert not recwarn.list


def test_int8_names_the_alternatives_off_the_cpu() -> None:
    with pytest.raises(UsageError, match=r"bfloat16 or float32"):
        require_int8("cuda")


def test_int8_names_the_alternatives_without_fbgemm(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(type(torch.backends.quantized), "supported_engines", ["qnnpack"])
    with pytest.raises(UsageError, match=r"float32 or bfloat16"):
        require_int8("cpu")


@pytest.mark.parametrize("channels", [1, 6, 8, 48, 4864])
def test_spreading_twice_multiplies_by_the_group(channels: int) -> None:
    rows = torch.randint(-50, 50, (3, channels), generator=torch.Generator().manual_seed(0)).float()
    twice = spread(spread(rows.clone()))
    assert torch.equal(twice, rows * spread_size(channels))


def butterflies(rows: Tensor) -> Tensor:
    """The transform as textbooks have it: halves, then halves of halves, added and subtracted where they stand."""
    n, channels = rows.shape
    groups = 1
    while groups < spread_size(channels):
        first, second = rows.view(n, groups, 2, -1).unbind(2)
        rows = torch.stack((first + second, first - second), 2).view(n, channels)
        groups *= 2
    return rows


@pytest.mark.parametrize("n", [1, 3, 8])
@pytest.mark.parametrize("channels", [1, 6, 8, 48, 896, 4864])
def test_spreading_has_the_bits_of_the_textbook_s_sums(n: int, channels: int) -> None:
    rows = torch.randn(n, channels, generator=torch.Generator().manual_seed(n)) ** 5
    assert torch.equal(spread(rows.clone()), butterflies(rows))


def test_spreading_evens_out_an_outlier() -> None:
    rows = torch.zeros(1, 192)
    rows[0, 5] = 16.0
    assert sorted(spread(rows).abs().flatten().tolist()) == [0.0] * 128 + [16.0] * 64
