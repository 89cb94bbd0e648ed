"""Comparing methods: interleaving, the rows' figures, and that a method which changes a token is caught."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import torch
from click.testing import CliRunner

from assistant.bench.contenders import Contender, EngineContender, Run, prompts_of
from assistant.bench.decode import compare, method_rows
from assistant.bench.exactness import TIE, Difference, first_difference
from assistant.bench.rows import draft_acceptance, method_row
from assistant.bench.specs import MethodSpec, parse_methods
from assistant.bench.tasks import Task, read_tasks
from assistant.cli import main
from assistant.commands.bench import bench
from assistant.engine.tree import TreeShape, chain
from assistant.engine.types import Origin, Prompt, StepResult
from models.decoder import LeanDecoder
from tests.support.tiny import tiny_head, tiny_target
from tests.support.tiny_folder import write_head, write_model
from tests.support.tiny_tokenizer import tiny_tokenizer
from tests.unit.test_bench_tasks import ROW, write

NO_STOPS: frozenset[int] = frozenset()
FIELDS = {
    "method",
    "tasks",
    "tokens",
    "tokens_per_second",
    "tokens_per_step",
    "speedup",
    "identical",
    "acceptance_by_depth",
    "ms_per_step",
}


@pytest.fixture(scope="module")
def target() -> LeanDecoder:
    return tiny_target("qwen2", vocab_size=tiny_tokenizer().vocab_size)


@pytest.fixture(scope="module")
def prompts() -> list[Prompt]:
    texts = ("def f(x):\n    return ", "import os\nprint(self)\nprint(self)\n", "class A:\n    def")
    return [Prompt(tuple(tiny_tokenizer().encode(text))) for text in texts]


@dataclass
class Scripted:
    """A contender that says what it was told to, and notes when it was asked."""

    label: str
    tokens: tuple[int, ...] = (1, 2, 3)
    rest_seconds: float = 0.2
    asked: list[tuple[str, int]] = field(default_factory=list)

    def run(self, prompt: Prompt, max_tokens: int) -> Run:
        self.asked.append((self.label, prompt.ids[0]))
        return Run(self.tokens[:max_tokens], False, 0.1, self.rest_seconds, forwards=len(self.tokens) - 1)


class Lossy:
    """Plain decoding with one token changed: what a broken method looks like."""

    def __init__(self, inner: Contender, position: int) -> None:
        self.label = "lossy"
        self._inner = inner
        self._position = position

    def run(self, prompt: Prompt, max_tokens: int) -> Run:
        run = self._inner.run(prompt, max_tokens)
        tokens = list(run.tokens)
        if len(tokens) > self._position:
            tokens[self._position] = (tokens[self._position] + 1) % tiny_tokenizer().vocab_size
        return Run(tuple(tokens), run.stopped, run.first_seconds, run.rest_seconds, run.forwards)


def specs(text: str) -> tuple[MethodSpec, ...]:
    return parse_methods(text, TreeShape(nodes=8, depth=4, width=3))


def contenders(target: LeanDecoder, text: str) -> list[Contender]:
    head = tiny_head(target)
    return [EngineContender(spec, target, tiny_tokenizer(), head=head) for spec in specs(text)]


def test_every_task_meets_every_method_in_an_order_that_rotates() -> None:
    log: list[tuple[str, int]] = []
    field_of = [Scripted(label, asked=log) for label in "abc"]
    compare(field_of, [Prompt((10,)), Prompt((20,))], 3, repeat=2)
    assert log[:3] == [("a", 10), ("b", 10), ("c", 10)]  # the warm-up
    assert log[3:] == [
        *(("a", 10), ("b", 10), ("c", 10)),
        *(("b", 20), ("c", 20), ("a", 20)),
        *(("c", 10), ("a", 10), ("b", 10)),
        *(("a", 20), ("b", 20), ("c", 20)),
    ]


def test_a_row_counts_what_came_after_the_prefill() -> None:
    plain = [[Run((1, 2, 3, 4, 5), False, 1.0, 4.0, forwards=4)], [Run((1, 2, 3), False, 1.0, 2.0, forwards=2)]]
    ours = [[Run((1, 2, 3, 4, 5), False, 1.0, 2.0, forwards=2)], [Run((1, 2, 3), False, 1.0, 2.0, forwards=1)]]
    row = method_row("m", ours, plain, [None, Difference(1, 5e-5)])
    assert row.keys() >= FIELDS
    assert (row["tasks"], row["tokens"], row["forwards"]) == (2, 8, 3)
    assert row["tokens_per_second"] == pytest.approx(6 / 4)
    assert row["tokens_per_step"] == pytest.approx(6 / 3)
    assert row["ms_per_step"] == pytest.approx(4000 / 3)
    assert row["speedup"] == pytest.approx(1.5)
    assert row["total_speedup"] == pytest.approx(8 / 6)
    assert row["speedup_by_task"]["least"] == pytest.approx(1.0)
    assert row["speedup_by_task"]["most"] == pytest.approx(2.0)
    assert (row["identical"], row["differences"], row["ties_within_1e-4"], row["margins"]) == (1, 1, 1, [5e-5])


def test_a_tasks_time_is_the_median_of_its_repeats() -> None:
    runs = [[Run((1, 2), False, 0.1, seconds, forwards=1) for seconds in (9.0, 1.0, 2.0)]]
    row = method_row("m", runs, runs, [None])
    assert row["tokens_per_second"] == pytest.approx(1 / 2.0)


def test_tasks_that_end_at_once_divide_by_nothing() -> None:
    runs = [[Run((), True, 0.1, 0.0, forwards=0)]]
    row = method_row("m", runs, runs, [None])
    assert (row["tokens"], row["tokens_per_step"], row["speedup"], row["speedup_by_task"]) == (0, None, None, None)


def test_another_program_is_not_judged_on_its_tokens() -> None:
    runs = [[Run((1, 2), False, 0.1, 0.2)]]
    row = method_row("llama.cpp", runs, runs, None)
    assert (row["identical"], row["tokens_per_step"], row["ms_per_step"]) == (None, None, None)


@pytest.mark.parametrize("text", ["ngram", "eagle1@6", "eagle2", "eagle2:rerank=off", "best-first@5", "hybrid"])
def test_every_method_of_the_engine_is_identical_to_plain(
    target: LeanDecoder, prompts: list[Prompt], text: str
) -> None:
    label = specs(text)[0].label
    runs = compare(contenders(target, f"plain,{text}"), prompts, 24)
    rows = method_rows(specs(f"plain,{text}"), runs, prompts, target, NO_STOPS)
    assert [row["method"] for row in rows] == ["plain", label]
    assert [row["identical"] for row in rows] == [3, 3]
    assert rows[0]["tokens_per_step"] == 1.0
    assert rows[0]["speedup"] == 1.0
    assert rows[1]["forwards"] <= rows[0]["forwards"]


@pytest.mark.parametrize("position", [0, 5, 23])
def test_a_lossy_method_is_caught(target: LeanDecoder, prompts: list[Prompt], position: int) -> None:
    (plain,) = contenders(target, "plain")
    runs = compare([plain, Lossy(plain, position)], prompts, 24)
    pair = (MethodSpec("plain", "plain", TreeShape()), MethodSpec("lossy", "ngram", TreeShape()))
    row = method_rows(pair, runs, prompts, target, tiny_tokenizer().eos_ids)[1]
    reached = sum(len(run[0].tokens) > position for run in runs["plain"])
    assert row["differences"] == reached > 0
    assert row["identical"] == len(prompts) - reached
    assert row["ties_within_1e-4"] == 0
    assert min(row["margins"]) > TIE


def test_the_margin_is_the_fresh_logits_preference(target: LeanDecoder, prompts: list[Prompt]) -> None:
    (plain,) = contenders(target, "plain")
    ours = plain.run(prompts[0], 6)
    parted = (*ours.tokens[:2], (ours.tokens[2] + 1) % tiny_tokenizer().vocab_size)
    found = first_difference(target, prompts[0].ids, ours, Run(parted, False, 0, 0), NO_STOPS)
    ids = torch.tensor([*prompts[0].ids, *ours.tokens[:2]])
    from assistant.engine.kv_cache import KVCache

    logits = target.forward(ids, torch.arange(len(ids)), KVCache.of(target.spec)).logits[-1]
    assert found is not None
    assert found.position == 2
    assert found.margin == pytest.approx(float(logits.max() - logits[parted[2]]), abs=1e-4)


def test_an_early_end_is_a_difference(target: LeanDecoder, prompts: list[Prompt]) -> None:
    (plain,) = contenders(target, "plain")
    ours = plain.run(prompts[0], 6)
    short = Run(ours.tokens[:3], False, 0, 0)
    stopped = Run(ours.tokens[:3], True, 0, 0)
    stops = tiny_tokenizer().eos_ids
    assert first_difference(target, prompts[0].ids, ours, short, stops) == Difference(3, None)
    assert not Difference(3, None).is_tie
    found = first_difference(target, prompts[0].ids, ours, stopped, stops)
    assert found is not None
    assert found.margin is not None
    assert found.margin > TIE


def test_a_difference_in_any_repeat_counts(target: LeanDecoder, prompts: list[Prompt]) -> None:
    (plain,) = contenders(target, "plain")
    good = plain.run(prompts[0], 6)
    bad = Lossy(plain, 2).run(prompts[0], 6)
    runs = {"plain": [[good, good]], "m": [[good, bad]]}
    pair = (MethodSpec("plain", "plain", TreeShape()), MethodSpec("m", "ngram", TreeShape()))
    assert method_rows(pair, runs, prompts[:1], target, NO_STOPS)[1]["identical"] == 0


def test_acceptance_of_chains_counts_the_drafts_that_were_asked_about() -> None:
    def step(accepted: Sequence[int]) -> StepResult:
        tree = chain(0, (1, 2, 3), (-0.1, -0.2, -0.3), "head")
        return StepResult((9,), (Origin.BONUS,), "", tree, tuple(accepted))

    # 2 of 3 asked; 3 of 3; 0 of 1.
    assert draft_acceptance([step((1, 2)), step((1, 2, 3)), step(())]) == pytest.approx(5 / 7)


def test_a_suffix_is_asked_as_fill_in_the_middle() -> None:
    tokenizer = tiny_tokenizer()
    tasks = [Task("a", "def f", "return", "", "", ()), Task("b", "def f", "", "", "", ())]
    filled, continued = prompts_of(tasks, tokenizer)
    assert filled.ids[0] == tokenizer.special("<|fim_prefix|>")
    assert filled.ids[-1] == tokenizer.special("<|fim_middle|>")
    assert continued.ids == tuple(tokenizer.encode("def f"))
    assert filled.suffix == tuple(tokenizer.encode("return"))


def test_the_command_prints_one_document_and_saves_a_record(tmp_path: Path) -> None:
    model, head = write_model(tmp_path / "tiny"), write_head(tmp_path / "head")
    data = write(tmp_path / "tasks.jsonl", ROW, ROW | {"task_id": "T/1", "prompt": "def two():\n"})
    arguments = ["decode", "--data", str(data), "--methods", "ngram,eagle2@4", "--max-tokens", "8", "--json"]
    arguments += ["--model", str(model), "--head", str(head), "--precision", "float32"]
    arguments += ["--save", "tiny", "--records", str(tmp_path / "records")]
    result = CliRunner().invoke(bench, arguments, catch_exceptions=False)
    document = json.loads(result.stdout)
    assert [row["method"] for row in document["rows"]] == ["plain", "ngram", "eagle2@4"]
    assert all(row.keys() >= FIELDS and row["identical"] == 2 for row in document["rows"])
    assert (document["model"], document["precision"], document["tasks"]) == ("tiny", "float32", 2)
    saved = json.loads((tmp_path / "records" / "tiny.json").read_text())
    assert saved["result"] == document
    assert saved.keys() == {"command", "date", "machine", "result"}


def test_the_command_shows_a_table_otherwise(tmp_path: Path) -> None:
    data = write(tmp_path / "tasks.jsonl", ROW)
    arguments = ["decode", "--data", str(data), "--methods", "plain,ngram", "--max-tokens", "4"]
    arguments += ["--model", str(write_model(tmp_path / "tiny")), "--precision", "float32"]
    result = CliRunner().invoke(bench, arguments, catch_exceptions=False, env={"COLUMNS": "200"})
    assert "ngram" in result.stdout
    assert "1 of 1" in result.stdout


def test_read_tasks_serve_prompts_of(tmp_path: Path) -> None:
    (prompt,) = prompts_of(read_tasks(write(tmp_path / "t.jsonl", ROW)), tiny_tokenizer())
    assert prompt.ids == prompt.prefix


@pytest.mark.parametrize(
    ("more", "says"),
    [
        (["--data", "absent.jsonl"], "absent.jsonl cannot be read as tasks"),
        (["--data", "tasks.jsonl", "--methods", "warp"], "warp is not a method"),
        (["--data", "tasks.jsonl", "--methods", "plain", "--model", "nowhere"], "nowhere"),
        (["--data", "tasks.jsonl", "--methods", "plain", "--limit", "0"], "--limit"),
    ],
)
def test_a_users_mistake_is_one_line_and_exit_code_2(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, more: list[str], says: str
) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "tasks.jsonl", ROW)
    result = CliRunner().invoke(main, ["bench", "decode", *more])
    assert result.exit_code == 2
    assert says in result.stderr
    assert len(result.stderr.splitlines()) == 1
    assert result.stdout == ""
