"""Rows of HumanEval and MBPP become tasks; a bad row is named by file and line."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from assistant.bench.tasks import read_tasks
from assistant.errors import DocumentError

ROW = {
    "task_id": "T/0",
    "prompt": "def one():\n",
    "canonical_solution": "    return 1\n",
    "test": "def check(f):\n    assert f() == 1\n",
    "entry_point": "one",
}
MBPP = {
    "task_id": 2,
    "prompt": "Write a function that doubles.",
    "code": "def double(n):\n    return 2 * n\n",
    "test_imports": ["import math"],
    "test_list": ["assert double(2) == 4", "assert double(0) == math.floor(0.5)"],
}


def write(path: Path, *rows: Any) -> Path:
    text = "".join(row if isinstance(row, str) else json.dumps(row) + "\n" for row in rows)
    path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())
    return path


def runs(source: str) -> bool:
    try:
        exec(source, {})  # noqa: S102
    except AssertionError:
        return False
    return True


def test_a_humaneval_task_is_judged_by_its_check(tmp_path: Path) -> None:
    (task,) = read_tasks(write(tmp_path / "t.jsonl", ROW))
    assert (task.name, task.prompt, task.suffix) == ("T/0", "def one():\n", "")
    assert runs(task.program(task.solution))
    assert not runs(task.program("    return 2\n"))


def test_a_suffix_stands_between_completion_and_check_and_needs_no_stop_strings(tmp_path: Path) -> None:
    row = ROW | {"prompt": "def one():\n    x = ", "suffix": "\n    return x\n", "canonical_solution": "1"}
    (task,) = read_tasks(write(tmp_path / "t.jsonl", row))
    assert runs(task.program("1"))
    assert not runs(task.program("3"))
    assert task.stops == ()


def test_an_mbpp_task_is_asked_as_a_docstring_with_its_first_test(tmp_path: Path) -> None:
    (task,) = read_tasks(write(tmp_path / "t.jsonl", MBPP))
    assert task.prompt == '"""\nWrite a function that doubles.\nassert double(2) == 4\n"""\n'
    assert runs(task.program(task.solution))
    assert not runs(task.program("def double(n):\n    return 4\n"))  # the second test counts too


def test_gzip_limit_and_blank_lines(tmp_path: Path) -> None:
    path = write(tmp_path / "t.jsonl.gz", ROW, "\n", ROW | {"task_id": "T/1"}, ROW)
    assert [task.name for task in read_tasks(path, 2)] == ["T/0", "T/1"]


@pytest.mark.parametrize(
    ("row", "says"),
    [
        ("{not json\n", "is not JSON"),
        ("[1]\n", "is not a JSON object"),
        ({key: ROW[key] for key in ROW if key != "test"}, "the field `test` is missing"),
        (ROW | {"prompt": 3}, "the field `prompt` is not text"),
        (ROW | {"suffix": 3}, "the field `suffix` is not text"),
        (MBPP | {"test_list": "assert"}, "the field `test_list` is not a list of texts"),
        (MBPP | {"test_list": []}, "the field `test_list` is empty"),
    ],
)
def test_a_bad_row_is_named_by_file_and_line(tmp_path: Path, row: Any, says: str) -> None:
    path = write(tmp_path / "t.jsonl", ROW, row)
    with pytest.raises(DocumentError) as caught:
        read_tasks(path)
    assert f"{path}, line 2" in str(caught.value)
    assert says in str(caught.value)
    assert "return 1" not in str(caught.value)


def test_files_that_hold_no_tasks(tmp_path: Path) -> None:
    damaged = tmp_path / "damaged.jsonl.gz"
    damaged.write_bytes(gzip.compress(b"x" * 1000)[:-12])
    binary = tmp_path / "binary.jsonl"
    binary.write_bytes(b"\xff\xfe\x00")
    empty = write(tmp_path / "empty.jsonl")
    for path in (tmp_path / "absent.jsonl", tmp_path, damaged, binary, empty):
        with pytest.raises(DocumentError, match=str(path)):
            read_tasks(path)
