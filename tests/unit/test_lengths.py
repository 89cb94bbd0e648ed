"""Decoding behind longer and longer texts: what is compared, and what the report says of it."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from assistant.bench import policy_tables
from assistant.bench.lengths import prompts_at
from assistant.bench.records import read_records
from assistant.cli import main
from assistant.errors import UsageError
from tests.support.tiny_folder import write_model
from tests.support.tiny_tokenizer import tiny_tokenizer

TEXT = "".join(f"def f{n}(self):\n    return self.g{n}()\n\n" for n in range(40))


def test_prompts_of_all_lengths_end_at_the_same_places() -> None:
    prompts = prompts_at([TEXT, TEXT], [8, 32], 3, tiny_tokenizer())
    short, long = prompts[:3], prompts[3:]
    assert [len(prompt.ids) for prompt in prompts] == [8] * 3 + [32] * 3
    assert len({prompt.ids for prompt in long}) == 3
    for few, many in zip(short, long, strict=True):
        assert many.ids[-8:] == few.ids


def test_files_that_are_too_short_are_refused() -> None:
    with pytest.raises(UsageError, match="name more"):
        prompts_at(["x = 1\n"], [8, 512], 1, tiny_tokenizer())


def test_the_command_measures_and_the_page_shows_it(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    model, source = write_model(tmp_path / "tiny"), tmp_path / "source.py"
    source.write_text(TEXT, encoding="utf-8")
    given = ["--data", str(source), "--lengths", "48,16", "--places", "2", "--max-tokens", "8", "--model", str(model)]
    given += ["--precision", "float32", "--save", "growth", "--records", str(tmp_path / "records"), "--json"]
    result = CliRunner().invoke(main, ["bench", "growth", *given])
    assert result.exit_code == 0, result.output
    records = read_records(tmp_path / "records")
    first, second = records["growth"].result["rows"]
    assert (first["length"], second["length"], first["growth"]) == (16, 48, 1.0)
    assert first["places"] == first["identical"] == second["identical"] == 2
    text, drawn = policy_tables.by_length(records)
    assert "| 48 |" in text
    drawn["growth.svg"](tmp_path / "growth.svg")
    assert (tmp_path / "growth.svg").read_text(encoding="utf-8").count("<svg") == 1


@pytest.mark.parametrize("wrong", ["", "8,8", "0", "-4", "many", "8,", "999999"])
def test_wrong_lengths_are_one_sentence(tmp_path: Path, wrong: str) -> None:
    model, source = write_model(tmp_path / "tiny"), tmp_path / "source.py"
    source.write_text(TEXT, encoding="utf-8")
    given = ["--data", str(source), "--lengths", wrong, "--model", str(model), "--precision", "float32"]
    result = CliRunner().invoke(main, ["bench", "growth", *given])
    assert result.exit_code != 0
    assert "--lengths" in f"{result.output}{result.exception}"
