"""`eagle-assist calibrate`: how far a head's confidence can be trusted, and the map that mends it."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from assistant.commands.opening import loading
from assistant.commands.options import PRECISIONS
from assistant.errors import UsageError

if TYPE_CHECKING:
    from models.training.calibration import Calibration, Observed

_FOLDER = click.Path(path_type=Path)


@click.command()
@click.option("--run", type=_FOLDER, required=True, help="The folder of a `train` run; its held-out texts are used.")
@click.option("--model", metavar="NAME|PATH", help="The model that the head drafts for.")
@click.option("--head", metavar="NAME|PATH", help="The head; by default the run's own.")
@click.option("--precision", type=click.Choice(PRECISIONS), default="auto", help="Of the model.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def calibrate(*, run: Path, model: str | None, head: str | None, precision: str, as_json: bool) -> None:
    """Compare confidence with acceptance by depth, and store a monotone calibration beside the head.

    The map is fitted on every other held-out text; the errors shown are of the texts between.
    """
    from models.checkpoints import find_head
    from models.training import calibration as fitting
    from models.training.features import read_shard, shards

    texts = [text for shard in shards(run / "features" / "held-out") for text in read_shard(shard)]
    if len(texts) < 2:
        raise UsageError(f"{run} holds no held-out texts: name the folder of a `train` run.")
    folder = find_head(head or str(run / "head"))
    with loading(show=not as_json) as progress:
        from models.catalog import DEFAULT_MODEL
        from models.loading import load
        from models.training.drafting import load_drafting

        loaded = load(model or DEFAULT_MODEL, precision, "cpu", progress=progress)
        trained, drafting = load_drafting(folder, loaded.target)
    fitted = fitting.fit(fitting.observe(trained, texts[::2], drafting), loaded.target.spec.precision)
    rows = _rows(fitted, fitting.observe(trained, texts[1::2], drafting))
    fitted.save(folder)
    click.echo(json.dumps({"head": str(folder), "rows": rows}) if as_json else _table(rows))


def _rows(fitted: "Calibration", observed: "Sequence[Observed]") -> list[dict[str, Any]]:
    import numpy as np

    from models.training.calibration import expected_error

    rows = []
    for depth, seen in enumerate(observed, start=1):
        known, expected = fitted.knots[depth - 1]
        rows.append(
            {
                "depth": depth,
                "drafts": len(seen.confidence),
                "confidence": float(seen.confidence.mean()) if len(seen.confidence) else 0.0,
                "acceptance": float(seen.accepted.mean()) if len(seen.accepted) else 0.0,
                "error": expected_error(seen.confidence, seen.accepted),
                "error_calibrated": expected_error(np.interp(seen.confidence, known, expected), seen.accepted),
            }
        )
    return rows


def _table(rows: Sequence[dict[str, Any]]) -> str:
    lines = ["depth  drafts  confidence  acceptance  error  calibrated"]
    lines += [
        f"{row['depth']:>5}  {row['drafts']:>6}  {row['confidence']:>10.3f}  {row['acceptance']:>10.3f}  "
        f"{row['error']:>5.3f}  {row['error_calibrated']:>10.3f}"
        for row in rows
    ]
    return "\n".join(lines)
