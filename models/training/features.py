"""Texts and the target's features of them on disk: shards of some thousand tokens, made one after another, once."""

import json
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import torch
from safetensors import safe_open
from safetensors.torch import save_file
from torch import Tensor

from assistant.files import atomic_file, ensure_dir
from models.tokenizer import Tokenizer
from models.training.batched import Written
from models.training.corpus import Exclusion
from models.training.samples import Sample, documented_beginning

BATCH = 48
"""sequences that a target runs at once"""
_DRAWN = 120
"""tokens of name and docstring that a target may draw"""
_SHORTEST = 24


class Writer(Protocol):
    """A target that runs several sequences at once; `models.training.batched.BatchedDecoder` is one."""

    def features(self, sequences: Sequence[Sequence[int]]) -> list[Tensor]: ...

    def write(
        self,
        prompts: Sequence[Sequence[int]],
        limit: int,
        stop_ids: frozenset[int],
        *,
        temperature: float = 0.0,
        generator: torch.Generator | None = None,
    ) -> list[Written]: ...


@dataclass(frozen=True, slots=True)
class FeatureText:
    """One text with the target's features."""

    kind: str
    language: str
    prompt_tokens: int
    """where the target's own writing begins; the text's length where it wrote nothing"""
    ids: Tensor
    """(n,) int64"""
    features: Tensor
    """(n, H) float16"""


def batches(samples: Sequence[Sample]) -> list[list[Sample]]:
    """Samples of one kind and like length together, in an order that keeps the mix."""
    by_kind: dict[str, list[Sample]] = {}
    made: list[list[Sample]] = []
    group = 6 * BATCH
    for sample in samples:
        waiting = by_kind.setdefault(sample.kind, [])
        waiting.append(sample)
        if len(waiting) == group:
            made += _split(by_kind.pop(sample.kind))
    for rest in by_kind.values():
        made += _split(rest)
    return made


def _split(samples: list[Sample]) -> list[list[Sample]]:
    ordered = sorted(samples, key=lambda sample: len(sample.ids))
    return [ordered[start : start + BATCH] for start in range(0, len(ordered), BATCH)]


def collect(
    writer: Writer,
    tokenizer: Tokenizer,
    work: Sequence[Sequence[Sample]],
    folder: Path,
    exclusion: Exclusion,
    *,
    seed: int = 0,
    progress: Callable[[int, int, float], None] = lambda *_: None,
) -> None:
    """Make the shards that `folder` lacks; a killed run goes on where it stopped and comes to the same shards."""
    ensure_dir(folder)
    for index, samples in enumerate(work):
        path = folder / f"features-{index:05d}.safetensors"
        if path.exists():
            continue
        begun = time.monotonic()
        texts = _run(writer, tokenizer, samples, exclusion, torch.Generator().manual_seed(seed + index))
        write_shard(path, texts)
        progress(index + 1, len(work), time.monotonic() - begun)


def _run(
    writer: Writer, tokenizer: Tokenizer, samples: Sequence[Sample], exclusion: Exclusion, generator: torch.Generator
) -> list[FeatureText]:
    prompts: list[Sequence[int]] = [sample.ids for sample in samples]
    if samples[0].kind == "invented":
        drawn = writer.write(prompts, _DRAWN, tokenizer.eos_ids, temperature=0.8, generator=generator)
        prompts = _beginnings(drawn, tokenizer, exclusion)
        if not prompts:
            return []
    if samples[0].write:
        texts = writer.write(prompts, samples[0].write, tokenizer.eos_ids)
    else:
        texts = [
            Written(list(ids), len(ids), features)
            for ids, features in zip(prompts, writer.features(prompts), strict=True)
        ]
    languages = [sample.language for sample in samples][: len(texts)]
    return [
        FeatureText(samples[0].kind, language, text.prompt_tokens, torch.tensor(text.ids), text.features)
        for text, language in zip(texts, languages, strict=True)
        if len(text.ids) >= _SHORTEST and not exclusion.refuses(tokenizer.decode(text.ids))
    ]


def _beginnings(drawn: Sequence[Written], tokenizer: Tokenizer, exclusion: Exclusion) -> list[Sequence[int]]:
    """What the target drew up to the docstring's end, without repeats and without a benchmark's tasks."""
    kept: dict[str, Sequence[int]] = {}
    for text in (documented_beginning(tokenizer.decode(written.ids)) for written in drawn):
        if text is None or exclusion.refuses(text):
            continue
        name = text.split("def ", 1)[1].split("(", 1)[0].strip()
        if not exclusion.refuses_function(name):
            kept.setdefault(text, tokenizer.encode(text))
    return list(kept.values())


def write_shard(path: Path, texts: Sequence[FeatureText]) -> None:
    """Store texts in one file, under a temporary name until it is whole."""
    ends = torch.tensor([len(text.ids) for text in texts], dtype=torch.int64).cumsum(0)
    tensors = {
        "ids": torch.cat([text.ids.int() for text in texts]) if texts else torch.zeros(0, dtype=torch.int32),
        "features": torch.cat([text.features for text in texts]) if texts else torch.zeros((0, 1)).half(),
        "ends": ends,
        "prompts": torch.tensor([text.prompt_tokens for text in texts], dtype=torch.int64),
    }
    about = {"kinds": json.dumps([t.kind for t in texts]), "languages": json.dumps([t.language for t in texts])}
    with atomic_file(path) as temporary:
        save_file(tensors, temporary, about)


def read_shard(path: Path) -> Iterator[FeatureText]:
    """The texts of one shard."""
    with safe_open(path, "pt") as file:
        about = file.metadata()
        kinds, languages = json.loads(about["kinds"]), json.loads(about["languages"])
        ids, features = file.get_tensor("ids"), file.get_tensor("features")
        ends, prompts = file.get_tensor("ends").tolist(), file.get_tensor("prompts").tolist()
    for row, (start, end) in enumerate(zip([0, *ends], ends, strict=False)):
        yield FeatureText(kinds[row], languages[row], prompts[row], ids[start:end].long(), features[start:end].clone())


def shards(folder: Path) -> list[Path]:
    """The shards that are there, in order."""
    return sorted(folder.glob("features-*.safetensors"))
