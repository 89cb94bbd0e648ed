"""Other programs as contenders: transformers itself on a tiny random model, and llama.cpp behind a stand-in."""

from pathlib import Path
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


FAKE = """
import os

class Llama:
    '''Says tokens from a list, after `reset` alone.'''

    def __init__(self, path, **settings):
        assert (path, settings["n_ctx"], settings["n_threads"] > 0) == ("model.gguf", 300, True), (path, settings)
        self.resets = 0

    def reset(self):
        self.resets += 1

    def generate(self, tokens, **settings):
        assert self.resets > 0
        assert settings["temp"] == 0.0
        assert settings["repeat_penalty"] == 1.0
        if tokens[0] == 0:
            os.abort()
        yield from (tokens[0] + 1, tokens[0] + 2, 99, 5)
"""


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A stand-in that the peer's own process imports."""
    (tmp_path / "llama_cpp.py").write_text(FAKE, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)


@pytest.mark.usefixtures("fake")
def test_llama_cpp_stops_where_the_engine_does() -> None:
    peer = LlamaPeer("llama.cpp", Path("model.gguf"), STOP, 300)
    runs = [peer.run(Prompt((7,)), limit) for limit in (8, 2, 1)]
    told = [(run.tokens, run.stopped, run.forwards) for run in runs]
    assert told == [((8, 9), True, 2), ((8, 9), False, 1), ((8,), False, 0)]


@pytest.mark.usefixtures("fake")
def test_llama_cpp_that_crashes_is_one_sentence() -> None:
    peer = LlamaPeer("llama.cpp", Path("model.gguf"), STOP, 300)
    with pytest.raises(UsageError, match="ended by itself"):
        peer.run(Prompt((0,)), 8)


def test_llama_cpp_missing_is_one_sentence(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "llama_cpp.py").write_text("raise ImportError", encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
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
