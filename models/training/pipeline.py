"""From a target and folders of code to a head: texts, features, training, evaluation; each stage is resumed."""

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file

from assistant.errors import ArchitectureError, UsageError
from assistant.files import atomic_file, ensure_dir, write_atomic
from models import checkpoints
from models.decoder import LeanDecoder
from models.decoder_config import DecoderConfig
from models.target import Cache, Target
from models.tokenizer import Tokenizer
from models.training import evaluate, vocabulary
from models.training.batched import BatchedDecoder
from models.training.card import write_card
from models.training.corpus import Exclusion, read_corpus
from models.training.curve import write_curve
from models.training.drafting import drafting_with
from models.training.features import FeatureText, Writer, batches, collect, read_shard, shards
from models.training.head import TrainableHead, head_config, head_shape, head_state, load_state
from models.training.loop import Trainer, TrainOptions, read_log
from models.training.samples import Mix, Sample, draw
from models.training.sequential import SequentialWriter
from models.training.simulate import Drafting
from models.training.start import least_squares_head

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Recipe:
    """Everything that decides what a run makes."""

    data: tuple[Path, ...]
    out: Path
    exclude: tuple[Path, ...] = ()
    """task files whose texts are refused"""
    mix: Mix = field(default_factory=lambda: Mix.of(3000))
    held_out: Mix = field(default_factory=lambda: Mix.of(120))
    files_per_language: int = 600
    draft_vocab_size: int = 8192
    intermediate_size: int = 2048
    """neurons of the head's MLP"""
    start: str | None = None
    """a head to start from; None solves for the best linear map first"""
    training: TrainOptions = field(default_factory=TrainOptions)
    target: str = ""
    """the name by which a head is found for its model; the target's own where empty"""
    command: str = ""
    """for the card"""


def train_head(
    target: Target, tokenizer: Tokenizer, recipe: Recipe, new_cache: Callable[[], Cache], say: Say = lambda _: None
) -> Path:
    """Run what is still to be done in `recipe.out`; returns the folder of the finished head.

    Args:
        target: that the head is to draft for.
        tokenizer: the target's.
        recipe: a killed run is resumed by the same recipe; stages that are done are not done again.
        new_cache: makes an empty cache for the target, for targets that cannot run in batches.
        say: told one line of progress at a time.

    Raises:
        UsageError: no usable files; DivergedError: the loss is no number; StorageError: the disk is full or read-only.
    """
    config = _config_of(target)
    ensure_dir(recipe.out)
    exclusion = Exclusion.read(recipe.exclude)
    writer = BatchedDecoder(target) if isinstance(target, LeanDecoder) else SequentialWriter(target, new_cache)
    texts = {}
    for part in ("held-out", "train"):
        folder = recipe.out / "features" / part
        work = _samples(tokenizer, recipe, exclusion, part, say)
        _collect(writer, tokenizer, work, folder, exclusion, recipe, part, say)
        texts[part] = [text for shard in shards(folder) for text in read_shard(shard)]
    drafting, coverage = _drafting(target, tokenizer, texts, recipe)
    head = _start(target, config, texts["train"], drafting, recipe)
    say(f"training on {sum(len(text.ids) for text in texts['train'])} tokens of {len(texts['train'])} texts")
    best = _train(head, texts, drafting, recipe, say)
    return _finish(best, recipe.target or target.spec.name, texts, drafting, coverage, recipe)


def _config_of(target: Target) -> DecoderConfig:
    config = getattr(target, "config", None)
    if not isinstance(config, DecoderConfig):
        message = (
            f"no draft head can be trained for {target.spec.name}: only Llama, Qwen2 and Qwen3 models have one here."
        )
        raise ArchitectureError(message)
    return config


def _samples(tokenizer: Tokenizer, recipe: Recipe, exclusion: Exclusion, part: str, say: Say) -> list[Sample]:
    """The part's samples: drawn once, and kept, so that a folder that changes does not change a run."""
    path = recipe.out / f"samples-{part}.json"
    if not path.exists():
        corpus = read_corpus(recipe.data, exclusion, files_per_language=recipe.files_per_language)
        held_out = part == "held-out"
        files = [file for file in corpus if file.held_out == held_out]
        say(f"{part} texts are drawn from {len(files or corpus)} files")
        mix = recipe.held_out if held_out else recipe.mix
        drawn = draw(files or corpus, tokenizer, mix, exclusion, recipe.training.seed + held_out)
        write_atomic(path, json.dumps([asdict(sample) for sample in drawn]).encode())
    rows = json.loads(path.read_text(encoding="utf-8"))
    if not rows:
        message = "the files under --data are too few or too short to draw texts from: name more folders."
        raise UsageError(message)
    return [Sample(**{**row, "ids": tuple(row["ids"])}) for row in rows]


