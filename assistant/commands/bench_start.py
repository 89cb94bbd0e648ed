"""`eagle-assist bench start`: how long the first text takes, from a daemon that does not run to one that is ready."""

from pathlib import Path

import click

from assistant import documents
from assistant.commands.measuring import AT_LEAST_1, counter, finish, json_option, records_option, save_option


@click.command()
@click.argument("location", metavar="PATH[:LINE[:COL]]")
@click.option("--max-tokens", type=AT_LEAST_1, default=48, show_default=True, metavar="N")
@click.option("--repeat", type=AT_LEAST_1, default=5, show_default=True, metavar="N", help="Times.")
@save_option
@records_option
@json_option
def start(*, location: str, max_tokens: int, repeat: int, save: str | None, records: Path, as_json: bool) -> None:
    """Time the first text: no daemon, model unloaded, model loaded. Starts daemons of its own and ends them."""
    from assistant.bench.starting import Place, measure
    from assistant.bench.tables import show
    from assistant.bench.waiting_tables import START_COLUMNS

    place = documents.parse_location(location)
    document = documents.read(place.path)
    asked = Place(Path(place.path).name, document.text, document.offset(place.line, place.column), max_tokens)
    result = {"file": asked.name, **measure(asked, repeat, counter("times"))}
    title = f"{result['model']}, {result['precision']}: milliseconds"
    finish(result, save, records, lambda: show(title, START_COLUMNS, result["rows"]), as_json=as_json)


COMMANDS = (start,)
