"""`eagle-assist train` on a tiny model, from a folder of code to a head that drafts."""

import json
from pathlib import Path

import pytest

from tests.e2e.conftest import Run

FUNCTION = '''def scale_{0}(values, factor={0}):
    """Multiply every one of the values by {0}."""
    result = []
    for value in values:
        result.append(value * factor + {0})
    return result


'''


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A folder of small Python files that differ."""
    folder = tmp_path / "data"
    folder.mkdir()
    for number in range(12):
        names = "".join(f"name_{number}_{i} = 'text number {number * 100 + i}'\n" for i in range(12))
        (folder / f"module_{number}.py").write_text(names + FUNCTION.format(number))
    return folder


@pytest.fixture
def train(run: Run, tiny_model: Path, tmp_path: Path, data: Path) -> Run:
    """Train a very small head for the tiny model."""
    small = [
        "--samples",
        "22",
        "--write",
        "12",
        "--draft-vocab",
        "64",
        "--mlp",
        "16",
        "--steps",
        "6",
        "--batch-tokens",
        "600",
        "--unroll",
        "3",
        "--evaluate-every",
        "3",
    ]
    where = ("--model", str(tiny_model), "--precision", "float32", "--data", str(data), "--out", str(tmp_path / "run"))
    return lambda *options: run("train", *where, *small, *options)


def test_training_ends_with_a_head_that_the_engine_drafts_with(train: Run, complete: Run, source: Path) -> None:
    trained = train()
    assert trained.exit_code == 0, trained.stderr
    head = Path(trained.stdout.strip())
    assert {path.name for path in head.iterdir()} >= {"config.json", "model.safetensors", "README.md", "curve.json"}
    assert [row["step"] for row in json.loads((head / "curve.json").read_text())] == [0, 3, 6]
    drafted = complete(source, "--method", "eagle2", "--head", str(head), "--json")
    assert drafted.exit_code == 0, drafted.stderr


def test_a_finished_run_asked_again_makes_nothing_anew(train: Run, tmp_path: Path) -> None:
    assert train().exit_code == 0
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "run" / "features").rglob("*.safetensors")}
    again = train()
    assert again.exit_code == 0, again.stderr
    assert before == {path: path.stat().st_mtime_ns for path in (tmp_path / "run" / "features").rglob("*.safetensors")}
    assert " step " not in again.stderr


def test_a_folder_without_code_is_one_sentence(run: Run, tiny_model: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    result = run("train", "--model", str(tiny_model), "--data", str(tmp_path / "empty"), "--out", str(tmp_path / "run"))
    assert result.exit_code == 2
    assert "no source file" in result.stderr


def test_a_small_draft_model_is_distilled_and_drafts(train: Run, complete: Run, source: Path) -> None:
    trained = train("--layout", "draft", "--layers", "1")
    assert trained.exit_code == 0, trained.stderr
    folder = Path(trained.stdout.strip())
    rows = json.loads((folder / "curve.json").read_text())
    assert set(rows[-1]["tokens_per_step"]["all"]) == {"1", "2", "4", "8"}
    answers = [
        complete(source, "--method", method, *draft, "--json")
        for method, draft in (("plain", ()), ("sps", ("--draft", str(folder))))
    ]
    assert all(answer.exit_code == 0 for answer in answers), answers[1].stderr
    plain, drafted = (json.loads(answer.stdout) for answer in answers)
    assert plain["tokens"] == drafted["tokens"]


def test_a_draft_model_as_large_as_its_target_is_refused(train: Run) -> None:
    result = train("--layout", "draft", "--layers", "2")
    assert result.exit_code == 2
    assert "--layers" in result.stderr


def test_a_run_fits_itself_into_its_minutes_and_keeps_its_plan(train: Run, tmp_path: Path) -> None:
    trained = train("--minutes", "0.1")
    assert trained.exit_code == 0, trained.stderr
    plan = json.loads((tmp_path / "run" / "plan.json").read_text())
    assert plan["steps"] >= 8
    assert json.loads((tmp_path / "run" / "head" / "curve.json").read_text())[-1]["step"] == plan["steps"]


def test_features_stop_at_the_tokens_asked_for(train: Run, tmp_path: Path) -> None:
    assert train("--tokens", "1000", "--samples", "400").exit_code == 0
    shards = sorted((tmp_path / "run" / "features" / "train").glob("*.safetensors"))
    assert len(shards) == 1 or len(shards) < 400 / 48


def test_a_head_goes_on_from_what_the_daemon_kept(train: Run, run: Run, tiny_model: Path, tmp_path: Path) -> None:
    head = Path(train().stdout.strip())
    log = tmp_path / "learned"
    log.mkdir()
    rows = [{"model": tiny_model.name, "prompt_tokens": 20, "ids": [*range(40), n]} for n in range(30)]
    other = {"model": "another", "prompt_tokens": 1, "ids": [1, 2, 3]}
    (log / "00000001.jsonl").write_text("\n".join(json.dumps(row) for row in [*rows, other]) + '\n{"torn')
    more = ("--draft-vocab", "64", "--steps", "3", "--batch-tokens", "600", "--unroll", "2")
    where = ("--model", str(tiny_model), "--precision", "float32", "--out", str(tmp_path / "more"))
    result = run("train", *where, "--from-log", str(log), "--start", str(head), *more)
    assert result.exit_code == 0, result.stderr
    assert "30 completions" in result.stderr
    assert "2 lines" in result.stderr
    card = (tmp_path / "more" / "head" / "README.md").read_text()
    assert "| logged |" in card


def test_nothing_to_train_on_is_one_sentence(run: Run, tiny_model: Path, tmp_path: Path) -> None:
    result = run("train", "--model", str(tiny_model), "--out", str(tmp_path / "run"))
    assert result.exit_code == 2
    assert "--from-log" in result.stderr


def test_continuing_needs_a_head_to_go_on_from(run: Run, tiny_model: Path, data: Path, tmp_path: Path) -> None:
    where = ("--data", str(data), "--out", str(tmp_path / "run"))
    result = run("train", "--model", str(tiny_model), "--precision", "float32", "--continue", *where)
    assert result.exit_code == 2
    assert "--start" in result.stderr


@pytest.mark.parametrize("name", ["inputs", "written"])
def test_heads_that_differ_in_one_thing_are_compared(
    train: Run, run: Run, tiny_model: Path, tmp_path: Path, name: str
) -> None:
    assert train().exit_code == 0
    small = ("--steps", "4", "--batch-tokens", "600", "--draft-vocab", "64", "--mlp", "16", "--held-out", "4")
    where = ("--run", str(tmp_path / "run"), "--model", str(tiny_model), "--precision", "float32")
    save = ("--save", f"head-{name}", "--records", str(tmp_path / "records"), "--json")
    measured = run("bench", "head", name, *where, *small, *save)
    assert measured.exit_code == 0, measured.stderr
    rows = json.loads(measured.stdout)["rows"]
    assert len(rows) == 3
    assert all(row["steps"] == 4 for row in rows)
    assert all(set(row["tokens_per_step"]) == {"4", "8", "16", "60"} for row in rows)
    again = run("bench", "head", name, *where, *small, "--json")
    assert json.loads(again.stdout)["rows"] == rows
    assert "step" not in again.stderr
    page = tmp_path / "page.md"
    assert run("bench", "report", "--records", str(tmp_path / "records"), "--page", str(page)).exit_code == 0
    assert all(f"| {row['label']} |" in page.read_text() for row in rows)


def test_calibration_is_stored_beside_the_head_and_its_errors_are_shown_by_depth(
    train: Run, run: Run, tiny_model: Path, tmp_path: Path, data: Path
) -> None:
    head = Path(train().stdout.strip())
    model = ("--model", str(tiny_model), "--precision", "float32", "--json")
    result = run("calibrate", "--run", str(tmp_path / "run"), *model)
    assert result.exit_code == 0, result.stderr
    answer = json.loads(result.stdout)
    assert [row["depth"] for row in answer["rows"]] == [1, 2, 3, 4, 5, 6]
    assert 0 <= answer["error_calibrated"] <= 1
    assert (head / "calibration.png").is_file()
    warm = run("calibrate", "--data", str(data), "--samples", "22", "--head", str(head), "--temperature", "0.8", *model)
    assert warm.exit_code == 0, warm.stderr
    maps = json.loads((head / "calibration.json").read_text())["maps"]
    assert [(row["precision"], row["temperature"]) for row in maps] == [("float32", 0.0), ("float32", 0.8)]


def test_calibration_refuses_features_of_another_precision(
    train: Run, run: Run, tiny_model: Path, tmp_path: Path
) -> None:
    assert train().exit_code == 0
    result = run("calibrate", "--run", str(tmp_path / "run"), "--model", str(tiny_model), "--precision", "bfloat16")
    assert result.exit_code == 2
    assert "float32" in result.stderr


def test_calibration_needs_texts_and_says_so(run: Run, tiny_model: Path) -> None:
    result = run("calibrate", "--model", str(tiny_model))
    assert result.exit_code == 2
    assert "--data" in result.stderr
