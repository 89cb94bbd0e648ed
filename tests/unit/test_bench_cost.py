"""Costs: what is measured, how it is read between measured points, and where it is kept."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from assistant.commands.bench import bench
from assistant.engine import cost
from assistant.engine.cost import Costs
from assistant.engine.measure import measure, weight_bytes
from assistant.errors import ContextOverflowError
from tests.support.tiny import tiny_head, tiny_target
from tests.support.tiny_folder import write_head, write_model

COSTS = Costs(
    machine="a processor, 2 cores",
    model="tiny",
    precision="int8",
    device="cpu",
    threads=2,
    context=256,
    width=8,
    weight_bytes=500_000_000,
    head="eagle, 96 tokens",
    verify_ms={1: 50.0, 8: 64.0, 16: 80.0},
    draft_ms={1: 4.0, 2: 7.0},
    spread_ms={"verify 1": (49.0, 52.0)},
)


def test_between_measured_points_costs_are_linear() -> None:
    assert COSTS.verify(8) == 64.0
    assert COSTS.verify(12) == pytest.approx(72.0)
    assert COSTS.verify(32) == pytest.approx(112.0)  # along the last piece
    assert [COSTS.draft(depth) for depth in (0, 1, 3)] == pytest.approx([0.0, 4.0, 10.0])


@given(st.integers(1, 200))
def test_more_rows_never_cost_less_where_measurements_rise(rows: int) -> None:
    assert COSTS.verify(rows) <= COSTS.verify(rows + 1)


def test_without_a_head_drafting_is_free() -> None:
    assert replace(COSTS, draft_ms={}).draft(5) == 0.0


def test_bandwidth_is_weights_a_second_of_one_row() -> None:
    assert COSTS.bandwidth_gb_s == pytest.approx(10.0)


def test_bandwidth_is_unknown_where_the_weights_are() -> None:
    assert replace(COSTS, weight_bytes=None).bandwidth_gb_s is None


def test_costs_survive_json() -> None:
    read = Costs.from_json(json.loads(json.dumps(COSTS.to_json())))
    assert (read.verify_ms, read.draft_ms, read.model) == (COSTS.verify_ms, COSTS.draft_ms, COSTS.model)


def test_costs_are_kept_by_machine_model_and_precision(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EAGLE_ASSIST_HOME", str(tmp_path))
    spec = tiny_target().spec
    machine, threads = cost.machine_name("cpu"), torch.get_num_threads()
    ours = replace(COSTS, machine=machine, threads=threads, model=spec.name, precision=spec.precision)
    assert cost.load(spec) is None
    path = cost.save(ours)
    kept = cost.load(spec)
    assert kept is not None
    assert kept.verify_ms == ours.verify_ms
    assert cost.load(replace(spec, precision="bfloat16")) is None
    monkeypatch.setattr(torch, "get_num_threads", lambda: ours.threads + 1)
    assert cost.load(spec) is None
    monkeypatch.setattr(torch, "get_num_threads", lambda: ours.threads)
    path.write_text("{}")
    assert cost.load(spec) is None


def test_every_size_and_depth_is_measured() -> None:
    target = tiny_target()
    measured = measure(target, tiny_head(target), context=8, width=3, repeat=2, sizes=(1, 5), depths=(1, 3))
    assert measured.verify_ms.keys() == {1, 5}
    assert measured.draft_ms.keys() == {1, 3}
    assert all(value > 0 for value in (*measured.verify_ms.values(), *measured.draft_ms.values()))
    assert measured.spread_ms.keys() == {"verify 1", "verify 5", "draft 1", "draft 3"}
    assert all(low <= high for low, high in measured.spread_ms.values())


def test_without_a_head_no_draft_is_measured() -> None:
    assert measure(tiny_target(), None, context=4, repeat=1, sizes=(1,)).draft_ms == {}


def test_a_context_past_the_models_is_refused() -> None:
    with pytest.raises(ContextOverflowError):
        measure(tiny_target(), None, context=1024, repeat=1, sizes=(1, 2))


def test_an_untied_embedding_is_not_read_by_a_forward() -> None:
    tied, untied = tiny_target(tie_word_embeddings=True), tiny_target(tie_word_embeddings=False)
    assert weight_bytes(tied) == weight_bytes(untied)
    assert weight_bytes(untied) == 2 * (weight_bytes(tiny_target(precision="bfloat16")) or 0)


def test_the_command_prints_what_scripts_rely_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EAGLE_ASSIST_HOME", str(tmp_path / "home"))
    arguments = ["cost", "--json", "--context", "8", "--repeat", "1", "--precision", "float32"]
    arguments += ["--model", str(write_model(tmp_path / "tiny")), "--head", str(write_head(tmp_path / "head"))]
    document = json.loads(CliRunner().invoke(bench, arguments, catch_exceptions=False).stdout)
    wanted = {"verify_ms", "draft_ms", "weight_bytes", "bandwidth_gb_s", "machine", "model", "precision"}
    assert wanted <= document.keys()
    assert (document["model"], document["precision"]) == ("tiny", "float32")
    assert document["verify_ms"]["1"] > 0
    assert list((tmp_path / "home" / "cache" / "costs").glob("*.json"))
