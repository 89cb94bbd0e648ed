"""The texts of a run and the target's features of them: drawn, made and kept, so that a killed run goes on."""

import json
import random
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path

from assistant.errors import UsageError
from assistant.files import write_atomic
from models.decoder import LeanDecoder
from models.target import Cache, Target, TargetSpec
from models.tokenizer import Tokenizer
from models.training.batched import BatchedDecoder
from models.training.budget import Budget
from models.training.corpus import Exclusion, SourceFile, read_corpus
from models.training.features import Collected, FeatureText, Writer, batches, collect, read_shard, shards
from models.training.logged import read_log_folder
from models.training.recipe import Recipe, Say
from models.training.samples import Sample, draw
from models.training.sequential import SequentialWriter

_PARTS = ("held-out", "train")
_TARGET = "target.json"
_LOG_HELD_OUT = 10


def prepare(
    target: Target, tokenizer: Tokenizer, recipe: Recipe, new_cache: Callable[[], Cache], say: Say
) -> tuple[dict[str, list[FeatureText]], float]:
    """Texts with the target's features, "train" and "held-out", and the seconds that they took, runs before included.

    What `recipe.out` lacks is made first.

    Raises:
        UsageError: the folders hold nothing to make texts of.
    """
    keep_target(recipe.out, target.spec)
    exclusion = Exclusion.read(recipe.exclude)
    writer = _writer(target, new_cache)
    samples = _samples(tokenizer, recipe, target.spec.name, exclusion, say)
    texts: dict[str, list[FeatureText]] = {}
    before = 0.0
    for part in _PARTS:
        folder = recipe.out / "features" / part
        before += _collect(writer, tokenizer, samples[part], folder, exclusion, recipe, before, say)
        texts[part] = [text for shard in shards(folder) for text in read_shard(shard)]
        if not texts[part]:
            raise UsageError("nothing was left of the texts under --data: name more folders, or raise --samples.")
    return texts, before


def read_texts(run: Path) -> dict[str, list[FeatureText]]:
    """The texts that a run has made so far, "train" and "held-out"."""
    folders = {part: run / "features" / part for part in _PARTS}
    return {part: [text for path in shards(folder) for text in read_shard(path)] for part, folder in folders.items()}


def make_held_out(
    target: Target, tokenizer: Tokenizer, recipe: Recipe, new_cache: Callable[[], Cache], say: Say
) -> list[FeatureText]:
    """Texts of those files of the recipe's data that no run trains on, with the target's features.

    Raises:
        UsageError: the folders hold nothing to make texts of.
    """
    exclusion = Exclusion.read(recipe.exclude)
    corpus = read_corpus(recipe.data, exclusion, files_per_language=recipe.files_per_language)
    files = [file for file in corpus if file.held_out] or corpus
    drawn = draw(files, tokenizer, recipe.held_out, exclusion, recipe.training.seed + 1)
    folder = recipe.out / "features" / "held-out"
    _collect(_writer(target, new_cache), tokenizer, drawn, folder, exclusion, recipe, 0.0, say)
    return [text for shard in shards(folder) for text in read_shard(shard)]


def keep_target(out: Path, spec: TargetSpec) -> None:
    """Remember whose features a run's folder holds.

    Raises:
        UsageError: it holds another target's.
    """
    check_target(out, spec)
    write_atomic(out / _TARGET, json.dumps(_facts(spec)).encode())


def check_target(out: Path, spec: TargetSpec) -> None:
    """See that a run's features are this target's.

    Raises:
        UsageError: they are those of another model or precision.
    """
    path = out / _TARGET
    kept = json.loads(path.read_text(encoding="utf-8")) if path.exists() else _facts(spec)
    if kept != _facts(spec):
        raise UsageError(
            f"{out} holds features of {kept['model']} in {kept['precision']}, not of {spec.name} in {spec.precision}: "
            "choose that model and --precision, or another folder."
        )


def _facts(spec: TargetSpec) -> dict[str, str]:
    return {"model": spec.name, "precision": spec.precision}


