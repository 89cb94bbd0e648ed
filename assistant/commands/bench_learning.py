"""`eagle-assist bench learning`: whether a head that learned from one part of a repository is faster in the rest."""

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from assistant.commands.measuring import AT_LEAST_1, FILE, counter, finish, json_option, records_option, save_option
from assistant.commands.opening import load_model
from assistant.commands.options import ModelOptions, Number, model_options
from assistant.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from assistant.bench.contenders import Contender
    from assistant.bench.learning_plan import Plan
    from assistant.bench.specs import MethodSpec
    from models.draft_head import DraftHead
    from models.loading import LoadedModel


@click.command()
@click.argument("repository", type=FILE)
@click.option("--out", type=FILE, required=True, help="What is done is kept there; a killed run goes on from it.")
@click.option("--share", type=Number(0.05, 0.95), default=0.3, show_default=True, help="Of the files is held out.")
@click.option(
    "--places", type=AT_LEAST_1, default=20, show_default=True, metavar="N", help="To learn from, a language and kind."
)
@click.option(
    "--measured", type=AT_LEAST_1, default=6, show_default=True, metavar="N", help="To measure at, a language and kind."
)
@click.option(
    "--window", type=click.IntRange(16), default=768, show_default=True, metavar="N", help="Tokens before a place."
)
@click.option("--steps", type=AT_LEAST_1, default=60, show_default=True, metavar="N", help="Of training.")
@click.option("--learning-rate", type=Number(1e-7, 1), help="By default that of `train --continue`.")
@click.option("--methods", default="eagle2@8,eagle2@60", show_default=True, metavar="LIST", help="As in bench decode.")
@click.option("--max-tokens", type=AT_LEAST_1, default=48, show_default=True, metavar="N", help="Measured at a place.")
@model_options
@save_option
@records_option
@json_option
def learning(
    *,
    repository: Path,
    out: Path,
    methods: str,
    options: ModelOptions,
    save: str | None,
    records: Path,
    as_json: bool,
    **choices: Any,
) -> None:
    """Learn from completions in one part of a repository; compare tokens a step in the other, before and after."""
    from assistant.bench import learning as work
    from assistant.bench.kept_runs import run_all
    from assistant.bench.learning_plan import keep_plan, part
    from assistant.bench.learning_tables import COLUMNS, rows_of, summary
    from assistant.bench.specs import parse_methods
    from assistant.bench.tables import show
    from assistant.daemon.host import Engine
    from models.loading import load_head

    specs = _drafting(parse_methods(methods, options.shape(), options.shape))
    loaded = load_model(options, show=not as_json)
    before = load_head(options.head, loaded.target)
    plan = _plan(choices, repository, loaded, options.head or before.spec.name)
    keep_plan(out, plan)
    parts = part(repository, plan)
    engine = Engine(loaded.target, loaded.tokenizer, before, lambda: None)
    log = work.keep_log(engine, parts.learned, plan, out, counter("places to learn from"))
    trained = work.go_on(loaded, log, plan, out, _say)
    heads = {"before": before, "after": load_head(str(trained), loaded.target)}
    prompts = work.prompts_at(parts.held_out, engine, plan)
    contenders = _line_up(specs, loaded, heads)
    runs = run_all(contenders, prompts, plan.max_tokens, out / "measured.jsonl", counter("places measured"))
    spec = loaded.target.spec
    rows = rows_of(specs, runs, list(prompts.values()), loaded.target, loaded.tokenizer.eos_ids)
    result = {**work.document(plan, parts, log, out), "head": before.spec.name, "rows": rows}

    def tables() -> None:
        click.echo(summary(result))
        show(f"{spec.name}, {spec.precision}, {before.spec.name}", COLUMNS, rows)

    finish(result, save, records, tables, as_json=as_json)


def _plan(choices: dict[str, Any], repository: Path, loaded: "LoadedModel", head: str) -> "Plan":
    from assistant.bench.learning_plan import Plan
    from models.training.options import RATE_ON

    rate = choices.pop("learning_rate") or RATE_ON
    return Plan(
        repository=repository.resolve().name,
        model=loaded.source.name,
        precision=loaded.target.spec.precision,
        head=head,
        learning_rate=rate,
        **choices,
    )


def _drafting(specs: "Sequence[MethodSpec]") -> "Sequence[MethodSpec]":
    from assistant.engine.methods import HEAD_METHODS

    for spec in specs:
        if spec.name not in HEAD_METHODS:
            raise UsageError(f"--methods takes those that draft with a head, not {spec.name}: plain always runs too.")
    return specs


def _line_up(
    specs: "Sequence[MethodSpec]", loaded: "LoadedModel", heads: "Mapping[str, DraftHead]"
) -> "list[Contender]":
    """Plain decoding, and each method with each head; a prompt is read once for all trees of a method and head."""
    from dataclasses import replace

    from assistant.bench.contenders import EngineContender
    from assistant.bench.learning_tables import label
    from assistant.bench.specs import parse_methods
    from assistant.engine.methods import make_drafter
    from assistant.engine.session import Session
    from assistant.engine.tree import TreeShape

    target, tokenizer = loaded.target, loaded.tokenizer
    (plain,) = parse_methods("plain", TreeShape())
    found: list[Contender] = [EngineContender(plain, target, tokenizer)]
    for name, head in heads.items():
        sessions = {
            method: Session(target, make_drafter(method, target, head=head)) for method in {spec.name for spec in specs}
        }
        for spec in specs:
            named = replace(spec, label=label(spec, name))
            found.append(EngineContender(named, target, tokenizer, head=head, session=sessions[spec.name]))
    return found


def _say(line: str) -> None:
    click.echo(f"{time.strftime('%H:%M:%S')} {line}", err=True)


COMMANDS = (learning,)
