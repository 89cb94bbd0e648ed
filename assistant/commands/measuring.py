"""What the commands that measure share: options, counting on stderr, saving and printing a result."""

import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import click

from assistant.commands import output

FILE = click.Path(path_type=Path)
AT_LEAST_1 = click.IntRange(1)
RECORDS = Path("docs/benchmarks")
save_option = click.option(
    "--save", metavar="NAME", help="Keep the result, with command, date and machine, as NAME.json."
)
records_option = click.option(
    "--records", type=FILE, default=RECORDS, show_default=True, help="Folder of saved results."
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")


def counter(what: str) -> Callable[[int, int], None]:
    """Counts on stderr, in place on a terminal and a line each elsewhere."""

    def count(done: int, of: int) -> None:
        terminal = sys.stderr.isatty()
        click.echo(f"{chr(13) * terminal}{done} of {of} {what}", err=True, nl=not terminal or done == of)

    return count


def finish(
    result: Mapping[str, Any], save: str | None, records: Path, show: Callable[[], None], *, as_json: bool
) -> None:
    """Save a result where it is to be saved, and print or show it."""
    if save is not None:
        from assistant.bench.records import command_line, save_record

        click.echo(f"saved as {save_record(records, save, command_line(sys.argv[1:]), result)}", err=True)
    if as_json:
        output.write_json(result)
    else:
        show()
