"""The compiled loops: near what float64 says, the same bits in any company, and done without where they cannot be."""

import importlib.util
import math
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from models import kernels
from models.attention import CompiledAttention, HeadShape, Normed
from models.hadamard import spread, spread_size
from models.int8_kernels import CompiledWeight
from models.kernels.around import Around
from models.layers import gated_silu_exact
from models.quant import quantize_weight
from models.rope import RopeTable, rotate
from tests.support.rows import tree_mask
from tests.support.tiny import tiny_config

ROOT = Path(__file__).parents[2]
FUSED = kernels.find()
needs_compiler = pytest.mark.skipif(FUSED is None, reason="nothing can be compiled here")


def attention_of(queries: Tensor, keys: Tensor, values: Tensor, mask: Tensor | None) -> Tensor:
    """In float64: (n, heads, D) over (kv_heads, T, D) -> (n, heads · D)."""
    _, heads, channels = queries.shape
    group = heads // keys.shape[0]
    keys, values = (part.double().repeat_interleave(group, 0) for part in (keys, values))
    scores = torch.einsum("nhd,htd->nht", queries.double(), keys) / math.sqrt(channels)
    if mask is not None:
        scores[..., -mask.shape[1] :].masked_fill_(~mask[:, None], -math.inf)
    return torch.einsum("nht,htd->nhd", scores.softmax(-1), values).flatten(1)


@needs_compiler
@given(
    n=st.integers(1, 20),
    past=st.integers(0, 70),
    heads=st.sampled_from([(1, 1), (3, 3), (4, 2), (6, 1), (14, 2), (9, 3)]),
    channels=st.sampled_from([16, 48, 64, 128]),
    seed=st.integers(0, 2**32),
)
@settings(max_examples=60, deadline=None)
def test_attention_is_near_the_exact_one_and_no_row_depends_on_another(
    n: int, past: int, heads: tuple[int, int], channels: int, seed: int
) -> None:
    assert FUSED is not None
    random = torch.Generator().manual_seed(seed)
    parents = [-1] + [int(torch.randint(i, (1,), generator=random)) for i in range(1, n)]
    mask = tree_mask(parents)
    queries = torch.randn((n, heads[0], channels), generator=random)
    # The rows of a cache lie in a larger buffer.
    keys, values = torch.randn((2, heads[1], past + n + 5, channels), generator=random)[:, :, : past + n].unbind()
    scale = 1 / math.sqrt(channels)
    got = FUSED.attend(queries, scale, keys, values, mask)
    assert torch.allclose(got.double(), attention_of(queries, keys, values, mask), atol=2e-5)
    for i in range(n):
        seen = torch.cat((torch.ones(past, dtype=torch.bool), mask[i]))
        alone = FUSED.attend(queries[i : i + 1], scale, keys[:, seen].contiguous(), values[:, seen].contiguous(), None)
        assert torch.equal(alone[0], got[i]), i


@needs_compiler
@pytest.mark.parametrize("normed", [False, True])
@pytest.mark.parametrize("rounded", [False, True])
def test_heads_are_normed_rotated_and_rounded_as_by_torch(*, normed: bool, rounded: bool) -> None:
    assert FUSED is not None
    random = torch.Generator().manual_seed(0)
    shape, n = HeadShape(6, 2, 16), 5
    norms = (torch.rand(16, generator=random), torch.rand(16, generator=random)) if normed else (None, None)
    attention: Normed = CompiledAttention(FUSED, shape, *norms)
    cos, sin = RopeTable.build(tiny_config(head_dim=16), torch.float32, torch.device("cpu")).at(torch.arange(3, 8))
    qkv = torch.randn((n, 10 * 16), generator=random) * 1000
    queries, keys, values = FUSED.turn(qkv, attention, cos, sin, rounded=rounded)
    expected = list(qkv.view(n, 10, 16).split((6, 2, 2), 1))
    for place, norm in enumerate(norms):
        if norm is not None:
            expected[place] = torch.nn.functional.rms_norm(expected[place], (16,), norm, 1e-6)
        expected[place] = rotate(expected[place], cos, sin)
    for part, wanted in zip((queries, keys.transpose(0, 1), values.transpose(0, 1)), expected, strict=True):
        assert torch.allclose(part, wanted, rtol=1e-5, atol=0.501 if rounded else 1e-3)
        assert not rounded or torch.equal(part, part.round())


@needs_compiler
@pytest.mark.parametrize("inner", [1, 44, 48, 4864])
def test_the_activation_is_near_the_exact_one(inner: int) -> None:
    random = torch.Generator().manual_seed(inner)
    rows = torch.randn((9, 2 * inner), generator=random) * torch.logspace(-3, 3, 9)[:, None]
    gate, up = rows.double().chunk(2, 1)
    exact = spread((torch.nn.functional.silu(gate) * up).contiguous())
    sizes = exact.norm(dim=1, keepdim=True).clamp_min(1e-20)
    assert bool((((gated_silu_exact(rows).double() - exact) / sizes).abs() < 1e-6).all())


@needs_compiler
def test_gates_beyond_all_exponents_stay_finite() -> None:
    assert FUSED is not None
    gate = torch.tensor([[-1e4, -88.0, -87.0, 87.0, 88.0, 1e4, 0.0, -0.0]])
    got = FUSED.gated_silu(torch.cat((gate, torch.ones_like(gate)), 1), 1)
    assert torch.allclose(got, torch.nn.functional.silu(gate), atol=1e-6)


