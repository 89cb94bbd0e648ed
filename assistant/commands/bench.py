"""`eagle-assist bench`: measured comparisons, as tables, JSON and a report."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from assistant.commands import (
    bench_daemon,
    bench_growth,
    bench_head,
    bench_infill,
    bench_learning,
    bench_positions,
    bench_start,
    bench_temperature,
)
from assistant.commands.measuring import AT_LEAST_1, FILE, counter, finish, json_option, records_option, save_option
from assistant.commands.opening import DEFAULT_DRAFTS, load_model
from assistant.commands.options import ModelOptions, model_options

if TYPE_CHECKING:
    from assistant.bench.contenders import Contender
    from assistant.bench.specs import MethodSpec
    from assistant.engine.types import Prompt
    from models.loading import LoadedModel

_data = click.option("--data", type=FILE, required=True, help="Rows of HumanEval or MBPP, .jsonl or .jsonl.gz.")
_limit = click.option("--limit", type=click.IntRange(1), metavar="N", help="The first N tasks alone.")


@click.group()
def bench() -> None:
    """Measure decoding, costs and quality on this machine."""


_GROUPS = (
    bench_daemon,
    bench_growth,
    bench_head,
    bench_infill,
    bench_learning,
    bench_positions,
    bench_start,
    bench_temperature,
)
for _group in _GROUPS:
    for _command in _group.COMMANDS:
        bench.add_command(_command)


@bench.command()
@_data
@_limit
@click.option(
    "--methods",
    default="plain,ngram,eagle2",
    show_default=True,
    metavar="LIST",
    help="Methods and peers (transformers, transformers-lookup, llama.cpp), each with options of its own: "
    "plain,eagle2@60,eagle2:nodes=8,rerank=off,transformers:precision=bfloat16.",
)
@click.option("--draft", metavar="NAME|PATH", help="The draft model of sps.")
@click.option("--max-tokens", type=AT_LEAST_1, default=128, show_default=True, metavar="N")
@click.option("--repeat", type=AT_LEAST_1, default=1, show_default=True, metavar="N", help="Times.")
@model_options
@save_option
@records_option
@json_option
def decode(
    *,
    data: Path,
    limit: int | None,
    methods: str,
    draft: str | None,
    max_tokens: int,
    repeat: int,
    options: ModelOptions,
    save: str | None,
    records: Path,
    as_json: bool,
) -> None:
    """Compare methods task by task: speed, tokens a step, and whether tokens are plain decoding's."""
    from assistant.bench import decode as decoding
    from assistant.bench.contenders import prompts_of
    from assistant.bench.specs import parse_methods, with_plain
    from assistant.bench.tables import TERMINAL_COLUMNS, show
    from assistant.bench.tasks import read_tasks

    specs = with_plain(parse_methods(methods, options.shape(), options.shape), options.shape())
    tasks = read_tasks(data, limit)
    loaded = load_model(options, show=not as_json)
    prompts = prompts_of(tasks, loaded.tokenizer)
    contenders = _line_up(specs, loaded, options, draft, prompts, max_tokens)
    runs = decoding.compare(contenders, prompts, max_tokens, repeat=repeat, progress=counter("tasks"))
    spec = loaded.target.spec
    rows = decoding.method_rows(specs, runs, prompts, loaded.target, loaded.tokenizer.eos_ids)
    asked = {"data": data.name, "tasks": len(tasks), "max_tokens": max_tokens, "repeat": repeat}
    result = decoding.document(rows, spec, **asked)
    finish(
        result, save, records, lambda: show(f"{spec.name}, {spec.precision}", TERMINAL_COLUMNS, rows), as_json=as_json
    )


