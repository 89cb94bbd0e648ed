"""Saved measurements, and the page and plots that come from them."""

import json
import math
import sys
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from assistant.bench import report
from assistant.bench.plots import chain_rows
from assistant.bench.records import Record, command_line, read_records, save_record
from assistant.bench.stats import spread
from assistant.commands.bench import bench
from assistant.errors import DocumentError, UsageError


def decode_row(method: str, **changes: Any) -> dict[str, Any]:
    lies = spread([1.0, 2.0, 3.0]).to_json()
    row: dict[str, Any] = {
        "method": method,
        "family": method.partition("@")[0],
        "tasks": 3,
        "tokens": 384,
        "tokens_per_second": 21.5,
        "tokens_per_step": 2.25,
        "speedup": 1.75,
        "identical": 3,
        "differences": 0,
        "ties_within_1e-4": 0,
        "margins": [],
        "acceptance_by_depth": [0.62, 0.5],
        "draft_acceptance": 0.57,
        "ms_per_step": 104.0,
        "total_speedup": 1.5,
        "draft_ms_per_step": 20.0,
        "verify_ms_per_step": 80.0,
        "speedup_by_task": lies,
        "tokens_per_second_by_task": lies,
        "tokens_per_step_by_task": lies,
        "ms_per_step_by_task": lies,
    }
    return row | changes


def decode_result(*rows: dict[str, Any]) -> dict[str, Any]:
    return {"rows": list(rows), "model": "tiny", "precision": "int8", "tasks": 3, "max_tokens": 128}


def cost_result() -> dict[str, Any]:
    return {
        "precision": "int8",
        "width": 8,
        "verify_ms": {"1": 70.0, "8": 110.0},
        "draft_ms": {"1": 5.0, "2": 9.0},
        "spread_ms": {"verify 1": [69.0, 71.0], "verify 8": [108.0, 115.0]},
        "bandwidth_gb_s": 7.5,
    }


def quality_result() -> dict[str, Any]:
    lies = spread([0.9, 1.0]).to_json()
    shared = {"tasks": 10, "pass_at_1_interval": [0.2, 0.8], "method": "plain"}
    agreed = {"precision": "int8", "reference": "float32", "tokens": 99, "top1_agreement": 0.971, "kl": 0.0123}
    agreed |= {"nll": 1.98, "nll_reference": 1.96, "top1_agreement_by_window": lies, "kl_by_window": lies}
    rows = [shared | {"precision": name, "passed": 5, "pass_at_1": 0.5} for name in ("int8", "float32")]
    return {"rows": rows, "agreement": [agreed]}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    chains = [decode_row(f"eagle2@{k}", nodes=k, width=1, tokens_per_step=1.0 + k / 10) for k in (3, 1, 2)]
    trees = [decode_row(f"{family}@{n}", nodes=n, width=8) for family in ("eagle2", "hybrid") for n in (8, 16)]
    records = tmp_path / "docs" / "benchmarks"
    save_record(records, "trees-int8", "eagle-assist bench decode", decode_result(decode_row("plain"), *trees))
    save_record(records, "chains-int8", "eagle-assist bench decode", decode_result(decode_row("plain"), *chains))
    save_record(records, "cost-int8", "eagle-assist bench cost", cost_result())
    save_record(records, "quality-humaneval", "eagle-assist bench quality", quality_result())
    return records


def test_a_record_reads_back_with_its_machine(tmp_path: Path) -> None:
    path = save_record(tmp_path, "one", "eagle-assist bench cost", {"answer": 42})
    record = read_records(tmp_path)["one"]
    assert path == tmp_path / "one.json"
    assert isinstance(record, Record)
    assert record.result == {"answer": 42}
    assert record.command == "eagle-assist bench cost"
    assert {"cpu", "threads", "memory_gb", "torch", "python"} <= record.machine.keys()


@pytest.mark.parametrize("name", ["", "../up", "a/b", ".hidden", "with space"])
def test_only_plain_names_are_saved(tmp_path: Path, name: str) -> None:
    with pytest.raises(UsageError, match="--save"):
        save_record(tmp_path, name, "", {})


@pytest.mark.parametrize("text", ["{", "[]", "{}", '{"command": ""}'])
def test_a_file_that_is_no_record_is_named(tmp_path: Path, text: str) -> None:
    (tmp_path / "bad.json").write_text(text)
    with pytest.raises(DocumentError, match=r"bad\.json"):
        read_records(tmp_path)


