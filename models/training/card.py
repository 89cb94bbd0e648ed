"""A head's card: what it fits, what it was made from, what it reaches."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from assistant.files import write_atomic
from models.training.features import FeatureText
from models.training.options import TrainOptions
from models.training.recipe import Recipe

_LAYOUT = (
    "SafeAILab's EAGLE-1/2 layout, float16: `fc` takes concat(embedding of token i+1, feature i), position i; no norm "
    "before the layer and none after it; `draft_vocab_ids` lists the target ids that it drafts."
)

_DRAFT_LAYOUT = (
    "{layers} of its target's {of} layers, distilled; embedding, output head and tokenizer are the target's. "
    "Use it with `--method sps --draft` and this folder."
)


def write_card(
    path: Path,
    target: str,
    texts: Sequence[FeatureText],
    log: Sequence[Mapping[str, Any]],
    final: Mapping[str, Any],
    coverage: Mapping[str, float],
    options: TrainOptions,
    command: str,
) -> None:
    """Write the card as Markdown; `final` is the evaluation of the kept head on all held-out texts."""
    best: Mapping[str, Any] = max(log, key=lambda row: row["score"], default={})
    parts = [
        f"# A draft head for {target}",
        _LAYOUT,
        f"Made by `{command}`." if command else "",
        "## Texts",
        _texts_table(texts),
        "## Draft vocabulary",
        _table(("language", "held-out tokens covered"), [(name, f"{share:.1%}") for name, share in coverage.items()]),
        "## Training",
        f"{best.get('step', 0)} steps, {best.get('tokens', 0):,} token visits. {_said(options)}.",
        "## On held-out texts",
        "Tokens per step with EAGLE-2 trees (depth 6, width 8) on what the target writes greedily:",
        _steps_table(final),
        "Top-1 agreement with the target by number of the head's own features in the input: "
        + ", ".join(f"{share:.1%}" for share in final.get("top1_by_estimated", ()))
        + ". The curve over training is in `curve.json` and `curve.png`.",
    ]
    write_atomic(path, ("\n\n".join(part for part in parts if part) + "\n").encode())


def write_draft_card(
    path: Path, recipe: Recipe, layers: int, of: int, texts: Sequence[FeatureText], log: Sequence[Mapping[str, Any]]
) -> None:
    """Write the card of an independent draft model."""
    best: Mapping[str, Any] = max(log, key=lambda row: row["score"], default={})
    chains = best.get("tokens_per_step", {}).get("all", {})
    parts = [
        f"# A draft model for {recipe.target}",
        _DRAFT_LAYOUT.format(layers=layers, of=of),
        f"Made by `{recipe.command}`." if recipe.command else "",
        "## Texts",
        _texts_table(texts),
        "## Training",
        f"{best.get('step', 0)} steps, {best.get('tokens', 0):,} token visits. {_said(recipe.training)}.",
        "## On held-out texts",
        "Tokens per step with chains on what the target writes greedily: "
        + ", ".join(f"{value:.2f} with {length} drafts" for length, value in chains.items())
        + ". The curve over training is in `curve.json` and `curve.png`.",
    ]
    write_atomic(path, ("\n\n".join(part for part in parts if part) + "\n").encode())


def _said(options: TrainOptions) -> str:
    return ", ".join(f"{name} {value}" for name, value in asdict(options).items() if name != "losses")


def _texts_table(texts: Sequence[FeatureText]) -> str:
    given: Counter[tuple[str, str]] = Counter()
    own: Counter[tuple[str, str]] = Counter()
    for text in texts:
        given[text.kind, text.language] += text.prompt_tokens
        own[text.kind, text.language] += len(text.ids) - text.prompt_tokens
    rows = [
        (kind, language, f"{given[kind, language]:,}", f"{own[kind, language]:,}") for kind, language in sorted(given)
    ]
    rows.append(("all", "", f"{given.total():,}", f"{own.total():,}"))
    return _table(("kind", "language", "tokens given", "tokens the target wrote"), rows)


def _steps_table(best: Mapping[str, Any]) -> str:
    by_kind = best.get("tokens_per_step", {})
    nodes = list(by_kind.get("all", {}))
    return _table(
        ("texts", *(f"{n} nodes" for n in nodes)), [(k, *(f"{v:.2f}" for v in r.values())) for k, r in by_kind.items()]
    )


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)