@bench.command()
@click.option("--context", type=AT_LEAST_1, default=256, show_default=True, metavar="N", help="Rows cached.")
@click.option("--repeat", type=AT_LEAST_1, default=7, show_default=True, metavar="N", help="Times.")
@model_options
@save_option
@records_option
@json_option
def cost(*, context: int, repeat: int, options: ModelOptions, save: str | None, records: Path, as_json: bool) -> None:
    """Measure what a step costs here, and keep it for choosing trees."""
    from assistant.bench.tables import show_costs
    from assistant.engine import cost as costs
    from assistant.engine.measure import measure
    from models.loading import find_head

    loaded = load_model(options, show=not as_json)
    head = find_head(options.head, loaded.target)
    measured = measure(loaded.target, head, context=context, width=options.shape().width, repeat=repeat)
    costs.save(measured)
    result = measured.to_json()
    finish(result, save, records, lambda: show_costs(result), as_json=as_json)


@bench.command()
@_data
@_limit
@click.option("--precisions", default="int8,float32", show_default=True, help="A list; the last is the reference.")
@click.option("--method", default="plain", show_default=True, help="How completions are decoded.")
@click.option("--max-tokens", type=AT_LEAST_1, default=256, show_default=True, metavar="N")
@click.option("--texts", type=FILE, multiple=True, help="Source files, or folders of Python files, for agreement.")
@click.option(
    "--tokens", type=click.IntRange(2), default=4096, show_default=True, metavar="N", help="Of those, at most."
)
@model_options
@save_option
@records_option
@json_option
def quality(
    *,
    data: Path,
    limit: int | None,
    precisions: str,
    method: str,
    max_tokens: int,
    texts: Sequence[Path],
    tokens: int,
    options: ModelOptions,
    save: str | None,
    records: Path,
    as_json: bool,
) -> None:
    """Compare precisions: programs that pass their tests, and agreement on real source files.

    Runs code that the model wrote, in child processes with limits.
    """
    from assistant.bench.agreement import read_windows, text_files
    from assistant.bench.quality import Generator, compare_precisions
    from assistant.bench.tables import show_quality
    from assistant.bench.tasks import read_tasks
    from assistant.engine.methods import HEAD_METHODS
    from models.loading import find_head

    generator = Generator(method, options.shape(), max_tokens)
    tasks, files = read_tasks(data, limit), text_files(texts)
    models = [load_model(options, precision) for precision in _precisions(precisions)]
    heads = [find_head(options.head, model.target) if method in HEAD_METHODS else None for model in models]
    windows = read_windows(files, models[-1].tokenizer, tokens)
    result = compare_precisions(models, heads, tasks, windows, generator, counter)
    result |= {"data": data.name, "texts": [path.name for path in files]}
    finish(result, save, records, lambda: show_quality(result), as_json=as_json)


@bench.command()
@records_option
@click.option("--page", type=FILE, default=Path("docs/benchmarks.md"), show_default=True, help="The page to write.")
def report(*, records: Path, page: Path) -> None:
    """Write the page of benchmarks and its plots from saved results."""
    from assistant.bench.records import read_records
    from assistant.bench.report import write_report

    for path in write_report(read_records(records), page, records):
        click.echo(str(path))


def _line_up(
    specs: "Sequence[MethodSpec]",
    loaded: "LoadedModel",
    options: ModelOptions,
    draft: str | None,
    prompts: "Sequence[Prompt]",
    max_tokens: int,
) -> "list[Contender]":
    from assistant.bench.lineup import line_up
    from models.catalog import DEFAULT_MODEL

    model = options.model or DEFAULT_MODEL
    return line_up(
        specs,
        loaded,
        head=options.head,
        draft=draft or DEFAULT_DRAFTS.get(model),
        context=max(len(prompt.ids) for prompt in prompts) + max_tokens,
    )


def _precisions(text: str) -> list[str]:
    from assistant.commands.options import PRECISIONS
    from assistant.errors import UsageError

    known = [name for name in PRECISIONS if name != "auto"]
    names = [name.strip() for name in text.split(",")]
    for name in names:
        if name not in known or names.count(name) > 1:
            raise UsageError(f"--precisions is a list of different ones of {', '.join(known)}, not {text!r}.")
    return names
