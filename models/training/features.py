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

from assistant.files import atomic_file, ensure_dir, write_atomic
from models.tokenizer import Tokenizer
from models.training.batched import Written
from models.training.corpus import Exclusion
from models.training.samples import Sample, documented_beginning

BATCH = 48
"""sequences that a target runs at once on a CPU"""
_GROUP = 4
"""batches whose samples are sorted by length together"""
_DRAWN = 120
"""tokens of name and docstring that a target may draw"""
_SHORTEST = 24
_DONE = "complete"


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


def batches(samples: Sequence[Sample], size: int = BATCH) -> list[list[Sample]]:
    """`size` samples of one kind and like length together; any beginning of the list has the whole mix."""
    by_kind: dict[str, list[Sample]] = {}
    for sample in samples:
        by_kind.setdefault(sample.kind, []).append(sample)
    placed: list[tuple[float, list[Sample]]] = []
    for of_kind in by_kind.values():
        group = _GROUP * size
        made = [batch for at in range(0, len(of_kind), group) for batch in _split(of_kind[at : at + group], size)]
        placed += [((place + 0.5) / len(made), batch) for place, batch in enumerate(made)]
    return [batch for _, batch in sorted(placed, key=lambda pair: pair[0])]


def _split(samples: Sequence[Sample], size: int) -> list[list[Sample]]:
    ordered = sorted(samples, key=lambda sample: len(sample.ids))
    return [ordered[start : start + size] for start in range(0, len(ordered), size)]


@dataclass(frozen=True, slots=True)
class Collected:
    """How far the work on a folder of shards has come."""

    batches: int
    of: int
    tokens: int
    seconds: float
    """spent on these shards, by this run and those before it"""


def collect(
    writer: Writer,
    tokenizer: Tokenizer,
    work: Sequence[Sequence[Sample]],
    folder: Path,
    exclusion: Exclusion,
    *,
    seed: int = 0,
    enough: Callable[[Collected], bool] = lambda _: False,
    progress: Callable[[Collected], None] = lambda _: None,
) -> None:
    """Make the shards that `folder` lacks; a killed run goes on where it stopped and comes to the same shards.

    Args:
        writer: the target.
        tokenizer: the target's.
        work: a shard's samples each.
        folder: where the shards lie.
        exclusion: what no text may hold.
        seed: of what is drawn at random.
        enough: asked before every shard; once it says so, that is kept, and no later run adds to the folder.
        progress: told after every shard that was made.
    """
    done = ensure_dir(folder) / _DONE
    tokens, seconds = 0, 0.0
    for index, samples in enumerate(work):
        if done.exists() or enough(Collected(index, len(work), tokens, seconds)):
            break
        path = folder / f"features-{index:05d}.safetensors"
        begun = time.monotonic()
        made = not path.exists()
        if made:
            texts = _run(writer, tokenizer, samples, exclusion, torch.Generator().manual_seed(seed + index))
            write_shard(path, texts, time.monotonic() - begun)
        found, spent = _extent(path)
        tokens, seconds = tokens + found, seconds + spent
        if made:
            progress(Collected(index + 1, len(work), tokens, seconds))
    write_atomic(done, b"")


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
            Written(list(sample.ids), sample.prompt_tokens or len(sample.ids), features)
            for sample, features in zip(samples, writer.features(prompts), strict=True)
        ]
    languages = [sample.language for sample in samples][: len(texts)]
    return [
        FeatureText(samples[0].kind, language, text.prompt_tokens, torch.tensor(text.ids), text.features.cpu())
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


def write_shard(path: Path, texts: Sequence[FeatureText], seconds: float = 0.0) -> None:
    """Store texts in one file, under a temporary name until it is whole; `seconds` is what they took."""
    ends = torch.tensor([len(text.ids) for text in texts], dtype=torch.int64).cumsum(0)
    tensors = {
        "ids": torch.cat([text.ids.int() for text in texts]) if texts else torch.zeros(0, dtype=torch.int32),
        "features": torch.cat([text.features for text in texts]) if texts else torch.zeros((0, 1)).half(),
        "ends": ends,
        "prompts": torch.tensor([text.prompt_tokens for text in texts], dtype=torch.int64),
    }
    about = {
        "kinds": json.dumps([t.kind for t in texts]),
        "languages": json.dumps([t.language for t in texts]),
        "seconds": f"{seconds:.3f}",
    }
    with atomic_file(path) as temporary:
        save_file(tensors, temporary, about)


def _extent(path: Path) -> tuple[int, float]:
    """A shard's tokens, and the seconds that they took."""
    with safe_open(path, "pt") as file:
        return file.get_slice("ids").get_shape()[0], float(file.metadata().get("seconds", 0.0))


def read_shard(path: Path) -> Iterator[FeatureText]:
    """The texts of one shard; their features are views of the file, which the system may drop from memory."""
    with safe_open(path, "pt") as file:
        about = file.metadata()
        kinds, languages = json.loads(about["kinds"]), json.loads(about["languages"])
        ids, features = file.get_tensor("ids"), file.get_tensor("features")
        ends, prompts = file.get_tensor("ends").tolist(), file.get_tensor("prompts").tolist()
    for row, (start, end) in enumerate(zip([0, *ends], ends, strict=False)):
        yield FeatureText(kinds[row], languages[row], prompts[row], ids[start:end].long(), features[start:end])


def shards(folder: Path) -> list[Path]:
    """The shards that are there, in order."""
    return sorted(folder.glob("features-*.safetensors"))
