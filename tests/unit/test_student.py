"""A small draft model distilled from its target."""

from pathlib import Path
from typing import Any

import pytest
import torch

from models.training.batched import BatchedDecoder
from models.training.features import FeatureText
from models.training.loop import Trainer
from models.training.options import TrainOptions
from models.training.student import StudentLesson, _walk, chain_figures, student_from
from tests.support.tiny import VOCAB, tiny_config, tiny_state, tiny_target

EVERY = torch.arange(VOCAB)


@pytest.mark.parametrize("family", ["llama", "qwen2", "qwen3"])
def test_a_student_with_all_of_its_targets_layers_is_its_target(family: str) -> None:
    target, config = tiny_target(family), tiny_config(family)
    student = student_from(config, tiny_state(config), config.layers)
    ids = torch.randint(VOCAB, (2, 17), generator=torch.Generator().manual_seed(3))
    with torch.no_grad():
        ours = student(target.embed(ids.flatten()).view(2, 17, -1))
    for row, theirs in zip(ours, BatchedDecoder(target).features(ids.tolist()), strict=True):
        torch.testing.assert_close(row, theirs.float(), atol=2e-3, rtol=2e-3)


def test_a_student_keeps_the_first_and_the_last_layer() -> None:
    config = tiny_config("llama", num_hidden_layers=5)
    state = tiny_state(config)
    student = student_from(config, state, 3)
    names = [f"model.layers.{kept}.mlp.up_proj.weight" for kept in (0, 2, 4)]
    for layer, name in zip(student.layers, names, strict=True):
        assert torch.equal(layer.get_parameter("mlp.up_proj.weight"), state[name])


def test_distillation_brings_the_student_closer_and_its_chains_further(tmp_path: Path) -> None:
    target, config = tiny_target("qwen2"), tiny_config("qwen2")
    prompts = torch.randint(VOCAB, (24, 5), generator=torch.Generator().manual_seed(3)).tolist()
    texts = [
        FeatureText("continued", "python", text.prompt_tokens, torch.tensor(text.ids), text.features)
        for text in BatchedDecoder(target).write(prompts, 24, frozenset())
    ]
    head = target.head_rows(EVERY)
    lesson = StudentLesson(student_from(config, tiny_state(config), 1), head)
    options = TrainOptions(
        steps=80, batch_tokens=400, learning_rate=1e-2, warm_up=5, save_every=1e9, precision="float32", average=0.9
    )
    trainer = Trainer(lesson, EVERY, target.embed, options, tmp_path)
    before = chain_figures(trainer.averaged(), texts, head, target.embed)
    rows: list[dict[str, Any]] = []
    trainer.run(lambda: texts, lambda _: {"score": 0.0}, rows.append)
    after = chain_figures(trainer.averaged(), texts, head, target.embed)
    assert rows[-1]["loss"] < 0.5 * rows[0]["loss"]
    assert after["score"] > before["score"] + 0.5
    assert after["tokens_per_step"]["all"]["8"] >= after["tokens_per_step"]["all"]["1"]


def test_a_walk_takes_what_was_right_and_one_token_more() -> None:
    right = [True, True, False, True, True, True]
    assert _walk(right, 1) == (6, 4)
    assert _walk(right, 8) == (6, 2)
    assert _walk([], 4) == (0, 0)
