"""Adaptive trees beside plain decoding at several temperatures, and what the report says of them."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from assistant.bench import policy_tables
from assistant.bench.records import read_records, save_record
from assistant.cli import main
from tests.support.tiny_folder import write_model


@pytest.fixture(scope="module")
def swept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a record that the command saved."""
    folder = tmp_path_factory.mktemp("sweep")
    model = write_model(folder / "tiny")
    tasks = folder / "tasks.jsonl"
    row = {"task_id": "x", "prompt": "def f(self):\n    ", "entry_point": "f", "canonical_solution": "", "test": ""}
    tasks.write_text(json.dumps(row) + "\n" + json.dumps({**row, "prompt": "import os\n"}) + "\n", encoding="utf-8")
    given = ["--data", str(tasks), "--temperatures", "0,1.5", "--max-tokens", "12", "--model", str(model)]
    given += ["--precision", "float32", "--save", "temperature", "--records", str(folder / "records"), "--json"]
    result = CliRunner().invoke(main, ["bench", "temperature", *given])
    assert result.exit_code == 0, result.output
    return folder / "records"


def test_a_row_a_temperature_compares_the_two(swept: Path) -> None:
    greedy, wild = read_records(swept)["temperature"].result["rows"]
    assert (greedy["temperature"], wild["temperature"]) == (0.0, 1.5)
    for row in (greedy, wild):
        assert row["tasks"] == 2
        assert row["speedup"] == pytest.approx(row["tokens_per_second"] / row["plain_per_second"], rel=0.5)
        assert row["tokens_per_step"] >= 1.0


def test_the_page_shows_the_sweep_and_draws_it(swept: Path, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    text, drawn = policy_tables.by_temperature(read_records(swept))
    assert "| 1.50 |" in text
    drawn["temperature.svg"](tmp_path / "temperature.svg")
    assert (tmp_path / "temperature.svg").read_text(encoding="utf-8").count("<svg") == 1
    assert policy_tables.by_temperature({})[1] == {}


@pytest.mark.parametrize("wrong", ["", "warm", "0,0", "-1", "9", "nan"])
def test_wrong_temperatures_are_one_sentence(tmp_path: Path, wrong: str) -> None:
    result = CliRunner().invoke(
        main, ["bench", "temperature", "--data", str(tmp_path / "no"), "--temperatures", wrong], standalone_mode=True
    )
    assert result.exit_code != 0
    assert "--temperatures" in f"{result.output}{result.exception}"


def test_the_page_shows_trees_by_kind_of_code(tmp_path: Path) -> None:
    spread = {"least": 1, "q1": 2.0, "median": 3, "q3": 4.0, "most": 5}
    figure = {"figure": "depth", "boilerplate": 6.5, "logic": 2.5, "chance": 0.0002}
    row = {**figure, "boilerplate_spread": spread, "logic_spread": spread}
    places = [{"label": "boilerplate"}, {"label": "logic"}, {"label": "logic"}]
    save_record(tmp_path, "positions", "a command", {"rows": [row], "places": places})
    text, _ = policy_tables.by_code(read_records(tmp_path))
    assert "1 places of boilerplate, 2 places of logic" in text
    assert "| depth | 6.50 (2.00 to 4.00) | 2.50 (2.00 to 4.00) | 0.0002 |" in text