def test_no_folder_holds_no_records(tmp_path: Path) -> None:
    assert read_records(tmp_path / "absent") == {}


def test_a_command_names_files_without_their_folders(tmp_path: Path) -> None:
    data = tmp_path / "tasks.jsonl"
    data.touch()
    given = ["bench", "decode", "--data", str(data), f"--head={data}", "--methods", "plain,eagle2:nodes=8", "a/b"]
    given += ["--out", str(tmp_path / "made-later")]
    wanted = "eagle-assist bench decode --data tasks.jsonl --head=tasks.jsonl --methods plain,eagle2:nodes=8 a/b"
    wanted += " --out made-later"
    assert command_line(given) == wanted


def test_the_page_holds_the_records_figures_and_names_what_is_missing(folder: Path) -> None:
    text, _ = report.page_text(read_records(folder))
    assert "| eagle2@16 | 2.25 (1.50 to 2.50) | 62 50 |" in text
    assert "1.75" not in text, "a speed-up is the median over the tasks, not the ratio of sums"
    assert "2.00 (1.50 to 2.50)" in text
    assert "0.971 (0.925 to 0.975)" in text
    assert "| int8 | 70 | 110 | 7.5 |" in text
    assert "Not measured yet: `speed-float32`" in text
    assert "Not measured yet: `trees-int8`" not in text


def test_plots_are_written_and_linked(folder: Path) -> None:
    pytest.importorskip("matplotlib")
    page = folder.parent / "benchmarks.md"
    written = report.write_report(read_records(folder), page, folder)
    pictures = {path.name for path in written if path.suffix == ".svg"}
    assert pictures == {"speedup.svg", "tokens_per_step.svg", "ms_per_step.svg", "chains.svg", "cost.svg"}
    for name in pictures:
        assert f"](benchmarks/{name})" in page.read_text()
        assert ET.parse(folder / name).getroot().tag.endswith("svg")  # noqa: S314 - our own file


def test_the_same_records_give_the_same_files(folder: Path) -> None:
    pytest.importorskip("matplotlib")
    page = folder.parent / "benchmarks.md"

    def files() -> dict[str, bytes]:
        return {path.name: path.read_bytes() for path in report.write_report(read_records(folder), page, folder)}

    assert files() == files()


def test_a_record_without_trees_of_several_sizes_draws_no_lines(tmp_path: Path) -> None:
    save_record(tmp_path, "trees-int8", "", decode_result(decode_row("plain"), decode_row("eagle2", nodes=16, width=8)))
    _, drawn = report.page_text(read_records(tmp_path))
    assert drawn.keys() == {"speedup.svg"}


def test_plots_without_matplotlib_are_one_sentence(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(UsageError, match=r"eagle-assist\[bench\]"):
        report.write_report(read_records(folder), folder.parent / "benchmarks.md", folder)


def test_a_page_without_records_says_so(tmp_path: Path) -> None:
    page = tmp_path / "benchmarks.md"
    assert report.write_report({}, page, tmp_path / "benchmarks") == [page]
    assert "Nothing is measured yet" in page.read_text()


def test_chains_are_ordered_and_expected_from_both_acceptances() -> None:
    rows = [
        decode_row("plain"),
        decode_row("eagle2@2", nodes=2, width=1, draft_acceptance=0.5, acceptance_by_depth=[0.6, 0.4]),
        decode_row("eagle2@1", nodes=1, width=1, draft_acceptance=0.6, acceptance_by_depth=[0.6]),
        decode_row("eagle2@8", nodes=8, width=8),
    ]
    first, second = chain_rows(rows)
    assert (first["drafts"], second["drafts"]) == (1, 2)
    assert math.isclose(second["expected"], 1.75)
    assert math.isclose(second["expected_first"], 1.96)


def test_the_command_writes_the_page(folder: Path) -> None:
    pytest.importorskip("matplotlib")
    page = folder.parent / "page.md"
    result = CliRunner().invoke(
        bench, ["report", "--records", str(folder), "--page", str(page)], catch_exceptions=False
    )
    assert str(page) in result.stdout
    assert page.read_text().startswith("# Benchmarks")
    assert json.loads((folder / "cost-int8.json").read_text())["result"] == cost_result()
