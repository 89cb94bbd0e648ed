"""Editing a project's file: what is set is set, and everything else stays as somebody wrote it."""

import errno
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assistant.config import Rank
from assistant.config.editing import edited, save, with_values
from assistant.config.files import PROJECT_NAME, text_layer
from assistant.config.keys import dotted, split
from assistant.config.overrides import Value
from assistant.errors import ConfigError, StorageError
from tests.support.settings import Assigned, assignments, toml_of

FILE = """\
# What we agreed on.

[model]
method = "ngram"  # until there is a head
name = 'smollm2-135m'

# Long lines here.
[completion]
max_tokens = 0x40

[files."tests/**"]
nodes = 16
"""


def entries(text: str) -> dict[tuple[str, ...], Any]:
    layer = text_layer(Path("/p") / PROJECT_NAME, text, Rank.PROJECT)
    return {path: entry.value for path, entry in layer.entries.items()}


def project(tmp_path: Path, text: str | bytes = FILE) -> Path:
    path = tmp_path / PROJECT_NAME
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def test_comments_order_and_spellings_stay(tmp_path: Path) -> None:
    text = edited(project(tmp_path), {"model.method": "auto", "completion.max_tokens": 64, "completion.seed": 7})
    expected = FILE.replace('"ngram"  #', '"auto"  #').replace("0x40\n", "0x40\nseed = 7\n")
    assert text == expected


def test_a_new_key_stands_with_its_table_and_before_the_next_ones_comment(tmp_path: Path) -> None:
    text = edited(project(tmp_path), {"model.head": "own"})
    assert text == FILE.replace("'smollm2-135m'\n", "'smollm2-135m'\nhead = \"own\"\n")


def test_a_file_that_is_not_there_holds_what_is_set(tmp_path: Path) -> None:
    text = edited(tmp_path / PROJECT_NAME, {"model.method": "auto", "tree.nodes": 8, "tree.threshold": 0.25})
    assert text == '[model]\nmethod = "auto"\n\n[tree]\nnodes = 8\nthreshold = 0.25\n'


@pytest.mark.parametrize(
    "before",
    [
        *("", "version = 1", "[model]\r\nname = 'a'\r\n", "[tree]\n# nothing yet\n"),
        *("model.name = 'a'\n\n[tree]\nnodes = 4\n", "model = { name = 'a' } # inline\n"),
        *("tree.nodes = 4\nmodel.name = 'a'\ntree.depth = 3\n", "[model]\n[languages.go]\nnodes=2"),
    ],
)
def test_every_way_of_writing_tables_can_be_edited(before: str) -> None:
    values: dict[str, Value] = {"model.method": "eagle2", "tree.nodes": 16, "tree.width": 4}
    text = with_values(before, values)
    assert entries(text) == entries(before) | {split(key): value for key, value in values.items()}
    assert all(remark in text for remark in ("# inline", "# nothing yet") if remark in before)


@given(before=assignments(project=True), new=assignments(project=True), blank=st.sampled_from(["", "\n", "\n# end\n"]))
def test_any_keys_can_be_set_in_any_file(before: Assigned, new: Assigned, blank: str) -> None:
    text = with_values(toml_of(before) + blank, {dotted(path): value for path, value in new.items()})
    assert entries(text) == before | new


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("model.precision", "int8", "may not set model.precision"),
        ("model.head", "../head", "a registry's name alone"),
        ("tree.nodes", 4000, "tree.nodes must be"),
        ("model.methd", "auto", "did you mean model.method"),
    ],
)
def test_what_may_not_stand_there_is_refused(tmp_path: Path, key: str, value: str | int, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        edited(project(tmp_path), {key: value})


@pytest.mark.parametrize("text", ["[model\n", "[model]\nmethd = 'auto'\n", b"\xff"])
def test_a_file_that_is_wrong_already_is_not_touched(tmp_path: Path, text: str | bytes) -> None:
    path = project(tmp_path, text)
    before = path.read_bytes()
    with pytest.raises(ConfigError):
        edited(path, {"model.method": "auto"})
    assert path.read_bytes() == before


def test_line_ends_and_the_mark_of_an_encoding_stay(tmp_path: Path) -> None:
    path = project(tmp_path, b"\xef\xbb\xbf" + FILE.replace("\n", "\r\n").encode())
    save(path, edited(path, {"model.method": "auto"}))
    assert path.read_bytes() == b"\xef\xbb\xbf" + FILE.replace('"ngram"', '"auto"').replace("\n", "\r\n").encode()


def test_a_folder_that_cannot_be_written_keeps_its_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Permission bits do not bind an administrator, so the operating system's answer is played."""
    path = project(tmp_path)

    def refuse(*_: Any) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    with monkeypatch.context() as patched:
        patched.setattr(Path, "replace", refuse)
        with pytest.raises(StorageError, match=r"make its folder writable"):
            save(path, "")
    assert [entry.name for entry in tmp_path.iterdir()] == [PROJECT_NAME]
    assert path.read_text() == FILE
