"""From a target and folders of code to a head: texts, features, training, evaluation; each stage is resumed."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path

import torch
from safetensors.torch import save_file

from assistant.errors import ArchitectureError
from assistant.files import atomic_file, ensure_dir, write_atomic
from models import checkpoints
from models.decoder_config import DecoderConfig
from models.target import Cache, Target
from models.tokenizer import Tokenizer
from models.training import evaluate, vocabulary
from models.training.card import write_card
from models.training.corpus import Exclusion, read_corpus
from models.training.curve import write_curve
from models.training.drafting import drafting_with
from models.training.features import FeatureText
from models.training.fitting import TRAINING, Stage, fit
from models.training.head import TrainableHead, head_config, head_shape, head_state, load_state
from models.training.lesson import HeadLesson
from models.training.loop import CHECKPOINT, read_log
from models.training.recipe import Recipe, Say
from models.training.scaled import head_scales
from models.training.simulate import Drafting
from models.training.start import Donor, Weights, closed_form_head
from models.training.texts import prepare

_MEASURED = 16
"""texts over which channels' sizes are taken"""
Texts = dict[str, list[FeatureText]]


def train_head(
    target: Target,
    tokenizer: Tokenizer,
    recipe: Recipe,
    new_cache: Callable[[], Cache],
    say: Say = lambda _: None,
    weights: Weights = lambda: None,
) -> Path:
    """Run what is still to be done in `recipe.out`; returns the folder of the finished head.

    Args:
        target: that the head is to draft for.
        tokenizer: the target's.
        recipe: a killed run is resumed by the same recipe; stages that are done are not done again.
        new_cache: makes an empty cache for the target, for targets that cannot run in batches.
        say: told one line of progress at a time.
        weights: opens the target's own tensors, asked where a head is started without another one.

    Raises:
        UsageError: no usable files; DivergedError: the loss is no number; StorageError: the disk is full or read-only.
    """
    config = config_of(target)
    ensure_dir(recipe.out)
    texts, spent = prepare(target, tokenizer, recipe, new_cache, say)
    drafting, coverage = _drafting(target, tokenizer, texts, recipe, say)
    head = _start(target, config, texts["train"], drafting, recipe, weights, say)
    say(f"training on {sum(len(text.ids) for text in texts['train'])} tokens of {len(texts['train'])} texts")
    best = fit(_stage(head, texts, drafting, recipe), recipe, spent, say)
    return _finish(best, recipe.target or target.spec.name, texts, drafting, coverage, recipe, say)


def config_of(target: Target) -> DecoderConfig:
    """A lean target's shape.

    Raises:
        ArchitectureError: the target is none that heads or drafts can be trained for.
    """
    config = getattr(target, "config", None)
    if not isinstance(config, DecoderConfig):
        message = f"no draft can be trained for {target.spec.name}: only Llama, Qwen2 and Qwen3 models have one here."
        raise ArchitectureError(message)
    return config


def _drafting(
    target: Target, tokenizer: Tokenizer, texts: Texts, recipe: Recipe, say: Say
) -> tuple[Drafting, dict[str, float]]:
    """The draft vocabulary, its rows of the target's head, and its coverage of held-out texts by language."""
    kept = checkpoints.read_head(recipe.start).state.get("draft_vocab_ids") if recipe.start else None
    if kept is not None and recipe.draft_vocab_size is None:
        chosen = kept.long()  # a head to go on from decides its own vocabulary, unless another is asked for
    else:
        files = vocabulary.kept_counts(recipe.out, lambda: _count_files(tokenizer, recipe, say))
        size = min(recipe.draft_vocab_size or vocabulary.DRAFT_VOCABULARY, tokenizer.vocab_size)
        counts = (vocabulary.count_tokens(texts["train"]), files)
        chosen = vocabulary.fill(vocabulary.choose(counts, size, sorted(tokenizer.eos_ids)), size, range(size))
    dtype = torch.bfloat16 if recipe.training.precision == "bfloat16" else torch.float32
    coverage = vocabulary.coverage(vocabulary.count_tokens(texts["held-out"]), chosen)
    return drafting_with(target, chosen, dtype), coverage


def _count_files(tokenizer: Tokenizer, recipe: Recipe, say: Say) -> vocabulary.Counts:
    if not recipe.data:
        return {}
    say("counting the tokens of the files for the draft vocabulary")
    exclusion = Exclusion.read(recipe.exclude)
    files = read_corpus(recipe.data, exclusion, files_per_language=recipe.files_per_language)
    return vocabulary.count_files(files, tokenizer)


def _start(
    target: Target,
    config: DecoderConfig,
    texts: Sequence[FeatureText],
    drafting: Drafting,
    recipe: Recipe,
    weights: Weights,
    say: Say,
) -> TrainableHead:
    start = checkpoints.read_head(recipe.start).state if recipe.start else {}
    gate = start.get("layers.0.mlp.gate_proj.weight")
    # A head to go on from decides its own size.
    size = recipe.intermediate_size if gate is None else gate.shape[0]
    head = TrainableHead(head_shape(config, size)).to(target.spec.device)
    if (recipe.out / TRAINING / CHECKPOINT).exists():
        return head  # everything is in the checkpoint
    if recipe.start is not None:
        load_state(head, start)
        return head
    say("solving for a start in closed form")
    donor = None if config.qk_norm else Donor.of(weights())
    return closed_form_head(head.config, texts, drafting.embed, donor=donor, seed=recipe.training.seed)


def _stage(head: TrainableHead, texts: Texts, drafting: Drafting, recipe: Recipe) -> Stage[TrainableHead]:
    options = recipe.training
    judged = evaluate.spread(texts["held-out"], recipe.judged)
    return Stage(
        HeadLesson(head, drafting.vocabulary, options),
        texts["train"],
        drafting.draft_vocab,
        drafting.embed,
        lambda averaged: evaluate.figures(averaged, judged, drafting),
        f"tokens per step with {evaluate.NODES[-1]} nodes",
        head_scales(head, evaluate.spread(texts["train"], _MEASURED), drafting.embed),
    )


def _finish(
    head: TrainableHead,
    target: str,
    texts: Texts,
    drafting: Drafting,
    coverage: dict[str, float],
    recipe: Recipe,
    say: Say,
) -> Path:
    folder = ensure_dir(recipe.out / "head")
    if (folder / "config.json").exists():
        return folder
    say(f"evaluating the head on all {len(texts['held-out'])} held-out texts")
    final = evaluate.figures(head, texts["held-out"], drafting)
    config = head_config(head.config, target, len(drafting.draft_vocab))
    with atomic_file(folder / "model.safetensors") as temporary:
        save_file(head_state(head, drafting.draft_vocab), temporary)
    log = read_log(recipe.out / TRAINING)
    write_curve(log, folder)
    write_atomic(folder / "evaluation.json", json.dumps({**final, "coverage": coverage}, indent=1).encode())
    write_card(folder / "README.md", target, texts["train"], log, final, coverage, recipe.training, recipe.command)
    # The config comes last: a folder with one is a whole head.
    write_atomic(folder / "config.json", json.dumps(config, indent=2).encode())
    return folder
