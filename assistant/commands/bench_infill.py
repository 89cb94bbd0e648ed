"""`eagle-assist bench infill`: holes in texts, filled with the text policy and without."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from assistant.commands.measuring import AT_LEAST_1, FILE, counter, finish, json_option, records_option, save_option
from assistant.commands.opening import load_model
from assistant.commands.options import ModelOptions, model_options

if TYPE_CHECKING:
    from collections.abc import Sequence

    from assistant.bench.holes import Hole
    from assistant.bench.infillers import Infiller
    from models.loading import LoadedModel

_PEERS = ("llama.cpp",)


@click.command()
@click.option("--data", type=FILE, required=True, help="HumanEval infilling rows, or holes that scripts/holes made.")
@click.option("--limit", type=AT_LEAST_1, metavar="N", help="The first N holes alone.")
@click.option("--policy", type=click.Choice(["on", "off", "both"]), default="both", show_default=True)
@click.option("--peers", default="", metavar="LIST", help="llama.cpp, on the same GGUF file.")
@click.option("--attempts", type=AT_LEAST_1, default=8, show_default=True, help="Texts tried, the first included.")
@click.option("--max-tokens", type=AT_LEAST_1, default=64, show_default=True, metavar="N")
@click.option("--context", type=click.IntRange(0), default=0, show_default=True, help="Tokens of a hole's other files.")
@click.option("--answers", type=FILE, help="Keep answers in this file, and do not ask again for those in it.")
@click.option("--seconds", type=click.FloatRange(0), help="Ask no more after this long.")
@model_options
@save_option
@records_option
@json_option
def infill(
    *,
    data: Path,
    limit: int | None,
    policy: str,
    peers: str,
    attempts: int,
    max_tokens: int,
    context: int,
    answers: Path | None,
    seconds: float | None,
    options: ModelOptions,
    save: str | None,
    records: Path,
    as_json: bool,
) -> None:
    """Fill holes and judge what was put in: programs that pass, answers met, text written twice.

    Runs code that the model wrote, in child processes with limits.
    """
    from assistant.bench.holes import read_holes
    from assistant.bench.infill import Ledger, fill_all, rows_of
    from assistant.bench.infill_tables import INFILL_COLUMNS, INFILL_GROUP_COLUMNS
    from assistant.bench.tables import show

    named = _peers(peers)
    holes = read_holes(data, limit)
    ledger = Ledger(answers)
    loaded = load_model(options, show=not as_json)
    policies = ("on", "off") if policy == "both" else (policy,)
    infillers = _line_up(loaded, options, holes, named, policies, attempts, max_tokens, context)
    fill_all(infillers, holes, ledger, seconds, counter("holes"))
    rows = rows_of(infillers, holes, ledger.answers)
    groups = rows_of(infillers, holes, ledger.answers, by_group=True) if any(hole.kind for hole in holes) else []
    spec = loaded.target.spec
    result: dict[str, Any] = {
        "rows": rows,
        "groups": groups,
        "model": spec.name,
        "precision": spec.precision,
        "data": data.name,
        "tasks": rows[0]["tasks"],
        "max_tokens": max_tokens,
        "attempts": attempts,
        "context": context,
    }

    def tables() -> None:
        show(f"{spec.name}, {spec.precision}, {data.name}", INFILL_COLUMNS, rows)
        if groups:
            show("by language and kind of hole", INFILL_GROUP_COLUMNS, groups)

    finish(result, save, records, tables, as_json=as_json)


def _peers(text: str) -> list[str]:
    from assistant.errors import UsageError

    names = [name.strip() for name in text.split(",") if name.strip()]
    for name in names:
        if name not in _PEERS:
            raise UsageError(f"--peers takes {', '.join(_PEERS)}, not {name!r}.")
    return names


def _line_up(
    loaded: "LoadedModel",
    options: ModelOptions,
    holes: "Sequence[Hole]",
    peers: list[str],
    policies: tuple[str, ...],
    attempts: int,
    max_tokens: int,
    context: int,
) -> "list[Infiller]":
    from assistant.bench.infillers import Asked, LlamaInfiller, OwnInfiller
    from assistant.bench.lineup import llama_peer
    from assistant.bench.surroundings import surroundings_within
    from assistant.daemon.choosing import Choice
    from assistant.engine.methods import make_drafter, resolve_method
    from models.loading import find_head

    head = find_head(options.head, loaded.target)
    method = resolve_method("auto")
    asked = Asked(policies, Choice(attempts=attempts), surroundings_within(context, loaded.tokenizer))
    label = method if not context else f"{method}, context {context}"
    found: list[Infiller] = [
        OwnInfiller(label, loaded, lambda: make_drafter(method, loaded.target, head=head), max_tokens, asked)
    ]
    if peers:
        longest = max(len(hole.prefix) + len(hole.suffix) for hole in holes)
        found.append(LlamaInfiller(llama_peer(loaded, longest + max_tokens), loaded, max_tokens))
    return found


COMMANDS = (infill,)
