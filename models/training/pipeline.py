"""From a target and folders of code to a head: texts, features, training, evaluation; each stage is resumed."""

import json
import tempfile
import time
from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file

from assistant.errors import ArchitectureError
from assistant.files import atomic_file, ensure_dir, write_atomic
from models import checkpoints
from models.decoder_config import DecoderConfig
from models.target import Cache, Target
from models.tokenizer import Tokenizer
from models.training import evaluate, vocabulary
from models.training.budget import keep_plan, kept_plan
from models.training.card import write_card
from models.training.curve import write_curve
from models.training.drafting import drafting_with
from models.training.features import FeatureText
from models.training.head import TrainableHead, head_config, head_shape, head_state, load_state
from models.training.loop import CHECKPOINT, Trainer, TrainOptions, read_log
from models.training.recipe import Recipe, Say
from models.training.simulate import Drafting
from models.training.start import Donor, closed_form_head
from models.training.texts import prepare

_TRIAL_STEPS = 4


def train_head(
    target: Target,
    tokenizer: Tokenizer,
    recipe: Recipe,
    new_cache: Callable[[], Cache],
    say: Say = lambda _: None,
    donor: Callable[[], Donor | None] = lambda: None,
) -> Path:
    """Run what is still to be done in `recipe.out`; returns the folder of the finished head.

    Args:
        target: that the head is to draft for.
        tokenizer: the target's.
        recipe: a killed run is resumed by the same recipe; stages that are done are not done again.
        new_cache: makes an empty cache for the target, for targets that cannot run in batches.
        say: told one line of progress at a time.
        donor: reads the target's last layer, asked where a head is started without another one.

    Raises:
        UsageError: no usable files; DivergedError: the loss is no number; StorageError: the disk is full or read-only.
    """
    config = _config_of(target)
    ensure_dir(recipe.out)
    texts, spent = prepare(target, tokenizer, recipe, new_cache, say)
    drafting, coverage = _drafting(target, tokenizer, texts, recipe)
    say(f"training on {_tokens(texts['train'])} tokens of {len(texts['train'])} texts")
    head = _start(target, config, texts["train"], drafting, recipe, donor, say)
    best = _train(head, texts, drafting, recipe, spent, say)
    return _finish(best, recipe.target or target.spec.name, texts, drafting, coverage, recipe, say)


def _config_of(target: Target) -> DecoderConfig:
    config = getattr(target, "config", None)
    if not isinstance(config, DecoderConfig):
        message = (
            f"no draft head can be trained for {target.spec.name}: only Llama, Qwen2 and Qwen3 models have one here."
        )
        raise ArchitectureError(message)
    return config


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
    target: Target,
    config: DecoderConfig,
    texts: Sequence[FeatureText],
    drafting: Drafting,
    recipe: Recipe,
    donor: Callable[[], Donor | None],
    say: Say,
) -> TrainableHead:
    device = target.spec.device
    if (recipe.out / "training" / CHECKPOINT).exists():
        # Everything is in the checkpoint; a start would be solved for only to be overwritten.
        return TrainableHead(head_shape(config, recipe.intermediate_size)).to(device)
    if recipe.start is None:
        say("solving for a start in closed form")
        shape = head_shape(config, recipe.intermediate_size)
        given = None if config.qk_norm else donor()
        return closed_form_head(shape, texts, drafting.embed, donor=given, seed=recipe.training.seed).to(device)
    head = TrainableHead(head_shape(config, recipe.intermediate_size))
    load_state(head, checkpoints.read_head(recipe.start).state)
    return head.to(device)


def _train(
    head: TrainableHead,
    texts: dict[str, list[FeatureText]],
    drafting: Drafting,
    recipe: Recipe,
    spent: float,
    say: Say,
) -> TrainableHead:
    """Train, or go on; the best head so far by held-out tokens per step lies in `best.pt`."""
    out = recipe.out / "training"
    judged = evaluate.spread(texts["held-out"], recipe.judged)
    options = _fitted(head, texts["train"], judged, drafting, recipe, spent, say)
    trainer = Trainer(head, drafting.vocabulary, drafting.draft_vocab, drafting.embed, options, out)
    trainer.resume()
    kept = out / "best.pt"
    scores = [row["score"] for row in read_log(out) if row["step"] <= trainer.progress.step]
    best = [max(scores, default=-1.0)]

    def assess(averaged: TrainableHead) -> dict[str, Any]:
        figures = evaluate.figures(averaged, judged, drafting)
        say(f"held-out: {figures['score']:.2f} tokens per step with {evaluate.NODES[-1]} nodes")
        if figures["score"] >= best[0]:
            best[0] = figures["score"]
            with atomic_file(kept) as temporary:
                torch.save(averaged.state_dict(), temporary)
        return figures

    def report(figures: dict[str, Any]) -> None:
        step = figures["step"]
        left = figures["seconds"] / step * (options.steps - step)
        say(
            f"step {step} of {options.steps}: loss {figures['loss']:.3f}, "
            f"{figures['tokens'] / figures['seconds']:.0f} tokens a second, about {left / 60:.0f} minutes left"
        )

    trainer.run(lambda: texts["train"], assess, report)
    finished = TrainableHead(head.config).to(drafting.draft_vocab.device)
    finished.load_state_dict(torch.load(kept, weights_only=True))
    return finished.eval()


def _fitted(
    head: TrainableHead,
    texts: Sequence[FeatureText],
    judged: Sequence[FeatureText],
    drafting: Drafting,
    recipe: Recipe,
    spent: float,
    say: Say,
) -> TrainOptions:
    """The recipe's options, with steps as its minutes allow; measured once, and kept."""
    if recipe.budget.minutes is None:
        return recipe.training
    path = recipe.out / "plan.json"
    plan = kept_plan(path)
    if plan is None:
        with tempfile.TemporaryDirectory(dir=recipe.out) as trial:
            few = replace(recipe.training, steps=_TRIAL_STEPS)
            trainer = Trainer(
                deepcopy(head), drafting.vocabulary, drafting.draft_vocab, drafting.embed, few, Path(trial)
            )
            evaluations: list[float] = []

            def assess(averaged: TrainableHead) -> dict[str, Any]:
                begun = time.monotonic()
                figures = evaluate.figures(averaged, judged, drafting)
                evaluations.append(time.monotonic() - begun)
                return figures

            trainer.run(lambda: texts, assess)
        step = trainer.progress.seconds / _TRIAL_STEPS
        plan = recipe.budget.fitted(recipe.training, spent, step, evaluations[-1])
        keep_plan(path, plan)
        say(f"a step takes {step:.1f} s and an evaluation {evaluations[-1]:.0f} s: {plan.steps} steps will be trained")
    return plan


def _finish(
    head: TrainableHead,
    target: str,
    texts: dict[str, list[FeatureText]],
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
    log = read_log(recipe.out / "training")
    write_curve(log, folder)
    write_atomic(folder / "evaluation.json", json.dumps({**final, "coverage": coverage}, indent=1).encode())
    write_card(folder / "README.md", target, texts["train"], log, final, coverage, recipe.training, recipe.command)
    # The config comes last: a folder with one is a whole head.
    write_atomic(folder / "config.json", json.dumps(config, indent=2).encode())
    return folder


def _tokens(texts: Sequence[FeatureText]) -> int:
    return sum(len(text.ids) for text in texts)
