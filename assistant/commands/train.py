"""`eagle-assist train`: a draft head for a model, from folders of code."""

import shlex
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from assistant.commands.opening import loading
from assistant.commands.options import PRECISIONS, Device, Number

if TYPE_CHECKING:
    from models.training.recipe import Recipe

_FOLDER = click.Path(path_type=Path)


@click.command()
@click.option("--model", metavar="NAME|PATH", help="The model to draft for.")
@click.option("--data", type=_FOLDER, multiple=True, required=True, help="A folder of source files; may be repeated.")
@click.option("--out", type=_FOLDER, required=True, help="The run's folder; a run that was killed goes on from it.")
@click.option(
    "--exclude",
    type=_FOLDER,
    multiple=True,
    help="Task files (.jsonl, .jsonl.gz) whose texts are refused; may be repeated.",
)
@click.option(
    "--start", metavar="NAME|PATH", help="A head to start from; by default the best linear map is solved for."
)
@click.option("--samples", type=click.IntRange(5), default=3000, show_default=True, help="Texts to train on.")
@click.option(
    "--files", type=click.IntRange(1), default=600, show_default=True, help="Files of a language to draw from."
)
@click.option(
    "--write", type=click.IntRange(8, 2048), default=144, show_default=True, help="Tokens the model adds to a text."
)
@click.option(
    "--draft-vocab", type=click.IntRange(16), default=8192, show_default=True, help="Tokens the head can draft."
)
@click.option("--mlp", type=click.IntRange(8), default=2048, show_default=True, help="Neurons of the head's MLP.")
@click.option(
    "--minutes",
    type=Number(0.1, 100_000),
    help="Fit the whole run into so many minutes: features take two fifths, steps are chosen to fill the rest.",
)
@click.option("--tokens", type=click.IntRange(1000), help="Stop making features at so many tokens of training texts.")
@click.option("--steps", type=click.IntRange(1), default=1500, show_default=True, help="Optimizer steps.")
@click.option("--batch-tokens", type=click.IntRange(64), default=2048, show_default=True)
@click.option("--learning-rate", type=Number(1e-7, 1), default=4e-4, show_default=True)
@click.option("--optimizer", type=click.Choice(("adamw", "muon")), default="adamw", show_default=True)
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
def train(*, model: str | None, out: Path, precision: str, device: str, **choices: Any) -> None:
    """Train an EAGLE-1/2 draft head: texts, the model's features of them, training, evaluation.

    Every stage keeps what it made in the run's folder, and a run that was killed goes on when the same command is given
    again. The head, its card and its learning curve end up in OUT/head.
    """
    with loading(show=True) as progress:
        from assistant.engine.kv_cache import KVCache
        from models.catalog import DEFAULT_MODEL
        from models.loading import last_layer, load
        from models.training.pipeline import train_head
        from models.training.start import Donor

        loaded = load(model or DEFAULT_MODEL, precision, device, progress=progress)
    recipe = _recipe(out, choices, loaded.source.name)

    def donor() -> "Donor | None":
        found = last_layer(loaded.source)
        return None if found is None else Donor(*found)

    folder = train_head(
        loaded.target, loaded.tokenizer, recipe, lambda: KVCache.of(loaded.target.spec), _say, donor=donor
    )
    click.echo(str(folder))


def _recipe(out: Path, choices: dict[str, Any], target: str) -> "Recipe":
    from models.training.budget import Budget
    from models.training.loop import TrainOptions
    from models.training.recipe import Recipe
    from models.training.samples import Mix

    names = ("steps", "batch_tokens", "learning_rate", "optimizer", "unroll", "anchors", "evaluate_every", "seed")
    return Recipe(
        data=choices["data"],
        out=out,
        exclude=choices["exclude"],
        mix=Mix.of(choices["samples"], choices["write"]),
        held_out=Mix.of(max(10, min(120, choices["samples"] // 10)), choices["write"]),
        files_per_language=choices["files"],
        draft_vocab_size=choices["draft_vocab"],
        intermediate_size=choices["mlp"],
        start=choices["start"],
        budget=Budget(choices["minutes"], choices["tokens"]),
        training=TrainOptions(**{name: choices[name] for name in names}),
        target=target,
        command=shlex.join(["eagle-assist", *sys.argv[1:]]),
    )


def _say(line: str) -> None:
    click.echo(f"{time.strftime('%H:%M:%S')} {line}", err=True)
