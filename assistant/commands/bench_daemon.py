"""`eagle-assist bench latency|documents|trace`: what the daemon makes somebody wait for who types."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from assistant import documents as source_files
from assistant.commands.measuring import AT_LEAST_1, FILE, counter, finish, json_option, records_option, save_option
from assistant.commands.options import ModelOptions, Number, model_options

if TYPE_CHECKING:
    from assistant.bench.together import Places
    from assistant.daemon.host import Host

_METHOD_HELP = "How tokens are drafted; by default as configured."


@click.command()
@click.option("--trace", type=FILE, required=True, help="Keystrokes, as `bench trace` writes them.")
@click.option("--max-tokens", type=AT_LEAST_1, default=48, show_default=True, metavar="N")
@click.option("--speed", type=Number(0.01, 1000), default=1.0, show_default=True, help="Keys come so much faster.")
@click.option("--method", help=_METHOD_HELP)
@click.option("--no-policy", is_flag=True, help="Show what is written as it is written.")
@click.option("--no-typing", is_flag=True, help="Ask the model also where a suggestion is typed along.")
@save_option
@records_option
@json_option
def latency(
    *,
    trace: Path,
    max_tokens: int,
    speed: float,
    method: str | None,
    no_policy: bool,
    no_typing: bool,
    save: str | None,
    records: Path,
    as_json: bool,
) -> None:
    """Replay keystrokes against the daemon: what a key waits for, what superseded keys cost, what is reused."""
    import asyncio

    from assistant.bench import latency as replaying
    from assistant.bench.traces import read_trace

    moments = read_trace(trace)
    replay = replaying.Replay(max_tokens, speed, not no_policy, method, not no_typing)
    played = asyncio.run(replaying.play(moments, replay))
    result = {"trace": trace.name, **replaying.document(played, moments, replay)}
    finish(result, save, records, lambda: _show(result), as_json=as_json)


@click.command("documents")
@click.option("--data", type=FILE, multiple=True, required=True, help="Source files; may be repeated.")
@click.option("--counts", default="1,2,4,8", show_default=True, help="How many documents at once.")
@click.option("--max-tokens", type=AT_LEAST_1, default=48, show_default=True, metavar="N")
@click.option("--repeat", type=AT_LEAST_1, default=3, show_default=True, metavar="N", help="Times.")
@model_options
@save_option
@records_option
@json_option
def together(
    *,
    data: tuple[Path, ...],
    counts: str,
    max_tokens: int,
    repeat: int,
    options: ModelOptions,
    save: str | None,
    records: Path,
    as_json: bool,
) -> None:
    """Complete in several documents at once: tokens a second with speculation off, fixed and adaptive."""
    from assistant.bench.tables import show
    from assistant.bench.together import compare
    from assistant.bench.waiting_tables import DOCUMENT_COLUMNS

    numbers = _counts(counts)
    places = _places(data, max(numbers), max_tokens)
    host = _host(options)
    rows = compare(host, places, numbers, repeat, counter("rounds"))
    result = {"model": host.choice.name, "max_tokens": max_tokens, "repeat": repeat, "rows": rows}
    finish(result, save, records, lambda: show("documents at once", DOCUMENT_COLUMNS, rows), as_json=as_json)


@click.command()
@click.option("--data", type=FILE, multiple=True, required=True, help="Source files; may be repeated.")
@click.option("--documents", "count", type=AT_LEAST_1, default=20, show_default=True, metavar="N")
@click.option("--requests", type=AT_LEAST_1, default=5000, show_default=True, metavar="N")
@click.option("--plot", type=FILE, help="An SVG to draw.")
@model_options
@save_option
@records_option
@json_option
def memory(
    *,
    data: tuple[Path, ...],
    count: int,
    requests: int,
    plot: Path | None,
    options: ModelOptions,
    save: str | None,
    records: Path,
    as_json: bool,
) -> None:
    """Edit and complete in many documents: whether what the daemon holds stays flat."""
    from assistant.bench import memory as enduring
    from assistant.bench.plots import plot_memory
    from assistant.daemon.scheduler import Scheduler

    read = [source_files.read(str(path)) for path in data]
    host = _host(options)
    room = Scheduler(host=host)
    sources = [(Path(document.name).name, document.text) for document in read]
    try:
        samples = enduring.endure(room, sources, count, requests, counter("requests"))
    finally:
        room.close(drain=False, timeout=10)
    result = {"model": host.choice.name, "documents": count, "requests": requests, **enduring.result(samples)}
    if plot is not None:
        plot_memory(result["samples"], plot)
    growth = f"grew by {result['growth_mb']:.1f} MB in the second half of {requests} requests"
    finish(result, save, records, lambda: click.echo(growth), as_json=as_json)


@click.command()
@click.argument("file", type=FILE)
@click.option("--out", type=FILE, required=True, help="The trace to write.")
@click.option("--line", type=AT_LEAST_1, default=1, show_default=True, help="Typing begins at this line.")
@click.option("--keys", type=AT_LEAST_1, default=200, show_default=True, metavar="N", help="Characters to type.")
@click.option("--rapid", is_flag=True, help="A key a millisecond.")
@click.option("--seed", type=click.IntRange(0, 2**31), default=0, help="Of the times between keys.")
def trace(*, file: Path, out: Path, line: int, keys: int, rapid: bool, seed: int) -> None:
    """Write a trace of keystrokes: a source file of which a part is being typed."""
    from assistant.bench.traces import typed, write_trace

    document = source_files.read(str(file))
    start = document.offset(line, 1)
    keys = min(keys, len(document.text) - start)
    strokes = list(typed(file.name, document.text, start, keys, seed=seed, rapid=rapid))
    write_trace(strokes, out)
    click.echo(f"{out}: {len(strokes)} keystrokes in {strokes[-1].ms / 1000:.1f} s")


COMMANDS = (latency, together, memory, trace)


def _host(options: ModelOptions) -> "Host":
    from assistant.daemon.host import Choice, Host
    from models.catalog import DEFAULT_MODEL

    name = options.model or DEFAULT_MODEL
    return Host(Choice(name, options.head, precision=options.precision, device=options.device))


def _counts(text: str) -> list[int]:
    from assistant.errors import UsageError

    try:
        numbers = [int(part) for part in text.split(",")]
    except ValueError:
        numbers = []
    if not numbers or min(numbers) < 1 or max(numbers) > 64:
        raise UsageError(f"--counts is a list of numbers from 1 to 64, not {text!r}.")
    return numbers


def _places(data: tuple[Path, ...], count: int, max_tokens: int) -> "Places":
    """A place at the beginning of a line in the middle of each file, the files in turn."""
    from assistant.bench.together import Places

    read = [source_files.read(str(path)) for path in data]
    texts = []
    for number in range(count):
        document = read[number % len(read)]
        at = len(document.text) * (1 + number // len(read)) // (2 + count // len(read))
        texts.append((f"{number}-{Path(document.name).name}", document.text, document.text.rfind("\n", 0, at) + 1))
    return Places(texts, max_tokens)


def _show(result: Mapping[str, Any]) -> None:
    from assistant.bench import tables
    from assistant.bench.waiting_tables import LAST, LATENCY_COLUMNS, latency_rows

    click.echo(
        f"{result['keys']} keys in {result['documents']} documents: {result['answered_by_model']} answered by the "
        f"model, {result['answered_by_typing']} by typing along, {result['superseded']} superseded, "
        f"{result['failed']} failed; {result['superseded_steps']} steps for superseded requests; "
        f"the last answer is {LAST[result['last_is_right']]}"
    )
    tables.show(f"{result['model']}, {result['precision']}", LATENCY_COLUMNS, latency_rows(result))