@needs_compiler
@pytest.mark.parametrize("channels", [8, 48, 896, 4864])
def test_spreading_has_the_bits_of_torch_s(channels: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = torch.randn((5, channels), generator=torch.Generator().manual_seed(channels)) ** 3
    compiled = spread(rows.clone())
    monkeypatch.setattr(kernels, "find", lambda: None)
    assert spread_size(channels) > 1
    assert torch.equal(compiled, spread(rows.clone()))


@needs_compiler
def test_a_row_that_is_no_number_stays_none_and_alone() -> None:
    weight = CompiledWeight.pack(*quantize_weight(torch.randn((40, 64), generator=torch.Generator().manual_seed(0))))
    rows = torch.randn((3, 64), generator=torch.Generator().manual_seed(1))
    spoilt = rows.clone()
    spoilt[1, 7] = math.nan
    got = weight.linear(spoilt, Around())
    assert bool(got[1].isnan().all())
    assert torch.equal(got[::2], weight.linear(rows, Around())[::2])


_OTHER_PROCESSOR = """
import sys, torch
known = torch.cpu.get_capabilities()
lacking = sys.argv[1].split(",")
torch.cpu.get_capabilities = lambda: {name: has for name, has in known.items() if name not in lacking}
from models import kernels
from models.int8_kernels import CompiledWeight
from models.kernels.around import Around
from tests.unit.test_kernels import attention_of
from tests.unit.test_quant import exact_product, extremes
fused = kernels.find()
assert fused is not None and fused.lanes == 8, fused
for channels in (2, 34, 896):
    values, rows = extremes(channels)
    scales = torch.ones(values.shape[0])
    for n in (1, 2, 3):
        got = CompiledWeight.pack(values, scales).linear(rows[:n], Around())
        assert torch.equal(got, exact_product(rows[:n], values, scales)), (channels, n)
queries, (keys, values) = torch.randn((5, 6, 24)), torch.randn((2, 2, 40, 24))
got = fused.attend(queries, 24**-0.5, keys, values, torch.ones((5, 5), dtype=torch.bool).tril())
assert torch.allclose(got.double(), attention_of(queries, keys, values, torch.ones(5, 5).bool().tril()), atol=2e-5)
"""


@needs_compiler
@pytest.mark.parametrize("lacking", ["avx512_vnni", "avx512_vnni,avx_vnni"], ids=["AVX-VNNI", "AVX2"])
def test_processors_with_less_calculate_the_same(lacking: str, tmp_path: Path) -> None:
    """The loops for 256-bit registers, with instructions for four products and without; extremes do not saturate."""
    if lacking == "avx512_vnni" and not torch.cpu.get_capabilities().get("avx_vnni"):
        pytest.skip("this processor has no AVX-VNNI")
    script = "import numba; from models.kernels import store; store.choose_folder = lambda: None\n" + _OTHER_PROCESSOR
    run = subprocess.run(
        [sys.executable, "-c", script, lacking],
        cwd=ROOT,
        env={**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr


@pytest.mark.parametrize("missing", ["numba", "llvmlite"])
def test_without_a_compiler_torch_does_the_work(missing: str) -> None:
    script = (
        f"import sys; sys.modules[{missing!r}] = None\n"
        "import torch\n"
        "from models import kernels\n"
        "from tests.support.tiny import tiny_target\n"
        "from tests.support.rows import cache_for\n"
        "target = tiny_target('qwen2', 'int8', head_dim=16)\n"
        "assert kernels.find() is None\n"
        "print(target.forward(torch.arange(3), torch.arange(3), cache_for(target.spec)).logits.isfinite().all())\n"
    )
    run = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    assert run.stdout.strip() == "tensor(True)"
    assert "no compiled loops" in run.stderr


def test_the_loops_are_there_where_they_can_be() -> None:
    """Elsewhere the tests of this file are skipped; a mistake in the loops must not do that."""
    able = bool(torch.cpu.get_capabilities().get("avx2")) and importlib.util.find_spec("numba") is not None
    assert (FUSED is not None) == able


@needs_compiler
@pytest.mark.parametrize("said", ["OMP_NUM_THREADS=1", "torch.set_num_threads(1)"])
def test_the_number_of_threads_stays_what_it_was(said: str) -> None:
    setting = {"OMP_NUM_THREADS": "1"} if said.startswith("OMP") else {}
    script = (
        f"import torch\n{'' if setting else said}\n"
        "from models import kernels\n"
        "assert kernels.find() is not None\n"
        "print(torch.get_num_threads())\n"
    )
    run = subprocess.run(
        [sys.executable, "-c", script],
        cwd=ROOT,
        env={**os.environ, **setting},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.stdout.strip() == "1", run.stderr


def test_other_processors_are_not_asked_to(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cpu, "get_capabilities", dict)
    assert kernels.find.__wrapped__() is None


def test_wrong_results_are_found_out(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    if FUSED is None:
        pytest.skip("nothing can be compiled here")
    monkeypatch.setattr(type(FUSED), "linear", lambda *_: torch.zeros(3, 4))
    assert kernels.find.__wrapped__() is None
    assert "calculates wrongly" in caplog.text
