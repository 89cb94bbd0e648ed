"""Quality: programs that pass, agreement with a reference, and the command's JSON."""

import json
from pathlib import Path

import pytest
import torch
from click.testing import CliRunner

from assistant.bench.agreement import WINDOW, agreement, read_windows, text_files
from assistant.bench.quality import Generator, pass_at_1
from assistant.bench.tasks import Task
from assistant.commands.bench import bench
from assistant.engine.kv_cache import KVCache
from assistant.errors import DocumentError, UsageError
from models.decoder import LeanDecoder
from tests.support.tiny import tiny_target
from tests.support.tiny_folder import write_model
from tests.support.tiny_tokenizer import tiny_tokenizer
from tests.unit.test_bench_tasks import ROW, write

WINDOWS = [list(range(5, 105)), [7, 8, 9]]


@pytest.fixture(scope="module")
def target() -> LeanDecoder:
    return tiny_target("qwen2", vocab_size=tiny_tokenizer().vocab_size)


def task(check: str) -> Task:
    return Task("T", "answer = 1  #", "", "", check, ("\n",))


def test_passing_programs_are_counted(target: LeanDecoder) -> None:
    tasks = [task("assert answer == 1"), task("assert answer == 2"), task("import sys; sys.exit(0)")]
    row = pass_at_1(target, tiny_tokenizer(), tasks, Generator(max_tokens=3))
    assert (row["tasks"], row["passed"], row["pass_at_1"]) == (3, 1, pytest.approx(1 / 3))
    assert row["passed_tasks"] == ["T"]
    assert row["outcomes"] == {"passed": 1, "failed": 2, "timeout": 0, "crashed": 0}
    assert row["precision"] == "float32"
    assert row["pass_at_1_interval"][0] < 1 / 3 < row["pass_at_1_interval"][1]


def test_a_model_agrees_with_itself(target: LeanDecoder) -> None:
    row = agreement(target, target, WINDOWS)
    assert (row["tokens"], row["windows"]) == (101, 2)
    assert row["top1_agreement"] == 1.0
    assert row["kl"] == pytest.approx(0.0, abs=1e-6)
    assert row["nll"] == row["nll_reference"]


def test_agreement_is_that_of_whole_windows_in_one_forward(target: LeanDecoder) -> None:
    other = tiny_target("qwen2", vocab_size=tiny_tokenizer().vocab_size, seed=3)
    row = agreement(other, target, WINDOWS[:1])
    ids = torch.tensor(WINDOWS[0])
    ours, theirs = (
        torch.log_softmax(model.forward(ids, torch.arange(100), KVCache.of(model.spec)).logits, -1)[:-1]
        for model in (other, target)
    )
    assert row["top1_agreement"] == pytest.approx(float((ours.argmax(-1) == theirs.argmax(-1)).float().mean()))
    assert row["top1_agreement"] < 1.0
    assert row["kl"] == pytest.approx(float((theirs.exp() * (theirs - ours)).sum(-1).mean()), rel=1e-4)
    assert row["nll"] == pytest.approx(float(-ours.gather(1, ids[1:, None]).mean()), rel=1e-4)


def test_windows_are_taken_in_turn_from_every_file(tmp_path: Path) -> None:
    long, short = tmp_path / "a.py", tmp_path / "b.py"
    long.write_text("x = 1\n" * 900)
    short.write_text("y = 2\n" * 10)
    windows = read_windows([long, short], tiny_tokenizer(), WINDOW + 100)
    assert len(windows[0]) == WINDOW
    assert sum(len(window) for window in windows) <= WINDOW + 100
    assert tiny_tokenizer().decode(windows[1]).startswith("y = 2")


def test_texts_that_cannot_be_scored_are_named(tmp_path: Path) -> None:
    binary, empty = tmp_path / "binary.py", tmp_path / "empty.py"
    binary.write_bytes(b"\xff\xfe")
    empty.touch()
    with pytest.raises(DocumentError, match=r"binary\.py"):
        read_windows([binary], tiny_tokenizer(), 10)
    with pytest.raises(DocumentError, match="no text"):
        read_windows([empty], tiny_tokenizer(), 10)


def test_folders_are_searched_and_the_standard_library_is_the_default(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    for name in ("b.py", "deep/a.py", "note.txt"):
        (tmp_path / name).touch()
    assert text_files([tmp_path]) == [tmp_path / "b.py", tmp_path / "deep" / "a.py"]
    assert all(path.is_file() for path in text_files([]))


def test_the_command_compares_precisions_with_the_last(tmp_path: Path) -> None:
    model, data = write_model(tmp_path / "tiny"), write(tmp_path / "tasks.jsonl", ROW)
    text = tmp_path / "text.py"
    text.write_text("def f(self):\n    return self\n" * 4)
    arguments = ["quality", "--data", str(data), "--precisions", "bfloat16,float32", "--max-tokens", "4", "--json"]
    arguments += ["--texts", str(text), "--model", str(model)]
    document = json.loads(CliRunner().invoke(bench, arguments, catch_exceptions=False).stdout)
    assert [row["precision"] for row in document["rows"]] == ["bfloat16", "float32"]
    assert all(0 <= row["pass_at_1"] <= 1 for row in document["rows"])
    (agreed,) = document["agreement"]
    assert (agreed["precision"], agreed["reference"]) == ("bfloat16", "float32")
    assert 0 <= agreed["top1_agreement"] <= 1


@pytest.mark.parametrize("precisions", ["int4", "", "float32,float32"])
def test_unknown_precisions_are_a_mistake(tmp_path: Path, precisions: str) -> None:
    data = write(tmp_path / "tasks.jsonl", ROW)
    with pytest.raises(UsageError, match="--precisions"):
        CliRunner().invoke(bench, ["quality", "--data", str(data), "--precisions", precisions], catch_exceptions=False)
