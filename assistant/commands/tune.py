"""`eagle-assist tune`: how a project should be completed in on this machine, measured, and written into its file."""

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from assistant import paths
from assistant.commands import output
from assistant.commands.asked import given, options_of
from assistant.commands.measuring import AT_LEAST_1, FILE, counter, finish, json_option, records_option, save_option
from assistant.commands.opening import load_model
from assistant.commands.options import which_model
from assistant.config import files, load
from assistant.errors import StorageError, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from assistant.bench.tuning import Order, Tuned


@click.command()
@click.argument("path", type=FILE, default=Path())
@click.option("--places", type=AT_LEAST_1, default=12, show_default=True, metavar="N", help="To complete at.")
@click.option("--max-tokens", type=AT_LEAST_1, default=48, show_default=True, metavar="N", help="Of a completion.")
@click.option("--methods", metavar="LIST", help="Methods to compare, as in bench decode; by default all that may pay.")
@which_model
@click.option("--draft", metavar="NAME|PATH", help="The draft model of sps.")
@click.option("--write", is_flag=True, help="Write the project's .eagle-assist.toml.")
@save_option
@records_option
@json_option
@click.pass_context
def tune(
    ctx: click.Context,
    /,
    *,
    path: Path,
    places: int,
    max_tokens: int,
    methods: str | None,
    write: bool,
    save: str | None,
    records: Path,
    as_json: bool,
    **_which: str | None,
) -> None:
    """Measure what suits a project on this machine, and say why.

    PATH is the project's folder (default: this one). What the daemon kept for learning is completed again, or else
    places in the project's own files are, by methods in turn. What a step costs is measured too, and kept. With --write
    the project's `.eagle-assist.toml` is set accordingly; its other settings and its comments stay.
    """
    output.prepare()
    order = _order(ctx, path, methods, places, max_tokens)
    file = order.folder / files.PROJECT_NAME
    if write and not os.access(order.folder, os.W_OK):
        raise StorageError(f"{order.folder} cannot be written to: make it writable, or leave out --write.")

    from assistant.bench import tuning
    from assistant.config import editing

    loaded = load_model(options_of(order.settings), show=not as_json)
    tuned = tuning.tune(order, loaded, paths.learned_dir(), counter("places"))
    text = editing.edited(file, tuned.advice.values)
    finish({**tuned.to_json(), "toml": text}, save, records, lambda: _show(tuned, file, write=write), as_json=as_json)
    if write:
        editing.save(file, text)


def _order(ctx: click.Context, path: Path, methods: str | None, places: int, max_tokens: int) -> "Order":
    from assistant.bench.tuning import Order

    if not path.is_dir():
        raise UsageError(f"{path} is no folder: name a project's.")
    folder = path.resolve()
    asked = {key: value for key, value in given(ctx).items() if key.startswith("model.")}
    configured = load(folder / "any").settings
    differs = {key: value for key, value in asked.items() if getattr(configured.model, key.split(".")[1]) != value}
    settings = load(folder / "any", command_line=asked).settings
    return Order(folder, settings, differs, methods, places, max_tokens)


def _show(tuned: "Tuned", file: Path, *, write: bool) -> None:
    from assistant.bench.tables import show
    from assistant.bench.tuning import COLUMNS
    from assistant.config.editing import with_values

    spec = tuned.means.loaded.target.spec
    show(f"{spec.name}, {spec.precision}; {tuned.where}", COLUMNS, tuned.rows)
    for sentence in (*tuned.reasons, *tuned.missing, *_hidden(file)):
        click.echo(f"- {sentence}")
    click.echo(f"\n{'This goes' if write else 'With --write this goes'} into {file}:\n")
    output.write(with_values("", tuned.advice.values))


def _hidden(file: Path) -> "Iterator[str]":
    """The nearest project file alone counts, so a new one takes the place of one further up."""
    above = files.project_file(file)
    if above is not None and above != file:
        yield f"{above} holds here so far; with a file of its own, this folder no longer follows it."
