"""`eagle-assist bench head`: what each ingredient of a draft head is worth, from heads that differ in one thing."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from assistant.commands.measuring import AT_LEAST_1, FILE, finish, json_option, records_option, save_option
from assistant.commands.opening import loading
from assistant.commands.options import PRECISIONS, Device, Number
from assistant.errors import UsageError

if TYPE_CHECKING:
    from models.loading import LoadedModel
    from models.training.ablation import Bench

_NAMES = ("data", "inputs", "estimated", "vocabulary", "mlp", "start", "written")


@click.command()
@click.argument("name", type=click.Choice(_NAMES))
@click.option("--run", type=FILE, required=True, help="The folder of a `train` run, whose features are used.")
@click.option("--model", metavar="NAME|PATH", help="The run's model.")
@click.option("--steps", type=AT_LEAST_1, default=150, show_default=True, metavar="N", help="For every head.")
@click.option("--batch-tokens", type=click.IntRange(64), default=2048, show_default=True)
@click.option("--learning-rate", type=Number(1e-7, 1), default=1.5e-4, show_default=True)
@click.option("--held-out", type=click.IntRange(2), default=24, show_default=True, help="Texts to judge on.")
@click.option("--draft-vocab", type=click.IntRange(16), help="Instead of 16384 where sizes are not compared.")
@click.option("--mlp", type=click.IntRange(8), help="Instead of 2048 where sizes are not compared.")
@click.option("--precision", type=click.Choice(PRECISIONS), default="auto", help="Of the model.")
@click.option("--device", type=Device(), default="auto", metavar="auto|cpu|cuda[:N]|mps")
@save_option
@records_option
@json_option
def head(
    *,
    name: str,
    run: Path,
    model: str | None,
    precision: str,
    device: str,
    save: str | None,
    records: Path,
    as_json: bool,
    **choices: Any,
) -> None:
    """Train small heads that differ in one thing, and compare their tokens per step in simulation.

    Heads and rows that are done are kept in RUN/ablations; a run that was killed goes on.
    """
    from dataclasses import replace

    from assistant.bench.head_tables import show_heads
    from models.training.ablation import ABLATIONS
    from models.training.ablation import run as run_all

    with loading(show=not as_json) as progress:
        from models.catalog import DEFAULT_MODEL
        from models.loading import load

        loaded = load(model or DEFAULT_MODEL, precision, device, progress=progress)
    changes = {"vocabulary": choices["draft_vocab"], "mlp": choices["mlp"]}
    changed = {key: value for key, value in changes.items() if value is not None and key != name}
    bench = _bench(loaded, run, choices)
    rows = run_all(bench, name, [replace(variant, **changed) for variant in ABLATIONS[name]])
    result = {
        "ablation": name,
        "model": loaded.target.spec.name,
        "precision": loaded.target.spec.precision,
        "held_out": min(choices["held_out"], len(bench.texts["held-out"])),
        "rows": rows,
    }
    finish(result, save, records, lambda: show_heads(result), as_json=as_json)


def _bench(loaded: "LoadedModel", run: Path, choices: dict[str, Any]) -> "Bench":
    from models.loading import original_weights
    from models.training.ablation import Bench
    from models.training.options import TrainOptions
    from models.training.pipeline import config_of
    from models.training.products import quickest_precision
    from models.training.start import Donor
    from models.training.texts import check_target, read_texts
    from models.training.vocabulary import kept_counts

    check_target(run, loaded.target.spec)
    texts = read_texts(run)
    if not all(texts.values()):
        raise UsageError(f"{run} holds no features: name the folder of a `train` run.")
    config = config_of(loaded.target)
    names = ("steps", "batch_tokens", "learning_rate")
    return Bench(
        target=loaded.target,
        config=config,
        texts=texts,
        donor=lambda: None if config.qk_norm else Donor.of(original_weights(loaded.source)),
        files=kept_counts(run),
        always=sorted(loaded.tokenizer.eos_ids),
        options=TrainOptions(
            precision=quickest_precision(loaded.target.spec.device), **{key: choices[key] for key in names}
        ),
        held_out=choices["held_out"],
        out=run / "ablations",
        say=lambda line: click.echo(line, err=True),
    )


COMMANDS = (head,)
