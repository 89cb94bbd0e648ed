"""What each ingredient of a head is worth: small heads that differ in one thing, trained alike on a run's features.

All are judged by simulation on the same held-out texts (`models.training.simulate`), so that no target has to run.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal

import torch

from assistant.errors import UsageError
from assistant.files import ensure_dir, write_atomic
from models.decoder_config import DecoderConfig
from models.target import Target
from models.training import evaluate, vocabulary
from models.training.drafting import drafting_with
from models.training.features import FeatureText
from models.training.head import Inputs, TrainableHead, head_shape, random_head
from models.training.lesson import HeadLesson
from models.training.loop import Trainer
from models.training.options import TrainOptions
from models.training.recipe import Say
from models.training.scaled import head_scales
from models.training.simulate import Drafting
from models.training.start import Donor, closed_form_head
from models.training.vocabulary import DRAFT_VOCABULARY

_MEASURED = 16
"""texts over which channels' sizes are taken"""
Start = Literal["random", "linear", "last layer"]


@dataclass(frozen=True, slots=True)
class Variant:
    """One head of a comparison."""

    label: str
    share: float = 1.0
    """of the training texts"""
    unroll: int = 5
    inputs: Inputs = "both"
    vocabulary: int = DRAFT_VOCABULARY
    mlp: int = 2048
    start: Start = "last layer"
    written: float | None = None
    """share of tokens in texts that the target wrote itself, as far as its own words go; None takes what there is"""


ABLATIONS: Mapping[str, tuple[Variant, ...]] = {
    "data": tuple(
        Variant(
            f"{name} of the data, {'multi-step' if unroll > 1 else 'one step'}", share=1 / int(name[2:]), unroll=unroll
        )
        for unroll in (1, 5)
        for name in ("1/8", "1/4", "1/2", "1/1")
    ),
    "inputs": (
        Variant("token", inputs="token"),
        Variant("feature", inputs="feature"),
        Variant("feature and shifted token"),
    ),
    "estimated": (
        Variant("trained at one step", unroll=1),
        Variant("two", unroll=2),
        Variant("three", unroll=3),
        Variant("five"),
    ),
    "vocabulary": tuple(Variant(f"{size} tokens", vocabulary=size) for size in (4096, 8192, 16384, 32768)),
    "mlp": tuple(Variant(f"{size} neurons", mlp=size) for size in (512, 1024, 2048, 4096)),
    "start": (Variant("random", start="random"), Variant("linear", start="linear"), Variant("last layer")),
    "written": tuple(Variant(f"{share:.0%} written by the target", written=share) for share in (0.0, 0.5, 1.0)),
}


@dataclass(frozen=True, slots=True)
class Bench:
    """What all variants share."""

    target: Target
    config: DecoderConfig
    texts: Mapping[str, Sequence[FeatureText]]
    """ "train" and "held-out" """
    donor: Callable[[], Donor | None]
    files: vocabulary.Counts
    """tokens of the files that the texts come from"""
    always: Sequence[int]
    """tokens that every draft vocabulary holds"""
    options: TrainOptions
    held_out: int
    """texts to judge on"""
    out: Path
    say: Say


def run(bench: Bench, name: str, variants: Sequence[Variant]) -> list[dict[str, Any]]:
    """Train and judge what is still missing; returns a row a variant.

    Raises:
        DivergedError: a loss is no number.
    """
    rows = []
    for number, variant in enumerate(variants):
        folder = ensure_dir(bench.out / name / f"{number}")
        kept = folder / "row.json"
        if not kept.exists():
            bench.say(f"{name}: {variant.label} ({number + 1} of {len(variants)})")
            write_atomic(kept, json.dumps(_row(bench, variant, folder), indent=1).encode())
        rows.append(json.loads(kept.read_text(encoding="utf-8")))
    return rows


def _row(bench: Bench, variant: Variant, folder: Path) -> dict[str, Any]:
    texts = list(_chosen(bench.texts["train"], variant))
    judged = evaluate.spread(bench.texts["held-out"], bench.held_out)
    drafting, covered = _drafting(bench, texts, judged, variant)
    head = _head(bench, texts, drafting, variant)
    options = replace(bench.options, unroll=variant.unroll, evaluate_every=bench.options.steps)
    trainer = Trainer(
        HeadLesson(head, drafting.vocabulary, options),
        drafting.draft_vocab,
        drafting.embed,
        options,
        folder,
        head_scales(head, evaluate.spread(texts, _MEASURED), drafting.embed),
    )
    trainer.resume()

    judgements: list[dict[str, Any]] = []

    def judge(averaged: TrainableHead) -> dict[str, Any]:
        judgements.append(evaluate.figures(averaged, judged, drafting))
        return judgements[-1]

    def report(row: Mapping[str, Any]) -> None:
        if row["step"] % 20 == 0:
            bench.say(f"step {row['step']} of {options.steps}: loss {row['loss']:.3f}")

    trainer.run(lambda: texts, judge, report)
    figures = judgements[-1] if judgements else judge(trainer.averaged())
    return {
        **asdict(variant),
        "training_tokens": sum(len(text.ids) for text in texts),
        "token_visits": trainer.progress.tokens,
        "steps": trainer.progress.step,
        "parameters": sum(parameter.numel() for parameter in head.parameters()),
        "coverage": covered,
        "tokens_per_step": figures["tokens_per_step"]["all"],
        "top1_by_estimated": figures["top1_by_estimated"],
    }


def _chosen(texts: Sequence[FeatureText], variant: Variant) -> Iterator[FeatureText]:
    if variant.written is None:
        yield from evaluate.spread(texts, max(1, round(variant.share * len(texts))))
        return
    own = [text for text in texts if text.prompt_tokens < len(text.ids)]
    given = [text for text in texts if text.prompt_tokens >= len(text.ids)]
    room = min(_tokens(own), _tokens(given))
    if not room:
        raise UsageError("the run has no texts of both kinds, written by the target and only read by it.")
    yield from _until(own, variant.written * room)
    yield from _until(given, (1 - variant.written) * room)


def _until(texts: Sequence[FeatureText], tokens: float) -> Iterator[FeatureText]:
    for text in texts:
        if tokens <= 0:
            return
        tokens -= len(text.ids)
        yield text


def _tokens(texts: Sequence[FeatureText]) -> int:
    return sum(len(text.ids) for text in texts)


def _drafting(
    bench: Bench, texts: Sequence[FeatureText], judged: Sequence[FeatureText], variant: Variant
) -> tuple[Drafting, dict[str, float]]:
    """The draft vocabulary of a variant, and what it holds of the judged texts' tokens, by language and of "all"."""
    size = min(variant.vocabulary, bench.target.spec.vocab_size)
    counts = vocabulary.count_tokens(texts)
    chosen = vocabulary.fill(vocabulary.choose((counts, bench.files), size, bench.always), size, range(size))
    found = vocabulary.coverage(vocabulary.with_total(vocabulary.count_tokens(judged)), chosen)
    dtype = torch.bfloat16 if bench.options.precision == "bfloat16" else torch.float32
    return drafting_with(bench.target, chosen, dtype), found


def _head(bench: Bench, texts: Sequence[FeatureText], drafting: Drafting, variant: Variant) -> TrainableHead:
    shape, seed = head_shape(bench.config, variant.mlp), bench.options.seed
    if variant.start == "random":
        return random_head(shape, seed, variant.inputs).to(drafting.device)
    donor = bench.donor() if variant.start == "last layer" else None
    return closed_form_head(shape, texts, drafting.embed, donor=donor, seed=seed, inputs=variant.inputs)
