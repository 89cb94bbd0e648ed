"""The lean forward on real weights: int8 bit for bit, and against transformers and float32."""

import math
import sysconfig
from pathlib import Path

import pytest
import torch
from torch import Tensor

from assistant.errors import ModelNotFoundError
from models import loading
from models.catalog import DEFAULT_MODEL
from models.hf import HFTarget
from models.target import Target
from tests.support.rows import cache_for, depths, path_to, tree_mask

PARENTS = [-1, 0, 0, 1, 1, 2, 3, 3, 6, 8, 5, 4]
HELD_OUT = ("argparse.py", "heapq.py", "textwrap.py", "shelve.py", "queue.py", "bisect.py", "shlex.py", "string.py")


def load(name: str, precision: str) -> loading.LoadedModel:
    try:
        return loading.load(name, precision, "cpu")
    except ModelNotFoundError:
        pytest.skip(f"{name} is not installed")


def code(loaded: loading.LoadedModel, file: str, tokens: int) -> Tensor:
    """(tokens,) ids of the start of a standard library file."""
    text = (Path(sysconfig.get_path("stdlib")) / file).read_text(encoding="utf-8")
    return torch.tensor(loaded.tokenizer.encode(text)[:tokens])


def logits(target: Target, ids: Tensor) -> Tensor:
    return target.forward(ids, torch.arange(len(ids)), cache_for(target.spec)).logits


@pytest.mark.model
def test_int8_nodes_are_bit_equal_to_their_paths_row_by_row() -> None:
    loaded = load(DEFAULT_MODEL, "int8")
    target, past = loaded.target, 150
    ids = code(loaded, "heapq.py", past + len(PARENTS))
    cache = cache_for(target.spec)
    target.forward(ids[:past], torch.arange(past), cache)
    tree = target.forward(ids[past:], past + depths(PARENTS), cache, tree_mask(PARENTS)).logits
    for node in (4, 9, 10):
        path = path_to(node, PARENTS)
        cache.rewind(past)
        for place, i in enumerate(path):
            alone = target.forward(ids[past + i : past + i + 1], torch.tensor([past + place]), cache).logits
            assert torch.equal(alone[0], tree[i])


@pytest.mark.slow
@pytest.mark.parametrize("name", [DEFAULT_MODEL, "qwen2.5-coder-1.5b", "smollm2-135m"])
def test_float32_logits_are_those_of_transformers(name: str) -> None:
    loaded = load(name, "float32")
    ids = code(loaded, "heapq.py", 200)
    got = logits(loaded.target, ids)
    source = loaded.source.path
    wide = HFTarget.from_folder(source.parent, gguf_file=source.name)
    assert float((got - logits(wide, ids)).abs().max()) < 1e-4


@pytest.mark.slow
def test_int8_agrees_with_float32_on_code() -> None:
    """At least 97 of 100 next tokens, over files that conversion did not see."""
    exact, quick = load(DEFAULT_MODEL, "float32"), load(DEFAULT_MODEL, "int8")
    same = tokens = 0
    divergence = 0.0
    for file in HELD_OUT:
        ids = code(exact, file, 448)
        wanted, got = (logits(loaded.target, ids).log_softmax(1) for loaded in (exact, quick))
        same += int((wanted.argmax(1) == got.argmax(1)).sum())
        divergence += float((wanted.exp() * (wanted - got)).sum())
        tokens += len(ids)
    assert tokens > 3000
    assert same / tokens >= 0.97
    assert math.isfinite(divergence)
    assert divergence / tokens < 0.01
