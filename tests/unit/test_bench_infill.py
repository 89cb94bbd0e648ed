"""Holes: how they are made, filled and judged."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from assistant.bench.digging import KINDS, Source, dig, dig_across
from assistant.bench.duplicates import repeats_what_follows
from assistant.bench.holes import Hole, read_holes
from assistant.bench.infill import Ledger, fill_all, rows_of
from assistant.bench.infill_tables import section
from assistant.bench.infillers import LINE, OFF, ON, Asked, Filled, LlamaInfiller, OwnInfiller, first_line
from assistant.bench.records import read_records
from assistant.bench.similarity import similarity
from assistant.bench.surroundings import surroundings_within
from assistant.commands import bench_infill
from assistant.commands.bench import bench
from assistant.engine.draft import NoDraft
from assistant.errors import DocumentError, UsageError
from models.loading import LoadedModel
from models.registry import ModelSource
from tests.support.rooms import models
from tests.support.tiny_tokenizer import tiny_tokenizer

MODULE = '''"""Shapes and what they are good for in a drawing."""

import math
import os

from p.util import check_radius, compute

SIZE = 3


class Circle:
    """A circle with a radius that never changes at all."""

    def __init__(self, radius):
        self.radius = check_radius(radius, SIZE)

    def area(self):
        # Returns the area of the circle in square units.
        value = math.pi * self.radius**2 + compute(self.radius)
        return round(value, self.digits)
'''
OTHER = "def check_radius(value, most):\n    return min(value, most)\n\n\ndef compute(x):\n    return x\n"


def hole(name: str = "h", **changes: str) -> Hole:
    return replace(Hole(name, "a.py", "python", "k", "x = ", "\ny = 2\n", "1"), **changes)  # type: ignore[arg-type]


class Answering:
    """Fills holes with what it was given."""

    method = "fake"

    def __init__(self, texts: dict[str, str], policies: Sequence[str] = (ON,)) -> None:
        self.texts = texts
        self.policies = policies
        self.asked: list[str] = []

    def fill(self, hole: Hole) -> dict[str, Filled]:
        self.asked.append(hole.name)
        return {policy: Filled(self.texts[hole.name], 10.0, "line") for policy in self.policies}


class TestJudging:
    def test_figures_are_over_all_holes(self) -> None:
        holes = [hole("a"), hole("b", answer="15"), hole("c")]
        infiller = Answering({"a": "1", "b": "12", "c": "1\ny = 2"})
        ledger = Ledger(None)
        assert fill_all([infiller], holes, ledger)
        (row,) = rows_of([infiller], holes, ledger.answers)
        assert (row["tasks"], row["duplicates"], row["nothing"], row["pass_at_1"]) == (3, 1, 0, None)
        assert row["exact_match"] == pytest.approx(1 / 3)
        assert row["edit_similarity"] == pytest.approx((1 + 0.5 + 1 / 7) / 3)
        assert (row["p50_ms"], row["p95_ms"], row["reasons"]) == (10.0, 10.0, {"line": 3})

    def test_programs_are_run(self) -> None:
        task = Hole("t", "", "python", "", "def f():\n    return ", "\n", "1", "assert f() == 1")
        infiller = Answering({"t": "1"})
        ledger = Ledger(None)
        fill_all([infiller], [task], ledger)
        assert rows_of([infiller], [task], ledger.answers)[0]["pass_at_1"] == 1.0

    def test_rows_compare_the_same_holes(self) -> None:
        one, other = Answering({"a": "1", "b": "1"}), Answering({"a": "2"}, ["off"])
        ledger = Ledger(None)
        fill_all([one], [hole("a"), hole("b")], ledger)
        fill_all([other], [hole("a")], ledger)
        assert [row["tasks"] for row in rows_of([one, other], [hole("a"), hole("b")], ledger.answers)] == [1, 1]

    def test_groups_are_languages_and_kinds(self) -> None:
        holes = [hole("a", kind="new-line"), hole("b", language="go", kind="import")]
        infiller = Answering({"a": "1", "b": "2"})
        ledger = Ledger(None)
        fill_all([infiller], holes, ledger)
        groups = rows_of([infiller], holes, ledger.answers, by_group=True)
        assert [(row.get("language"), row.get("kind"), row["exact_match"]) for row in groups] == [
            ("go", None, 0.0),
            ("python", None, 1.0),
            (None, "import", 0.0),
            (None, "new-line", 1.0),
        ]


class TestLedger:
    def test_a_measurement_that_was_cut_goes_on(self, tmp_path: Path) -> None:
        path = tmp_path / "answers.jsonl"
        holes = [hole("a"), hole("b")]
        first = Answering({"a": "1", "b": "2"})
        assert not fill_all([first], holes, Ledger(path), seconds=-1)
        assert first.asked == []
        fill_all([first], holes[:1], Ledger(path))
        second = Answering({"a": "9", "b": "2"})
        ledger = Ledger(path)
        assert fill_all([second], holes, ledger)
        assert second.asked == ["b"]
        assert ledger.answers["fake", ON] == {"a": Filled("1", 10.0, "line"), "b": Filled("2", 10.0, "line")}

    def test_a_file_of_something_else_is_refused(self, tmp_path: Path) -> None:
        (tmp_path / "x").write_text("no answers")
        with pytest.raises(DocumentError, match="holds no answers"):
            Ledger(tmp_path / "x")


@pytest.mark.parametrize(
    ("prefix", "text", "suffix", "expected"),
    [
        ("x = ", "1", "\ny = 2\n", False),
        ("x = ", "1\ny = 2", "\ny = 2\n", True),
        ("x = ", "1\ny=2\n", "\ny = 2\n", True),
        ("f(", "a)", ")\n", True),
        ("f(", "g(a)", ")\n", False),
        ("f(", "a, b)", ", b)\n", True),
        ("a\n", "    b\n", "    b\n    c\n", True),
        ("a\n", "    d\n", "    b\n    c\n", False),
        ("a\n", "", "b\n", False),
        ("{\n", "x();\n}", "\n}\n", False),
    ],
)
def test_what_counts_as_written_twice(prefix: str, text: str, suffix: str, *, expected: bool) -> None:
    assert repeats_what_follows(prefix, text, suffix) is expected


@pytest.mark.parametrize(
    ("one", "other", "like"), [("", "", 1.0), ("abc", "abc", 1.0), ("abc", "", 0.0), ("kitten", "sitting", 4 / 7)]
)
def test_similarity_is_levenshteins(one: str, other: str, like: float) -> None:
    assert similarity(one, other) == pytest.approx(like)
    assert similarity(other, one) == pytest.approx(like)


class TestDigging:
    SOURCES = (Source("p", "p/shapes.py", MODULE), Source("p", "p/util.py", OTHER))

    def test_every_kind_of_hole_is_made(self) -> None:
        holes = dig(self.SOURCES, 2)
        assert {one.kind for one in holes} == set(KINDS)
        for one in holes:
            assert one.prefix + one.answer + one.suffix in {MODULE, OTHER}
            assert one.answer.strip()
        assert all(one.suffix.startswith(")") for one in holes if one.kind == "in-brackets")
        assert all(one.suffix.startswith("\n") for one in holes if one.kind in {"new-line", "import", "rest-of-line"})
        assert all(not one.suffix.startswith("\n") for one in holes if one.kind == "mid-line")

    def test_the_same_seed_makes_the_same_holes(self) -> None:
        assert dig(self.SOURCES, 3, seed=1) == dig(self.SOURCES, 3, seed=1)

    def test_across_files_the_answer_names_what_another_file_defines(self) -> None:
        holes = dig_across(self.SOURCES, 10)
        assert {one.path for one in holes} == {"p/shapes.py"}
        assert all(one.answer.startswith(("check_radius", "compute")) for one in holes)
        assert all(one.files == (("p/util.py", OTHER),) for one in holes)

    def test_surroundings_are_found_within_the_package(self) -> None:
        (one, *_) = dig_across(self.SOURCES, 10)
        find = surroundings_within(100, tiny_tokenizer())
        assert find is not None
        used = Hole(one.name, one.path, one.language, one.kind, MODULE, "\n", one.answer, None, one.files)
        found = find(used)
        assert found is not None
        assert found.files[0][0] == "p/util.py"
        assert "def check_radius(value, most):" in found.files[0][1]
        assert surroundings_within(0, tiny_tokenizer()) is None


class TestReading:
    def test_holes_and_infilling_tasks_are_told_apart(self, tmp_path: Path) -> None:
        row = {
            "name": "n",
            "path": "a.go",
            "language": "go",
            "kind": "import",
            "prefix": "p",
            "suffix": "s",
            "answer": "a",
        }
        (tmp_path / "holes.jsonl").write_text(
            json.dumps(row) + "\n" + json.dumps({**row, "files": [["b.go", "t"]]}) + "\n"
        )
        first, second = read_holes(tmp_path / "holes.jsonl")
        assert (first.language, first.check, second.files) == ("go", None, (("b.go", "t"),))
        task = {
            "task_id": "T",
            "prompt": "a\n",
            "suffix": "b\n",
            "canonical_solution": "c\n",
            "test": "t",
            "entry_point": "e",
        }
        (tmp_path / "tasks.jsonl").write_text(json.dumps(task))
        (read,) = read_holes(tmp_path / "tasks.jsonl")
        assert read.program("X\n") == "a\nX\nb\n\nt\ncheck(e)\n"

    def test_a_broken_row_is_named(self, tmp_path: Path) -> None:
        (tmp_path / "holes.jsonl").write_text('{"answer": "a"}\n')
        with pytest.raises(DocumentError, match="line 1 is no hole"):
            read_holes(tmp_path / "holes.jsonl")


class TestInfillers:
    def loaded(self) -> LoadedModel:
        target, _ = models()
        return LoadedModel(target, tiny_tokenizer(), ModelSource("tiny", "gguf", Path("tiny.gguf"), "0" * 64))

    def test_this_program_answers_with_the_policy_and_without(self) -> None:
        own = OwnInfiller("plain", self.loaded(), NoDraft, 12, Asked())
        filled = own.fill(hole(prefix="def f():\n    return self\n\n\nself", suffix="\n"))
        assert set(filled) == {ON, OFF}
        assert filled[ON].reason
        assert filled[ON].text in {"", *(filled[OFF].text[:size] for size in range(len(filled[OFF].text) + 1))}

    def test_llama_cpp_answers_whole_and_cut_behind_its_first_line(self) -> None:
        from assistant.bench.contenders import Run
        from assistant.engine.types import Prompt

        class Peer:
            label = "llama.cpp"

            def run(self, prompt: Prompt, max_tokens: int) -> Run:
                assert prompt.ids
                assert max_tokens == 9
                return Run(tuple(tiny_tokenizer().encode("\n  return self\nprint()\n")), True, 0.1, 0.2)

        filled = LlamaInfiller(Peer(), self.loaded(), 9).fill(hole())
        assert filled[OFF].text == "\n  return self\nprint()\n"
        assert filled[LINE].text == "\n  return self\n"
        assert 100 < filled[LINE].ms < 300

    @pytest.mark.parametrize(("text", "line"), [("a\nb", "a\n"), ("\n\n a\nb", "\n\n a\n"), ("a", "a"), ("\n", "\n")])
    def test_the_first_line_that_is_not_blank(self, text: str, line: str) -> None:
        assert first_line(text) == line


class TestCommand:
    @pytest.fixture(autouse=True)
    def _tiny(self, monkeypatch: pytest.MonkeyPatch) -> None:
        target, _ = models()
        loaded = LoadedModel(target, tiny_tokenizer(), ModelSource("tiny", "gguf", Path("tiny.gguf"), "0" * 64))
        monkeypatch.setattr(bench_infill, "load_model", lambda *_, **__: loaded)

    def data(self, folder: Path) -> str:
        rows = [
            {
                "name": f"n{k}",
                "path": "a.py",
                "language": "python",
                "kind": "new-line",
                "prefix": "x\n",
                "suffix": "\ny\n",
            }
            | {"answer": "z", "files": [["b.py", "def z(): ...\n"]]}
            for k in range(3)
        ]
        (folder / "holes.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        return str(folder / "holes.jsonl")

    def test_it_prints_one_document(self, tmp_path: Path) -> None:
        asked = ["infill", "--data", self.data(tmp_path), "--limit", "2", "--max-tokens", "4", "--json"]
        result = CliRunner().invoke(bench, asked)
        assert result.exit_code == 0
        document = json.loads(result.stdout)
        assert [(row["method"], row["policy"], row["tasks"]) for row in document["rows"]] == [
            ("adaptive", "on", 2),
            ("adaptive", "off", 2),
        ]
        keys = {"pass_at_1", "exact_match", "edit_similarity", "duplicates", "p50_ms", "p95_ms"}
        assert all(keys <= row.keys() for row in document["rows"])
        assert {row["language"] for row in document["groups"] if "language" in row} == {"python"}

    def test_answers_are_kept_and_the_record_is_shown_on_the_page(self, tmp_path: Path) -> None:
        asked = ["infill", "--data", self.data(tmp_path), "--policy", "on", "--max-tokens", "4", "--context", "64"]
        kept = ["--answers", str(tmp_path / "answers"), "--save", "infill-languages", "--records", str(tmp_path)]
        result = CliRunner().invoke(bench, [*asked, *kept])
        assert result.exit_code == 0
        assert "context 64" in result.stdout
        assert len((tmp_path / "answers").read_text().splitlines()) == 3
        text, _ = section(read_records(tmp_path))
        assert "| adaptive, context 64 | on | – |" in text
        assert "Not measured yet: `infill-single-line`" in text

    def test_a_peer_that_nobody_knows_is_refused(self, tmp_path: Path) -> None:
        result = CliRunner().invoke(bench, ["infill", "--data", self.data(tmp_path), "--peers", "gpt"])
        assert isinstance(result.exception, UsageError)
