"""From a target and folders of code to an independent draft model, a folder that `--draft PATH` loads."""

import json
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import Tensor

from assistant.errors import UsageError
from assistant.files import atomic_file, ensure_dir, write_atomic
from models.decoder_config import DecoderConfig
from models.target import Cache, Target
from models.tokenizer import Tokenizer
from models.training import evaluate
from models.training.card import write_draft_card
from models.training.curve import write_curve
from models.training.drafting import embedding_of
from models.training.fitting import TRAINING, Stage, fit
from models.training.loop import read_log
from models.training.pipeline import Texts, config_of
from models.training.recipe import Recipe, Say
from models.training.start import Weights
from models.training.student import (
    Student,
    StudentLesson,
    chain_figures,
    student_config,
    student_from,
    student_state,
)
from models.training.texts import prepare


def train_draft(
    target: Target,
    tokenizer: Tokenizer,
    recipe: Recipe,
    new_cache: Callable[[], Cache],
    say: Say,
    weights: Weights,
) -> Path:
    """Run what is still to be done in `recipe.out`; returns the folder of the finished draft model.

    Args:
        target: that it is to draft for.
        tokenizer: the target's, which the draft model shares.
        recipe: as for a head; `layers` says how large it becomes.
        new_cache: makes an empty cache for the target.
        say: told one line of progress at a time.
        weights: opens the target's own tensors, of which the draft model is made.

    Raises:
        UsageError: no usable files, or as many layers as the target has; ArchitectureError: the target has no layers to
            give; DivergedError: the loss is no number.
    """
    config_of(target)
    opened = weights()
    if opened is None:
        raise UsageError(f"the weights of {target.spec.name} cannot be read one by one: train a head instead.")
    config, state = opened
    if recipe.layers >= config.layers:
        raise UsageError(
            f"a draft model of {recipe.layers} layers is no smaller than {target.spec.name}, which has "
            f"{config.layers}: choose fewer --layers."
        )
    ensure_dir(recipe.out)
    texts, spent = prepare(target, tokenizer, recipe, new_cache, say)
    student = student_from(config, state, recipe.layers).to(target.spec.device)
    best = fit(_stage(student, target, texts, recipe), recipe, spent, say)
    return _finish(best, config, state, tokenizer, texts, recipe)


def _stage(student: Student, target: Target, texts: Texts, recipe: Recipe) -> Stage[Student]:
    dtype = torch.bfloat16 if recipe.training.precision == "bfloat16" else torch.float32
    every = torch.arange(target.spec.vocab_size, device=target.spec.device)
    head, embed = target.head_rows(every).to(dtype), embedding_of(target, dtype)
    judged = evaluate.spread(texts["held-out"], recipe.judged)
    return Stage(
        StudentLesson(student, head),
        texts["train"],
        every,
        embed,
        lambda averaged: chain_figures(averaged, judged, head, embed),
        "tokens per step with chains of 8",
    )


def _finish(
    student: Student,
    config: DecoderConfig,
    state: Mapping[str, Tensor],
    tokenizer: Tokenizer,
    texts: Texts,
    recipe: Recipe,
) -> Path:
    folder = ensure_dir(recipe.out / "draft")
    head = None if config.tied_head else state["lm_head.weight"]
    with atomic_file(folder / "model.safetensors") as temporary:
        save_file(student_state(student, state["model.embed_tokens.weight"], head), temporary)
    write_atomic(folder / "tokenizer.json", json.dumps(_tokenizer_document(tokenizer)).encode())
    log = read_log(recipe.out / TRAINING)
    write_curve(log, folder)
    write_draft_card(folder / "README.md", recipe, student.config.layers, config.layers, texts["train"], log)
    described = student_config(student.config, tokenizer.facts.eos)
    # The config comes last: a folder with one is a whole model.
    write_atomic(folder / "config.json", json.dumps(described, indent=2).encode())
    return folder


def _tokenizer_document(tokenizer: Tokenizer) -> dict[str, Any]:
    """A tokenizer.json with the special tokens that the encoder itself does not hold."""
    with tempfile.TemporaryDirectory() as folder:
        tokenizer.save(Path(folder))
        document: dict[str, Any] = json.loads((Path(folder) / "tokenizer.json").read_text(encoding="utf-8"))
    known = {token["content"] for token in document.get("added_tokens") or ()}
    plain = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False}
    added = [
        {"id": token, "content": text, "special": True, **plain}
        for text, token in sorted(tokenizer.facts.special.items(), key=lambda item: item[1])
        if text not in known
    ]
    return {**document, "added_tokens": [*(document.get("added_tokens") or ()), *added]}