def _writer(target: Target, new_cache: Callable[[], Cache]) -> Writer:
    return BatchedDecoder(target) if isinstance(target, LeanDecoder) else SequentialWriter(target, new_cache)


def _samples(
    tokenizer: Tokenizer, recipe: Recipe, model: str, exclusion: Exclusion, say: Say
) -> dict[str, list[Sample]]:
    """Each part's samples: drawn once, and kept, so that a folder that changes does not change a run."""
    paths = {part: recipe.out / f"samples-{part}.json" for part in _PARTS}
    if not all(path.exists() for path in paths.values()):
        logged = _logged(tokenizer, recipe, model, say)
        corpus = (
            read_corpus(recipe.data, exclusion, files_per_language=recipe.files_per_language) if recipe.data else []
        )
        for part, path in paths.items():
            drawn = [*logged[part], *_drawn(corpus, tokenizer, recipe, exclusion, part, say)]
            random.Random(recipe.training.seed).shuffle(drawn)  # noqa: S311 - nothing secret
            write_atomic(path, json.dumps([asdict(sample) for sample in drawn]).encode())
    return {part: _read_samples(path) for part, path in paths.items()}


def _drawn(
    corpus: Sequence[SourceFile], tokenizer: Tokenizer, recipe: Recipe, exclusion: Exclusion, part: str, say: Say
) -> list[Sample]:
    if not corpus:
        return []
    held_out = part == "held-out"
    files = [file for file in corpus if file.held_out == held_out] or corpus
    say(f"{part} texts are drawn from {len(files)} files: {_by_language(files)}")
    mix = recipe.held_out if held_out else recipe.mix
    return draw(files, tokenizer, mix, exclusion, recipe.training.seed + held_out)


def _logged(tokenizer: Tokenizer, recipe: Recipe, model: str, say: Say) -> dict[str, list[Sample]]:
    """What the daemon kept; every so many-th completion is held out."""
    if recipe.log is None:
        return {part: [] for part in _PARTS}
    found = read_log_folder(recipe.log, model, tokenizer.vocab_size, recipe.mix)
    say(f"{len(found.samples)} completions from {recipe.log}, {found.skipped} lines of other models or damaged")
    held_out = found.samples[:: _LOG_HELD_OUT if len(found.samples) > _LOG_HELD_OUT else 2]
    judged = set(held_out)
    train = [sample for sample in found.samples if sample not in judged] or list(found.samples)
    return {"held-out": list(held_out), "train": train}


def _read_samples(path: Path) -> list[Sample]:
    rows = json.loads(path.read_text(encoding="utf-8"))
    if not rows:
        message = "the files under --data are too few or too short to draw texts from: name more folders."
        raise UsageError(message)
    return [Sample(**{**row, "ids": tuple(row["ids"])}) for row in rows]


def _by_language(files: Sequence[SourceFile]) -> str:
    counts = Counter(file.language for file in files)
    return ", ".join(f"{language} {count}" for language, count in counts.most_common())


def _collect(
    writer: Writer,
    tokenizer: Tokenizer,
    samples: Sequence[Sample],
    folder: Path,
    exclusion: Exclusion,
    recipe: Recipe,
    before: float,
    say: Say,
) -> float:
    """Make a part's shards; returns the seconds that they took, in this run and those before it."""
    part = folder.name
    budget = recipe.budget if part == "train" else Budget()
    latest = [Collected(0, 1, 0, 0.0)]

    def enough(collected: Collected) -> bool:
        latest[0] = collected
        return budget.enough(collected, before)

    def progress(collected: Collected) -> None:
        latest[0] = collected
        share = max(collected.batches / collected.of, budget.share(collected, before))
        left = collected.seconds / share * (1 - min(1.0, share))
        say(
            f"{part} features: batch {collected.batches} of at most {collected.of}, {collected.tokens} tokens, "
            f"{collected.tokens / max(collected.seconds, 1e-3):.0f} a second, about {left / 60:.0f} minutes left"
        )

    collect(
        writer,
        tokenizer,
        batches(samples),
        folder,
        exclusion,
        seed=recipe.training.seed,
        enough=enough,
        progress=progress,
    )
    return latest[0].seconds
