"""What learning brought, as rows, as a table, and as one section of the report."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from assistant.bench import prose, tables
from assistant.bench.contenders import Run
from assistant.bench.decode import find_differences
from assistant.bench.records import Record
from assistant.bench.rows import method_row, tree_options
from assistant.bench.specs import MethodSpec
from assistant.bench.stats import bootstrap, spread
from assistant.bench.tables import Column, Row, number, quartiles, with_spread
from assistant.engine.types import Prompt
from models.target import Target

HEADS = ("before", "after")
PREFIX = "learning"
_FIGURES = (
    *("method", "tasks", "tokens", "forwards", "tokens_per_step", "tokens_per_step_by_task"),
    *("identical", "differences", "ties_within_1e-4", "margins"),
)
"""of a method's; not its times, since a prompt is read once for several methods"""
OPENING = """## Learning from what was accepted

One part of a repository's files is completed in with learning switched on, and the head goes on from what was kept;
tokens a step are measured at places in the other files, of which training saw nothing. *Gain* is the ratio of tokens a
step after and before, over all places; in brackets the interval that holds 95 % of it when places are drawn anew.
"""


def label(spec: MethodSpec, head: str) -> str:
    """A contender's name: its method, and which head it drafts with."""
    return f"{spec.label} {head}"


def rows_of(
    specs: Sequence[MethodSpec],
    runs: Mapping[str, Sequence[Run]],
    prompts: Sequence[Prompt],
    target: Target,
    stop_ids: frozenset[int],
) -> list[dict[str, Any]]:
    """Two rows a method, before and after; `runs` are by `label`, and plain's by its own name."""
    plain = [[run] for run in runs["plain"]]
    rows = []
    for spec in specs:
        pairs = list(zip(*(runs[label(spec, head)] for head in HEADS), strict=True))
        for head in HEADS:
            ours = [[run] for run in runs[label(spec, head)]]
            row = method_row(spec.label, ours, plain, find_differences(target, prompts, plain, ours, stop_ids))
            kept = {key: row[key] for key in _FIGURES}
            rows.append({**kept, **tree_options(spec), "head": head, **(_gain(pairs) if head == HEADS[-1] else {})})
    return rows


def _gain(pairs: Sequence[tuple[Run, Run]]) -> dict[str, Any]:
    """Of tokens a step, over the places where anything was drafted."""
    drafted = [pair for pair in pairs if all(run.forwards for run in pair)]
    if not drafted:
        return {}
    return {
        "gain": _ratio(drafted),
        "gain_interval": list(bootstrap(drafted, _ratio)),
        "gain_by_place": spread([_ratio([pair]) for pair in drafted]).to_json(),
    }


def _ratio(pairs: Sequence[tuple[Run, Run]]) -> float:
    return _rate([after for _, after in pairs]) / _rate([before for before, _ in pairs])


def _rate(runs: Sequence[Run]) -> float:
    return sum(run.later_tokens for run in runs) / sum(run.forwards or 0 for run in runs)


def _interval(row: Row) -> str:
    if row.get("gain") is None:
        return "–"
    low, high = row["gain_interval"]
    return f"{row['gain']:.3f} [{low:.3f} to {high:.3f}]"


COLUMNS = (
    tables.METHOD,
    Column("head", lambda row: str(row["head"]), left=True),
    Column("places", number("tasks", "d")),
    Column("tokens", number("tokens", "d")),
    Column("tokens a step", with_spread("tokens_per_step", "tokens_per_step_by_task")),
    Column("gain", _interval),
    Column("gain by place", quartiles("gain_by_place")),
    tables.IDENTICAL,
)


def summary(result: Mapping[str, Any]) -> str:
    """What was done, in words."""
    files, learned, training = result["files"], result["learned"], result["training"]
    return (
        f"{result['repository']}: {learned['completions']} completions kept of {result['asked']} in {files['learned']} "
        f"files, {learned['written']} tokens after {learned['read']} of prompts; {result['steps']} steps of training, "
        f"{training['tokens']} token visits; measured in {files['held-out']} other files."
    )


def section(records: Mapping[str, Record]) -> tuple[str, dict[str, Callable[[Path], None]]]:
    """The section: every record whose name begins with `learning`."""
    found = [record for name, record in records.items() if name.startswith(PREFIX)]
    parts = [OPENING] if found else [OPENING, prose.missing(PREFIX)]
    for record in found:
        result = record.result
        about = f"{result['model']}, {result['precision']}, head {result['head']} ({record.date}):"
        parts.append(
            f"{about}\n\n    {record.command}\n\n{summary(result)}\n\n{tables.markdown(COLUMNS, result['rows'])}\n"
        )
    return "\n".join(parts), {}
