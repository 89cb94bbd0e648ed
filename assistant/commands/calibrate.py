"""`eagle-assist calibrate`: how far a head's confidence can be trusted, and the map that mends it."""

import json
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from assistant.commands.opening import loading
from assistant.commands.options import PRECISIONS, Number
from assistant.errors import UsageError

if TYPE_CHECKING:
    from models.loading import LoadedModel
    from models.training.calibration import TargetProbability
    from models.training.features import FeatureText

_FOLDER = click.Path(path_type=Path)


@click.command()
@click.option("--run", type=_FOLDER, help="The folder of a `train` run; its held-out texts are used.")
@click.option("--data", type=_FOLDER, multiple=True, help="Or: folders of source files to make held-out texts of.")
@click.option("--samples", type=click.IntRange(5), default=120, show_default=True, help="Texts to make of --data.")
@click.option("--model", metavar="NAME|PATH", help="The model that the head drafts for.")
@click.option("--head", metavar="NAME|PATH", help="The head; by default the run's own, or the one shipped.")
@click.option("--precision", type=click.Choice(PRECISIONS), default="auto", help="Of the model.")
@click.option(
    "--temperature", type=Number(0, 5), default=0.0, show_default=True, help="At which completions are drawn."
)
@click.option(
    "--plot", type=_FOLDER, help="Where to draw it, .png or .svg; by default calibration.png beside the head."
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def calibrate(
    *,
    run: Path | None,
    data: tuple[Path, ...],
    samples: int,
    model: str | None,
    head: str | None,
    precision: str,
    temperature: float,
    plot: Path | None,
    as_json: bool,
) -> None:
    """Compare confidence with acceptance by depth, and store a monotone calibration beside the head.

    The map is fitted on every other held-out text; the errors shown are of the texts between. It holds for this model,
    precision and temperature, and drafting uses it from then on; maps for others stay as they are.
    """
    from models.calibration import Calibration, Calibrations
    from models.training import calibration as fitting
    from models.training.calibration_plot import draw
    from models.training.drafting import load_drafting

    loaded = _load(model, precision, show=not as_json)
    texts = _texts(loaded, run, data, samples)
    folder = _head_folder(head, run, loaded.source.name)
    trained, drafting = load_drafting(folder, loaded.target)
    probability = _probability(loaded, temperature)
    seen = fitting.observe(trained, texts[::2], drafting, temperature, probability)
    judged = fitting.observe(trained, texts[1::2], drafting, temperature, probability)
    fitted = Calibration(loaded.source.name, loaded.target.spec.precision, temperature, fitting.fit(seen))
    result = {"head": str(folder), "model": fitted.model, "precision": fitted.precision, "temperature": temperature}
    result |= fitting.judge(fitted, judged)
    Calibrations.load(folder).with_(fitted).save(folder)
    drawn = draw(fitted, judged, plot or folder / "calibration.png")
    result["plot"] = str(drawn) if drawn else None
    click.echo(json.dumps(result) if as_json else _table(result))


def _load(model: str | None, precision: str, *, show: bool) -> "LoadedModel":
    with loading(show=show) as progress:
        from models.catalog import DEFAULT_MODEL
        from models.loading import load

        return load(model or DEFAULT_MODEL, precision, "cpu", progress=progress)


def _texts(loaded: "LoadedModel", run: Path | None, data: Sequence[Path], samples: int) -> "list[FeatureText]":
    """The held-out texts of a run, or ones that are made now."""
    from assistant.engine.kv_cache import KVCache
    from models.training.features import read_shard, shards
    from models.training.recipe import Recipe
    from models.training.samples import Mix
    from models.training.texts import check_target, make_held_out

    spec = loaded.target.spec
    if (run is None) == (not data):
        raise UsageError("name either a run with --run or folders of source files with --data.")
    if run is not None:
        check_target(run, spec)
        found = [text for shard in shards(run / "features" / "held-out") for text in read_shard(shard)]
    else:
        with tempfile.TemporaryDirectory() as folder:
            recipe = Recipe(tuple(data), Path(folder), held_out=Mix.of(samples))
            made = make_held_out(loaded.target, loaded.tokenizer, recipe, lambda: KVCache.of(spec), _say)
            # Their features are views of files that are about to go.
            found = [replace(text, features=text.features.clone()) for text in made]
    if len(found) < 2:
        raise UsageError(f"{run or 'the data'} holds too few held-out texts: name the folder of a `train` run.")
    return found


def _head_folder(head: str | None, run: Path | None, model: str) -> Path:
    from models.checkpoints import find_head, head_for

    if head is None and run is not None:
        return find_head(str(run / "head"))
    name = head or head_for(model)
    if name is None:
        raise UsageError(f"no draft head ships for {model}: name one with --head.")
    return find_head(name)


def _probability(loaded: "LoadedModel", temperature: float) -> "TargetProbability | None":
    """How the target draws at a temperature; None at 0, where it takes its best token."""
    if temperature == 0.0:
        return None
    import torch

    head = loaded.target.head_rows(torch.arange(loaded.target.spec.vocab_size))

    def probability(features: torch.Tensor, tokens: torch.Tensor) -> torch.Tensor:
        logits = features.to(head.dtype) @ head.mT
        return (logits.float() / temperature).softmax(-1).gather(1, tokens)

    return probability


def _table(result: dict[str, Any]) -> str:
    lines = ["depth  drafts  confidence  acceptance  error  calibrated"]
    lines += [
        f"{row['depth']:>5}  {row['drafts']:>6}  {row['confidence']:>10.3f}  {row['acceptance']:>10.3f}  "
        f"{row['error']:>5.3f}  {row['error_calibrated']:>10.3f}"
        for row in result["rows"]
    ]
    lines.append(f"  all  {'':>30}  {result['error']:>5.3f}  {result['error_calibrated']:>10.3f}")
    return "\n".join([*lines, *([f"drawn in {result['plot']}"] if result["plot"] else [])])


def _say(line: str) -> None:
    click.echo(line, err=True)
