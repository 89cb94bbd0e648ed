"""`eagle-assist bench learning` on a tiny model: what is kept, learned from and measured."""

import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from assistant.daemon.learned import segments
from models.decoder_config import DecoderConfig
from models.training.head import TrainableHead, head_config, head_shape, head_state
from tests.e2e.conftest import Run

FUNCTION = '''def scale_{0}(values, factor={0}):
    """Multiply every one of the values by {0}, and keep what was there."""
    result_{0} = list(values)
    for value in values:
        result_{0}.append(value * factor + {0})
    return sorted(result_{0}, key=lambda value: value - {0})


'''


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A folder of small Python files that differ."""
    folder = tmp_path / "repository"
    folder.mkdir()
    for number in range(8):
        names = "".join(f"name_{number}_{i} = 'text number {number * 100 + i}'\n" for i in range(8))
        (folder / f"module_{number}.py").write_text(names + FUNCTION.format(number))
    return folder


@pytest.fixture
def head(tiny_model: Path, tmp_path: Path) -> Path:
    """A head of the shape that is trained, whose vocabulary is every second token."""
    config = DecoderConfig.from_hf(json.loads((tiny_model / "config.json").read_text()))
    torch.manual_seed(0)
    fresh = TrainableHead(head_shape(config, 16))
    vocab = torch.arange(0, config.vocab_size, 2)
    folder = tmp_path / "head"
    folder.mkdir()
    save_file(head_state(fresh, vocab), folder / "model.safetensors")
    (folder / "config.json").write_text(json.dumps(head_config(fresh.config, "tiny", len(vocab))))
    return folder


@pytest.fixture
def learn(run: Run, repository: Path, tiny_model: Path, head: Path, tmp_path: Path) -> Run:
    """Learn from some of the files and measure in the others."""
    small = (
        "--share",
        "0.4",
        "--places",
        "3",
        "--measured",
        "1",
        "--window",
        "48",
        "--max-tokens",
        "8",
        "--steps",
        "2",
    )
    where = ("--model", str(tiny_model), "--head", str(head), "--precision", "float32", "--out", str(tmp_path / "o"))
    return lambda *options: run("bench", "learning", str(repository), *where, *small, *options)


def test_one_part_is_learned_from_and_the_other_measured(learn: Run, run: Run, tmp_path: Path) -> None:
    records = tmp_path / "records"
    measured = learn("--methods", "eagle2@4", "--save", "learning-tiny", "--records", str(records), "--json")
    assert measured.exit_code == 0, measured.stderr
    result = json.loads(measured.stdout)
    out = tmp_path / "o"
    kept = [json.loads(line) for path in segments(out / "learned") for line in path.read_text().splitlines()]
    assert 0 < result["learned"]["completions"] == len(kept) <= result["asked"]
    assert result["learned"]["written"] == sum(len(row["ids"]) - row["prompt_tokens"] for row in kept)
    assert result["files"]["learned"] + result["files"]["held-out"] == 8
    assert [(row["method"], row["head"]) for row in result["rows"]] == [("eagle2@4", "before"), ("eagle2@4", "after")]
    assert all(row["differences"] == row["ties_within_1e-4"] for row in result["rows"])
    before, after = (row["tokens_per_step"] for row in result["rows"])
    assert result["rows"][1]["gain"] == pytest.approx(after / before)
    assert (out / "run" / "head" / "config.json").is_file()

    measured_before = (out / "measured.jsonl").stat().st_mtime_ns
    again = learn("--methods", "eagle2@4", "--json")
    assert json.loads(again.stdout)["rows"] == result["rows"]
    assert (out / "measured.jsonl").stat().st_mtime_ns == measured_before
    other = learn("--methods", "eagle2@4", "--learning-rate", "0.1")
    assert other.exit_code == 2
    assert "other options" in other.stderr

    page = tmp_path / "page.md"
    assert run("bench", "report", "--records", str(records), "--page", str(page)).exit_code == 0
    assert "| eagle2@4 | after |" in page.read_text()


def test_a_method_without_a_head_learns_nothing(learn: Run) -> None:
    refused = learn("--methods", "ngram")
    assert refused.exit_code == 2
    assert "ngram" in refused.stderr
