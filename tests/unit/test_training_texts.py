"""Features as they are collected: resumed, bounded, mixed; completions of the daemon as texts."""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
import torch
from torch import Tensor

from assistant.errors import UsageError
from models.training.batched import BatchedDecoder, Written
from models.training.budget import Budget
from models.training.corpus import Exclusion
from models.training.features import Collected, FeatureText, batches, collect, read_shard, shards
from models.training.logged import read_log_folder
from models.training.options import TrainOptions
from models.training.samples import Mix, Sample
from models.training.start import Donor, closed_form_head
from tests.support.tiny import HIDDEN, VOCAB, tiny_config, tiny_state, tiny_target
from tests.support.tiny_tokenizer import tiny_tokenizer

TOKENIZER = tiny_tokenizer()
TARGET = tiny_target("qwen2", vocab_size=TOKENIZER.vocab_size)


def samples(count: int) -> list[Sample]:
    kinds = ("plain", "documented", "documented", "continued")
    generator = torch.Generator().manual_seed(1)
    made = []
    for number in range(count):
        kind = kinds[number % 4]
        ids = torch.randint(5, 60, (30 + number % 7,), generator=generator).tolist()
        made.append(Sample(kind, "python", tuple(ids), 0 if kind == "plain" else 6))  # type: ignore[arg-type]
    return made


def test_any_beginning_of_the_work_has_the_whole_mix() -> None:
    work = batches(samples(400), size=10)
    kinds = [batch[0].kind for batch in work[: len(work) // 4]]
    assert {kind: kinds.count(kind) for kind in set(kinds)} == pytest.approx(
        {"plain": 2.5, "documented": 5, "continued": 2.5}, abs=1.01
    )
    assert all(len({sample.kind for sample in batch}) == 1 for batch in work)


class KilledError(Exception):
    pass


class FailingWriter(BatchedDecoder):
    """Works twice and is killed."""

    calls = 0

    def features(self, sequences: Sequence[Sequence[int]]) -> list[Tensor]:
        self._count()
        return super().features(sequences)

    def write(
        self,
        prompts: Sequence[Sequence[int]],
        limit: int,
        stop_ids: frozenset[int],
        *,
        temperature: float = 0.0,
        generator: torch.Generator | None = None,
    ) -> list[Written]:
        self._count()
        return super().write(prompts, limit, stop_ids, temperature=temperature, generator=generator)

    def _count(self) -> None:
        self.calls += 1
        if self.calls > 2:
            raise KilledError


def made(folder: Path) -> list[tuple[list[int], int]]:
    return [(text.ids.tolist(), text.prompt_tokens) for path in shards(folder) for text in read_shard(path)]


def test_a_killed_collection_comes_to_the_same_shards(tmp_path: Path) -> None:
    work = batches(samples(40), size=8)
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    collect(BatchedDecoder(TARGET), TOKENIZER, work, whole, Exclusion())
    with pytest.raises(KilledError):
        collect(FailingWriter(TARGET), TOKENIZER, work, parts, Exclusion())
    assert len(shards(parts)) == 2
    told: list[Collected] = []
    collect(BatchedDecoder(TARGET), TOKENIZER, work, parts, Exclusion(), progress=told.append)
    assert made(parts) == made(whole)
    assert [collected.batches for collected in told] == [*range(3, len(work) + 1)]
    assert told[-1].tokens == sum(len(ids) for ids, _ in made(whole))


def test_a_folder_that_has_enough_stays_as_it_is(tmp_path: Path) -> None:
    work = batches(samples(40), size=8)
    budget = Budget(tokens=300)
    collect(BatchedDecoder(TARGET), TOKENIZER, work, tmp_path, Exclusion(), enough=budget.enough)
    first = made(tmp_path)
    assert 300 <= sum(len(ids) for ids, _ in first) < 300 + 8 * 45
    collect(BatchedDecoder(TARGET), TOKENIZER, work, tmp_path, Exclusion())
    assert made(tmp_path) == first


def test_steps_fill_what_is_left_of_the_minutes() -> None:
    options = TrainOptions(steps=7)
    assert Budget().fitted(options, 10.0, 1.0, 1.0) == options
    fitted = Budget(minutes=10).fitted(options, spent=240.0, step=2.0, evaluation=6.0)
    assert fitted.steps == (600 - 240 - 60) // 2
    assert fitted.evaluate_every == 19
    assert Budget(minutes=1).fitted(options, spent=900.0, step=2.0, evaluation=6.0).steps == 8


def test_kept_completions_become_texts_and_what_is_damaged_is_counted(tmp_path: Path) -> None:
    rows = [
        {"model": "m", "precision": "int8", "prompt_tokens": 6, "ids": [*range(10)], "language": "go"},
        {"model": "m", "prompt_tokens": 2, "ids": [1, 2, 3]},
        {"model": "other", "prompt_tokens": 2, "ids": [1, 2, 3]},
        {"model": "m", "prompt_tokens": 3, "ids": [1, 2, 3]},
        {"model": "m", "prompt_tokens": 1, "ids": [1, 5000]},
    ]
    (tmp_path / "00000001.jsonl").write_text("\n".join(map(json.dumps, rows)) + '\n{"model": "m", "ids"')
    mix = Mix(plain=1, continued=1, documented=1, invented=1, infilled=1, window=4, write=3)
    found = read_log_folder(tmp_path, "m", 100, mix)
    assert found.skipped == 4
    assert [(sample.ids, sample.prompt_tokens) for sample in found.samples] == [
        ((2, 3, 4, 5, 6, 7, 8), 4),
        ((1, 2, 3), 2),
    ]
    assert [sample.language for sample in found.samples] == ["go", "unknown"]
    with pytest.raises(UsageError, match="no completion of x"):
        read_log_folder(tmp_path, "x", 100, mix)
    with pytest.raises(UsageError, match="--from-log"):
        read_log_folder(tmp_path / "none", "m", 100, mix)


def test_the_last_layer_explains_features_that_the_linear_map_does_not() -> None:
    target = tiny_target("qwen2")
    prompts = torch.randint(VOCAB, (60, 4), generator=torch.Generator().manual_seed(2)).tolist()
    written = BatchedDecoder(target).write(prompts, 40, frozenset())
    texts = [FeatureText("continued", "python", t.prompt_tokens, torch.tensor(t.ids), t.features) for t in written]
    config = tiny_config("qwen2")
    donor = Donor.of((config, tiny_state(config)))

    def error(given: Donor | None) -> float:
        from models.training.head import head_shape

        head = closed_form_head(head_shape(config, 48), texts, target.embed, donor=given)
        gaps = []
        for text in texts:
            end = len(text.ids) - 2
            predicted, _ = head(target.embed(text.ids[1:-1])[None], text.features[None, :-2], torch.arange(end)[None])
            gaps.append(float((predicted[0] - text.features[1:-1].float()).square().mean().detach()))
        return sum(gaps) / len(gaps)

    assert config.hidden_size == HIDDEN
    assert error(donor) < 0.98 * error(None)
