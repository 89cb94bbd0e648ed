"""Other programs as contenders: transformers itself on a tiny random model, and llama.cpp behind a stand-in."""

import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from assistant.bench.contenders import EngineContender
from assistant.bench.lineup import line_up
from assistant.bench.peers import LlamaPeer, TransformersPeer, load_transformers
from assistant.bench.specs import parse_methods
from assistant.engine.tree import TreeShape
from assistant.engine.types import Prompt
from assistant.errors import UsageError
from models.loading import LoadedModel, load
from tests.support.tiny_folder import write_model

STOP = frozenset({99})


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> LoadedModel:
    return load(str(write_model(tmp_path_factory.mktemp("models") / "tiny")), "float32")


@pytest.fixture(scope="module")
def transformers_model(loaded: LoadedModel) -> Any:
    return load_transformers(loaded.source, "float32", torch.device("cpu"))


@pytest.mark.parametrize("lookup", [False, True])
def test_transformers_continues_the_same_prompt_with_the_same_weights(
    loaded: LoadedModel, transformers_model: Any, *, lookup: bool
) -> None:
    (spec,) = parse_methods("plain", TreeShape())
    prompt = Prompt(tuple(loaded.tokenizer.encode("def f(self):\n    return self\n\ndef f(")))
    ours = EngineContender(spec, loaded.target, loaded.tokenizer).run(prompt, 16)
    peer = TransformersPeer("peer", transformers_model, loaded.tokenizer.eos_ids, lookup=lookup)
    theirs = peer.run(prompt, 16)
    assert theirs.tokens == ours.tokens
    assert theirs.stopped == ours.stopped
    assert theirs.forwards is not None
    assert ours.forwards is not None
    assert theirs.forwards <= ours.forwards
    assert lookup or theirs.forwards == ours.forwards
    assert theirs.first_seconds > 0
    assert theirs.rest_seconds > 0


class FakeLlama:
    """Says tokens from a list; remembers how it was made and asked."""

    made: dict[str, Any]

    def __init__(self, path: str, **settings: Any) -> None:
        FakeLlama.made = {"path": path, **settings}
        self.resets = 0

    def reset(self) -> None:
        self.resets += 1

    def generate(self, tokens: tuple[int, ...], **settings: Any) -> Iterator[int]:
        assert self.resets > 0
        assert settings["temp"] == 0.0
        assert settings["repeat_penalty"] == 1.0
        yield from (tokens[0] + 1, tokens[0] + 2, 99, 5)


@pytest.mark.parametrize(
    ("limit", "tokens", "stopped", "forwards"), [(8, (8, 9), True, 2), (2, (8, 9), False, 1), (1, (8,), False, 0)]
)
def test_llama_cpp_stops_where_the_engine_does(
    monkeypatch: pytest.MonkeyPatch, *, limit: int, tokens: tuple[int, ...], stopped: bool, forwards: int
) -> None:
    monkeypatch.setitem(sys.modules, "llama_cpp", SimpleNamespace(Llama=FakeLlama))
    run = LlamaPeer("llama.cpp", Path("model.gguf"), STOP, 300).run(Prompt((7,)), limit)
    assert (run.tokens, run.stopped, run.forwards) == (tokens, stopped, forwards)
    assert FakeLlama.made["path"] == "model.gguf"
    assert FakeLlama.made["n_ctx"] == 300


def test_llama_cpp_missing_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "llama_cpp", None)
    with pytest.raises(UsageError, match="scripts/bench"):
        LlamaPeer("llama.cpp", Path("model.gguf"), STOP, 300)


def test_llama_cpp_reads_gguf_alone(loaded: LoadedModel) -> None:
    with pytest.raises(UsageError, match="GGUF"):
        line_up(parse_methods("llama.cpp", TreeShape()), loaded, head=None, draft=None, context=64)


def test_a_method_without_its_draft_model_is_refused_before_anything_runs(loaded: LoadedModel) -> None:
    with pytest.raises(UsageError, match="--draft"):
        line_up(parse_methods("plain,sps", TreeShape()), loaded, head=None, draft=None, context=64)


def test_a_draft_model_is_loaded_for_sps(loaded: LoadedModel) -> None:
    specs = parse_methods("plain,sps@3", TreeShape())
    folder = str(loaded.source.path)
    plain, sps = line_up(specs, loaded, head=None, draft=folder, context=64)
    prompt = Prompt(tuple(loaded.tokenizer.encode("def f(")))
    ours, theirs = sps.run(prompt, 12), plain.run(prompt, 12)
    assert ours.tokens == theirs.tokens
    assert ours.forwards is not None
    assert theirs.forwards is not None
    assert ours.forwards < theirs.forwards  # a model that drafts for itself is always right
