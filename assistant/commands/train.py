"""`eagle-assist train`: a draft head, or a draft model, for a model, from folders of code."""

import shlex
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from assistant import paths
from assistant.commands.opening import loading
from assistant.commands.options import PRECISIONS, Device, Number
from assistant.errors import UsageError

if TYPE_CHECKING:
    import torch

    from models.training.recipe import Recipe

_FOLDER = click.Path(path_type=Path)
_THE_LOG = Path("-")
"""stands for the daemon's own folder, which is only looked up when the command runs"""


@click.command()
@click.option("--model", metavar="NAME|PATH", help="The model to draft for.")
@click.option(
    "--layout",
    type=click.Choice(("eagle2", "draft")),
    default="eagle2",
    show_default=True,
    help="eagle2: a draft head. draft: an independent small model for --method sps.",
)
@click.option("--data", type=_FOLDER, multiple=True, help="A folder of source files; may be repeated.")
@click.option(
    "--from-log",
    type=_FOLDER,
    is_flag=False,
    flag_value=_THE_LOG,
    metavar="[FOLDER]",
    help="Train on completions that the daemon kept; without a folder on those of its own.",
)
@click.option("--out", type=_FOLDER, required=True, help="The run's folder; a run that was killed goes on from it.")
@click.option(
    "--exclude",
    type=_FOLDER,
    multiple=True,
    help="Task files (.jsonl, .jsonl.gz) whose texts are refused; may be repeated.",
)
@click.option("--continue", "go_on", is_flag=True, help="Start from the head that drafts for the model now.")
@click.option("--start", metavar="NAME|PATH", help="A head to start from; by default one is solved for in closed form.")
@click.option("--samples", type=click.IntRange(5), default=3000, show_default=True, help="Texts to train on.")
@click.option(
    "--files", type=click.IntRange(1), default=600, show_default=True, help="Files of a language to draw from."
)
@click.option(
    "--write", type=click.IntRange(8, 2048), default=144, show_default=True, help="Tokens the model adds to a text."
)
@click.option(
    "--sequences", type=click.IntRange(1, 4096), default=48, show_default=True, help="Texts it writes at once."
)
@click.option(
    "--draft-vocab", type=click.IntRange(16), help="Tokens the head can draft; by default 16384, or as --start has it."
)
@click.option("--mlp", type=click.IntRange(8), default=2048, show_default=True, help="Neurons of the head's MLP.")
@click.option("--layers", type=click.IntRange(1), default=4, show_default=True, help="Of an independent draft model.")
@click.option(
    "--minutes",
    type=Number(0.1, 100_000),
    help="Fit the whole run into so many minutes: features take two fifths, steps are chosen to fill the rest.",
)
@click.option("--tokens", type=click.IntRange(1000), help="Stop making features at so many tokens of training texts.")
@click.option("--steps", type=click.IntRange(1), default=1500, show_default=True, help="Optimizer steps.")
@click.option("--batch-tokens", type=click.IntRange(64), default=2048, show_default=True)
@click.option("--learning-rate", type=Number(1e-7, 1), help="By default what suits the optimizer and the start.")
@click.option("--optimizer", type=click.Choice(("scaled", "adamw", "muon")), default="scaled", show_default=True)
@click.option(
    "--unroll",
    type=click.IntRange(1, 8),
    default=5,
    show_default=True,
    help="Steps on the head's own outputs (HASS; EAGLE-3's training-time test); 1 is EAGLE-1's training.",
)
@click.option(
    "--anchors", type=Number(0.01, 1), default=0.3, show_default=True, help="Share of places that are unrolled."
)
@click.option(
    "--evaluate-every", type=click.IntRange(1), default=100, show_default=True, help="Steps between evaluations."
)
@click.option("--seed", type=click.IntRange(0, 2**31), default=0)
@click.option(
    "--precision", type=click.Choice(PRECISIONS), default="auto", help="Of the model whose features are learned."
)
@click.option("--device", type=Device(), default="auto", metavar="auto|cpu|cuda[:N]|mps", help="Where to compute.")
def train(*, model: str | None, layout: str, precision: str, device: str, **choices: Any) -> None:
    """Train a draft: texts, the model's features of them, training, evaluation.

    Every stage keeps what it made in the run's folder, and a run that was killed goes on when the same command is given
    again. The head (or draft model), its card and its learning curve end up in OUT/head (or OUT/draft).
    """
    if not choices["data"] and choices["from_log"] is None:
        raise UsageError("there is nothing to train on: name folders with --data, or the daemon's log with --from-log.")
    with loading(show=True) as progress:
        from assistant.engine.kv_cache import KVCache
        from models.catalog import DEFAULT_MODEL
        from models.loading import load, original_weights
        from models.training.draft_pipeline import train_draft
        from models.training.pipeline import train_head

        loaded = load(model or DEFAULT_MODEL, precision, device, progress=progress)
    recipe = _recipe(choices, loaded.source.name, loaded.target.spec.device)
    folder = (train_draft if layout == "draft" else train_head)(
        loaded.target,
        loaded.tokenizer,
        recipe,
        lambda: KVCache.of(loaded.target.spec),
        _say,
        lambda: original_weights(loaded.source),
    )
    click.echo(str(folder))


def _recipe(choices: dict[str, Any], target: str, device: "torch.device") -> "Recipe":
    from models.training.budget import Budget
    from models.training.options import RATE, RATE_ON, TrainOptions
    from models.training.products import quickest_precision
    from models.training.recipe import Recipe
    from models.training.samples import Mix

    start = _start(choices["start"], target, go_on=choices["go_on"])
    rate = choices["learning_rate"] or (RATE if start is None else RATE_ON)
    names = ("steps", "batch_tokens", "optimizer", "unroll", "anchors", "evaluate_every", "seed")
    return Recipe(
        data=choices["data"],
        out=choices["out"],
        log=paths.learned_dir() if choices["from_log"] == _THE_LOG else choices["from_log"],
        exclude=choices["exclude"],
        mix=Mix.of(choices["samples"], choices["write"]),
        held_out=Mix.of(max(10, min(120, choices["samples"] // 10)), choices["write"]),
        files_per_language=choices["files"],
        draft_vocab_size=choices["draft_vocab"],
        intermediate_size=choices["mlp"],
        layers=choices["layers"],
        start=start,
        sequences=choices["sequences"],
        budget=Budget(choices["minutes"], choices["tokens"]),
        training=TrainOptions(
            learning_rate=rate, precision=quickest_precision(device), **{name: choices[name] for name in names}
        ),
        target=target,
        command=shlex.join(["eagle-assist", *sys.argv[1:]]),
    )


def _start(start: str | None, target: str, *, go_on: bool) -> str | None:
    """The head to start from: the one named, or with --continue the one that ships for the model."""
    if start is not None or not go_on:
        return start
    from models.checkpoints import head_for

    found = head_for(target)
    if found is None:
        raise UsageError(f"--continue: no draft head ships for {target}; name one with --start.")
    return found


def _say(line: str) -> None:
    click.echo(f"{time.strftime('%H:%M:%S')} {line}", err=True)
