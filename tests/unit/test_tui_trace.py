"""Saved traces: what was kept comes back, and what is no trace is one sentence."""

from pathlib import Path

import msgspec
import pytest

from assistant.errors import StorageError
from tests.support.scripted import completion, observed, plain, status, step
from tui import files, trace
from tui.trace import Trace, TraceError


def test_a_trace_comes_back_as_it_was_saved(tmp_path: Path) -> None:
    saved = Trace((*completion(), *plain()), status())
    trace.save(tmp_path / "t.jsonl", saved)
    assert trace.load(tmp_path / "t.jsonl") == saved
    assert trace.load(tmp_path / "t.jsonl").events[1] == completion()[1]


def test_an_empty_trace_is_one(tmp_path: Path) -> None:
    trace.save(tmp_path / "t.jsonl", Trace(()))
    assert trace.load(tmp_path / "t.jsonl") == Trace(())


def broken(**changes: object) -> bytes:
    return msgspec.json.encode(observed(step(**changes)))  # type: ignore[arg-type]


HEAD = b'{"eagle-assist-trace": 1}\n'
EVENT = msgspec.json.encode(completion()[0])


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "t.jsonl:1 is not the head of a trace"),
        (b"hello\n", "t.jsonl:1 is not the head of a trace"),
        (b"[]\n", "t.jsonl:1 is not the head of a trace"),
        (b"\xff\xfe\n", "t.jsonl:1 is not the head of a trace"),
        (b'{"eagle-assist-trace": 2}\n', "t.jsonl:1 is a trace of version 2, not 1"),
        (HEAD + b"{}\n", "t.jsonl:2 is no event"),
        (HEAD + EVENT + b"\n" + EVENT[:-9] + b"\n", "t.jsonl:3 is no event"),
        (HEAD + b'{"type": "observed", "client": "\xff"}\n', "t.jsonl:2 is no event"),
        (HEAD + EVENT + b"\n\n", "t.jsonl:3 is no event"),
        (HEAD + broken(texts=("one",)), "t.jsonl:2 is no event"),
        (HEAD + EVENT.replace(b'"step"', b'"stepp"'), "t.jsonl:2 is no event"),
    ],
)
def test_a_file_that_is_no_trace_is_refused_with_its_line(tmp_path: Path, data: bytes, says: str) -> None:
    (tmp_path / "t.jsonl").write_bytes(data)
    with pytest.raises(TraceError) as error:
        trace.load(tmp_path / "t.jsonl")
    assert says in str(error.value)
    assert "\n" not in str(error.value)
    assert "return sum" not in str(error.value), "no code in messages"


@pytest.mark.parametrize("parents", [(-1, 5, 0, 0, 0, 0, 0, 0, 0), (-1, 0, 0, 3, 0, 0, 0, 0, 0), (-1, 0)])
def test_a_tree_that_is_none_is_refused(tmp_path: Path, parents: tuple[int, ...]) -> None:
    good = step().tree
    assert good is not None
    (tmp_path / "t.jsonl").write_bytes(HEAD + broken(tree=msgspec.structs.replace(good, parents=parents)))
    with pytest.raises(TraceError):
        trace.load(tmp_path / "t.jsonl")


def test_a_missing_file_and_a_folder_are_one_sentence(tmp_path: Path) -> None:
    for path in (tmp_path / "none.jsonl", tmp_path):
        with pytest.raises(TraceError, match="cannot be read"):
            trace.load(path)


def test_a_folder_that_cannot_be_written_to_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StorageError):
        files.save_trace(tmp_path / "file" / "t.jsonl", Trace(()))


def test_a_tree_is_exported_as_text_and_svg(tmp_path: Path) -> None:
    said = files.export_tree(tmp_path / "tree.svg", observed(step()))
    text = (tmp_path / "tree.txt").read_text(encoding="utf-8")
    assert "tree.svg" in said
    assert "tree.txt" in said
    assert text.startswith(
        "Step 1: 8 drafted, 3 accepted, 4 tokens; draft 8.0 ms, verify 42 ms\n"
        "8 nodes, 5 deep, 2 wide (bounds: 8, 6 and 8)"
    )
    assert "├─✓ return" in text
    assert "│ │ │ └─✗ values" in text
    assert "│ │ │   └─· )" in text
    assert (tmp_path / "tree.svg").read_text(encoding="utf-8").startswith("<svg")
