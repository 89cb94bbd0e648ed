"""`eagle-assist bench growth`: plain and adaptive decoding with more and more text before the cursor."""

from pathlib import Path
from typing import Any

import click

from assistant import documents
from assistant.commands.measuring import AT_LEAST_1, FILE, counter, finish, json_option, records_option, save_option
from assistant.commands.opening import load_model
from assistant.commands.options import ModelOptions, model_options
from assistant.errors import UsageError


@click.command()
@click.option("--data", type=FILE, required=True, multiple=True, help="Source files; may be repeated.")
@click.option("--lengths", default="256,512,1024,2048,4096,8000", show_default=True, metavar="LIST", help="In tokens.")
@click.option("--places", type=AT_LEAST_1, default=3, show_default=True, metavar="N", help="Where each length ends.")
@click.option("--max-tokens", type=AT_LEAST_1, default=48, show_default=True, metavar="N")
@model_options
@save_option
@records_option
@json_option
def growth(
    *,
    data: tuple[Path, ...],
    lengths: str,
    places: int,
    max_tokens: int,
    options: ModelOptions,
    save: str | None,
    records: Path,
    as_json: bool,
) -> None:
    """Compare adaptive trees with plain decoding behind longer and longer texts."""
    from assistant.bench import decode as decoding
    from assistant.bench import lengths as growing
    from assistant.bench.tables import show
    from models.loading import find_head

    wanted, texts = _numbers(lengths), [documents.read(str(path)).text for path in data]
    loaded = load_model(options, show=not as_json)
    spec = loaded.target.spec
    if max(wanted) + max_tokens > spec.max_positions:
        raise UsageError(f"--lengths: the context of {spec.name} holds {spec.max_positions} tokens.")
    prompts = growing.prompts_at(texts, wanted, places, loaded.tokenizer)
    head = find_head(options.head, loaded.target)
    rows = growing.measure(loaded, head, options.shape(growing.METHOD), prompts, max_tokens, counter("prompts"))
    asked: dict[str, Any] = {"data": [path.name for path in data], "places": places, "max_tokens": max_tokens}
    result = decoding.document(rows, spec, **asked)
    finish(
        result, save, records, lambda: show(f"{spec.name}, {spec.precision}", growing.COLUMNS, rows), as_json=as_json
    )


def _numbers(text: str) -> list[int]:
    numbers = [int(piece) for piece in text.split(",") if piece.strip().isdecimal()]
    if len(numbers) != text.count(",") + 1 or len(set(numbers)) < len(numbers) or min(numbers) < 1:
        raise UsageError(f"--lengths is a list of different whole numbers of tokens, not {text!r}.")
    return numbers


COMMANDS = (growth,)
