"""Finding out how a draft head is meant to be read."""

from collections.abc import Mapping
from pathlib import Path

import pytest
import torch
from torch import Tensor

from assistant.engine.kv_cache import KVCache
from models.head_check import HeadCheck, check_head
from models.training.batched import BatchedDecoder
from models.training.features import FeatureText
from models.training.head import head_config, head_shape, random_head
from models.training.lesson import HeadLesson
from models.training.loop import Trainer
from models.training.options import TrainOptions
from tests.support.tiny import VOCAB, tiny_target

TARGET = tiny_target("qwen2")
SHAPE = head_shape(TARGET.config, 32)


@pytest.fixture(scope="module")
def texts() -> list[FeatureText]:
    prompts = torch.randint(VOCAB, (24, 4), generator=torch.Generator().manual_seed(6)).tolist()
    written = BatchedDecoder(TARGET).write(prompts, 30, frozenset())
    return [FeatureText("continued", "python", t.prompt_tokens, torch.tensor(t.ids), t.features) for t in written]


@pytest.fixture(scope="module")
def state(texts: list[FeatureText], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Tensor]:
    """A head that was trained a little, so that it is right more often than by chance."""
    out: Path = tmp_path_factory.mktemp("run")
    options = TrainOptions(
        steps=150, batch_tokens=500, learning_rate=1e-2, warm_up=5, save_every=1e9, evaluate_every=999, unroll=2
    )
    every = torch.arange(VOCAB)
    lesson = HeadLesson(random_head(SHAPE), TARGET.head_rows(every), options)
    trainer = Trainer(lesson, every, TARGET.embed, options, out)
    trainer.run(lambda: texts, lambda _: {"score": 0.0})
    return {name: tensor.detach() for name, tensor in trainer.averaged().named_parameters()}


def check(state: Mapping[str, Tensor], texts: list[FeatureText]) -> HeadCheck:
    config = head_config(SHAPE, "tiny", VOCAB)
    return check_head(config, state, TARGET, [text.ids.tolist() for text in texts[:6]], KVCache.of)


def test_a_head_that_is_read_as_it_was_trained_is_good(state: dict[str, Tensor], texts: list[FeatureText]) -> None:
    found = check(state, texts)
    assert found.verdict == "good"
    assert found.better_convention is None
    assert len(found.top1_by_depth) == 4
    assert found.top1_by_depth[0] > 0.15


def test_swapped_halves_of_fc_are_found(state: dict[str, Tensor], texts: list[FeatureText]) -> None:
    swapped = torch.cat(state["fc.weight"].chunk(2, 1)[::-1], 1)
    found = check({**state, "fc.weight": swapped}, texts)
    assert found.verdict == "misread"
    assert found.better_convention == "fc takes the feature first"


def test_a_random_head_is_weak(texts: list[FeatureText]) -> None:
    generator = torch.Generator().manual_seed(9)
    noise = {name: torch.randn(p.shape, generator=generator) for name, p in random_head(SHAPE).named_parameters()}
    assert check(noise, texts).verdict != "good"
