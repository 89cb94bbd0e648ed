"""From method specs to contenders, with every model loaded once."""

from collections.abc import Sequence
from typing import Any

from assistant.bench.contenders import Contender, EngineContender
from assistant.bench.peers import LlamaPeer, TransformersPeer, load_transformers
from assistant.bench.specs import MethodSpec
from assistant.engine.methods import HEAD_METHODS
from assistant.errors import UsageError
from models.draft_head import DraftHead
from models.loading import LoadedModel, find_head, load, load_head
from models.target import Target

_DRAFTING = HEAD_METHODS | {"adaptive"}


def line_up(
    specs: Sequence[MethodSpec], loaded: LoadedModel, *, head: str | None, draft: str | None, context: int
) -> list[Contender]:
    """A contender for each spec, in order.

    Args:
        specs: what `--methods` said.
        loaded: the target that this engine's methods share; peers load the same files.
        head: a draft head's name or path; None is the one shipped for the target.
        draft: the draft model of `sps`.
        context: tokens that a prompt and its completion need at most.

    Raises:
        UserError: a model, head or program that a spec needs is missing.
    """
    names = {spec.name for spec in specs}
    found_head = _head(head, loaded.target, needed=bool(names & HEAD_METHODS)) if names & _DRAFTING else None
    found_draft = _draft(draft, loaded) if "sps" in names else None
    peers = _Peers(loaded, context)
    return [peers.of(spec) if spec.is_peer else _ours(spec, loaded, found_head, found_draft) for spec in specs]


def _ours(spec: MethodSpec, loaded: LoadedModel, head: DraftHead | None, draft: Target | None) -> Contender:
    return EngineContender(spec, loaded.target, loaded.tokenizer, head=head, draft=draft)


def _head(name: str | None, target: Target, *, needed: bool) -> DraftHead | None:
    return load_head(name, target) if needed else find_head(name, target)


def llama_peer(loaded: LoadedModel, context: int, label: str = "llama.cpp") -> LlamaPeer:
    """llama.cpp on a model's own file, with room for `context` tokens.

    Raises:
        UsageError: the file is no GGUF, or llama-cpp-python is not installed.
    """
    source = loaded.source
    if source.kind != "gguf":
        raise UsageError(f"the peer llama.cpp reads GGUF files, and {source.path} is a {source.kind}.")
    return LlamaPeer(label, source.path, loaded.tokenizer.eos_ids, context)


def _draft(name: str | None, loaded: LoadedModel) -> Target | None:
    spec = loaded.target.spec
    return None if name is None else load(name, spec.precision, str(spec.device)).target


class _Peers:
    """Loads other programs' models, the two transformers methods sharing theirs."""

    def __init__(self, loaded: LoadedModel, context: int) -> None:
        self._loaded = loaded
        self._context = context
        self._transformers: dict[str, Any] = {}

    def of(self, spec: MethodSpec) -> Contender:
        stop_ids = self._loaded.tokenizer.eos_ids
        if spec.name == "llama.cpp":
            return llama_peer(self._loaded, self._context, spec.label)
        model = self._transformers_model(spec.precision)
        return TransformersPeer(spec.label, model, stop_ids, lookup=spec.name == "transformers-lookup")

    def _transformers_model(self, precision: str | None) -> Any:
        target = self._loaded.target.spec
        # transformers has no int8 for CPUs: the dequantized weights as they are.
        chosen = precision or ("float32" if target.precision == "int8" else target.precision)
        if chosen not in self._transformers:
            self._transformers[chosen] = load_transformers(self._loaded.source, chosen, target.device)
        return self._transformers[chosen]
