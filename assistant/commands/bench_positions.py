"""`eagle-assist bench positions`: whether trees are deep where code is boilerplate, and shallow where it is logic."""

from pathlib import Path
from typing import Any

import click

from assistant import documents
from assistant.commands.measuring import AT_LEAST_1, FILE, counter, finish, json_option, records_option, save_option
from assistant.commands.opening import load_model
from assistant.commands.options import ModelOptions, model_options
from assistant.errors import UsageError


@click.command()
@click.option("--data", type=FILE, multiple=True, required=True, help="Source files; may be repeated.")
@click.option("--each", type=AT_LEAST_1, default=100, show_default=True, metavar="N", help="Places of each label.")
@click.option("--window", type=AT_LEAST_1, default=192, show_default=True, metavar="N", help="Tokens read before each.")
@model_options
@save_option
@records_option
@json_option
def positions(
    *,
    data: tuple[Path, ...],
    each: int,
    window: int,
    options: ModelOptions,
    save: str | None,
    records: Path,
    as_json: bool,
) -> None:
    """Look at the adaptive tree at places labelled boilerplate or logic by a rule that asks no model."""
    from assistant.bench import positions as places
    from assistant.bench.tables import show
    from assistant.engine.measure import costs_of
    from assistant.engine.methods import make_drafter
    from models.loading import find_head

    chosen = places.choose([documents.read(str(path)).text for path in data], each)
    if {place.label for place in chosen} != set(places.LABELS):
        raise UsageError("the files under --data have no lines of both kinds, boilerplate and logic: name larger ones.")
    loaded = load_model(options, show=not as_json)
    head = find_head(options.head, loaded.target)
    costs = costs_of(loaded.target, head)
    rows = places.look(
        loaded.target,
        loaded.tokenizer,
        lambda: make_drafter("adaptive", loaded.target, head=head, costs=costs),
        chosen,
        options.shape("adaptive"),
        window=window,
        progress=counter("places"),
    )
    compared = places.compare(rows)
    result: dict[str, Any] = {"model": loaded.target.spec.name, "rows": compared, "places": rows}
    finish(result, save, records, lambda: show("first steps", places.COLUMNS, compared), as_json=as_json)


COMMANDS = (positions,)