def _collect(
    writer: Writer,
    tokenizer: Tokenizer,
    samples: Sequence[Sample],
    folder: Path,
    exclusion: Exclusion,
    recipe: Recipe,
    part: str,
    say: Say,
) -> None:
    spent: list[float] = []

    def progress(done: int, of: int, seconds: float) -> None:
        spent.append(seconds)
        left = (of - done) * sum(spent) / len(spent)
        say(f"{part} features: batch {done} of {of}, about {left / 60:.0f} minutes left")

    collect(writer, tokenizer, batches(samples), folder, exclusion, seed=recipe.training.seed, progress=progress)


def _drafting(
    target: Target, tokenizer: Tokenizer, texts: dict[str, list[FeatureText]], recipe: Recipe
) -> tuple[Drafting, dict[str, float]]:
    """The draft vocabulary, its rows of the target's head, and its coverage of held-out texts by language."""
    counts = vocabulary.count_tokens(texts["train"])
    size = min(recipe.draft_vocab_size, tokenizer.vocab_size)
    chosen = vocabulary.fill(vocabulary.choose(counts, size, sorted(tokenizer.eos_ids)), size, range(size))
    dtype = torch.bfloat16 if recipe.training.precision == "bfloat16" else torch.float32
    coverage = vocabulary.coverage(vocabulary.count_tokens(texts["held-out"]), chosen)
    return drafting_with(target, chosen, dtype), coverage


def _start(
    target: Target, config: DecoderConfig, texts: Sequence[FeatureText], drafting: Drafting, recipe: Recipe
) -> TrainableHead:
    if recipe.start is None:
        shape = head_shape(config, recipe.intermediate_size)
        return least_squares_head(shape, texts, drafting.embed, recipe.training.seed).to(target.spec.device)
    state = checkpoints.read_head(recipe.start).state
    gate = state.get("layers.0.mlp.gate_proj.weight")
    head = TrainableHead(head_shape(config, recipe.intermediate_size if gate is None else gate.shape[0]))
    load_state(head, state)
    return head.to(target.spec.device)


def _train(
    head: TrainableHead, texts: dict[str, list[FeatureText]], drafting: Drafting, recipe: Recipe, say: Say
) -> TrainableHead:
    """Train, or go on; the best head so far by held-out tokens per step lies in `best.pt`."""
    options, out = recipe.training, recipe.out / "training"
    trainer = Trainer(head, drafting.vocabulary, drafting.draft_vocab, drafting.embed, options, out)
    trainer.resume()
    kept = out / "best.pt"
    scores = [row["score"] for row in read_log(out) if row["step"] <= trainer.progress.step]
    best = [max(scores, default=-1.0)]

    def assess(averaged: TrainableHead) -> dict[str, Any]:
        figures = evaluate.figures(averaged, texts["held-out"], drafting)
        say(f"held-out: {figures['score']:.2f} tokens per step with {evaluate.NODES[-1]} nodes")
        if figures["score"] >= best[0]:
            best[0] = figures["score"]
            with atomic_file(kept) as temporary:
                torch.save(averaged.state_dict(), temporary)
        return figures

    def report(figures: dict[str, Any]) -> None:
        step = figures["step"]
        left = figures["seconds"] / step * (options.steps - step)
        say(f"step {step} of {options.steps}: loss {figures['loss']:.3f}, about {left / 60:.0f} minutes left")

    trainer.run(lambda: texts["train"], assess, report)
    finished = TrainableHead(head.config).to(drafting.draft_vocab.device)
    finished.load_state_dict(torch.load(kept, weights_only=True))
    return finished.eval()


def _finish(
    head: TrainableHead,
    target: str,
    texts: dict[str, list[FeatureText]],
    drafting: Drafting,
    coverage: dict[str, float],
    recipe: Recipe,
) -> Path:
    folder = ensure_dir(recipe.out / "head")
    config = head_config(head.config, target, len(drafting.draft_vocab))
    with atomic_file(folder / "model.safetensors") as temporary:
        save_file(head_state(head, drafting.draft_vocab), temporary)
    log = read_log(recipe.out / "training")
    write_curve(log, folder)
    write_card(folder / "README.md", target, texts["train"], log, coverage, recipe.training, recipe.command)
    # The config comes last: a folder with one is a whole head.
    write_atomic(folder / "config.json", json.dumps(config, indent=2).encode())
    return folder
