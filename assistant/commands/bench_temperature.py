"""`eagle-assist bench temperature`: adaptive trees beside plain decoding, from greedy to wild."""

from pathlib import Path
from typing import Any

import click

from assistant.commands.measuring import AT_LEAST_1, FILE, counter, finish, json_option, records_option, save_option
from assistant.commands.opening import load_model
from assistant.commands.options import ModelOptions, model_options
from assistant.errors import UsageError

_HOTTEST = 2.0


@click.command()
@click.option("--data", type=FILE, required=True, help="Rows of HumanEval or MBPP, .jsonl or .jsonl.gz.")
@click.option("--limit", type=AT_LEAST_1, metavar="N", help="The first N tasks alone.")
@click.option("--temperatures", default="0,0.25,0.5,0.75,1,1.25,1.5", show_default=True, metavar="LIST")
@click.option("--max-tokens", type=AT_LEAST_1, default=96, show_default=True, metavar="N")
@click.option("--repeat", type=AT_LEAST_1, default=1, show_default=True, metavar="N", help="Times.")
@model_options
@save_option
@records_option
@json_option
def temperature(
    *,
    data: Path,
    limit: int | None,
    temperatures: str,
    max_tokens: int,
    repeat: int,
    options: ModelOptions,
    save: str | None,
    records: Path,
    as_json: bool,
) -> None:
    """Compare adaptive trees with plain decoding at several temperatures."""
    from assistant.bench import decode as decoding
    from assistant.bench import temperatures as sweeping
    from assistant.bench.contenders import prompts_of
    from assistant.bench.tables import show
    from assistant.bench.tasks import read_tasks
    from models.loading import find_head

    wanted, tasks = _numbers(temperatures), read_tasks(data, limit)
    loaded = load_model(options, show=not as_json)
    prompts = prompts_of(tasks, loaded.tokenizer)
    head = find_head(options.head, loaded.target)
    contenders = sweeping.contenders_at(wanted, loaded, head, options.shape(sweeping.METHOD), options.seed)
    rows = sweeping.sweep(wanted, contenders, prompts, max_tokens, repeat=repeat, progress=counter("tasks"))
    spec = loaded.target.spec
    asked: dict[str, Any] = {"data": data.name, "tasks": len(tasks), "max_tokens": max_tokens, "repeat": repeat}
    result = decoding.document(rows, spec, **asked)
    finish(
        result, save, records, lambda: show(f"{spec.name}, {spec.precision}", sweeping.COLUMNS, rows), as_json=as_json
    )


def _numbers(text: str) -> list[float]:
    try:
        numbers = [float(piece) for piece in text.split(",")]
    except ValueError:
        numbers = []
    if not numbers or len(set(numbers)) < len(numbers) or not all(0 <= number <= _HOTTEST for number in numbers):
        raise UsageError(f"--temperatures is a list of different numbers from 0 to {_HOTTEST:g}, not {text!r}.")
    return numbers


COMMANDS = (temperature,)
