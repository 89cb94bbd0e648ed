"""Ablations of draft heads as tables and plots: one section of the report."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from assistant.bench import plots, prose, tables
from assistant.bench.records import Record
from assistant.bench.tables import Column, Row, number, percentages

PREFIX = "head-"
_ORDER = ("data", "inputs", "estimated", "vocabulary", "mlp", "start", "written")


def columns(result: Mapping[str, Any]) -> tuple[Column, ...]:
    """The columns of one ablation: what differs, what it cost, what it brings."""
    covered = result["rows"][0]["coverage"] if result["rows"] and result["ablation"] == "vocabulary" else {}
    languages = [language for language in covered if language != "all"]
    nodes = list(result["rows"][0]["tokens_per_step"]) if result["rows"] else []
    return (
        Column("head", lambda row: str(row["label"]), left=True),
        Column("training tokens", number("training_tokens", ",d")),
        Column("token visits", number("token_visits", ",d")),
        Column("parameters", number("parameters", ",d")),
        Column("tokens covered", _covered("all")),
        *(Column(f"{count} nodes", _per_step(count)) for count in nodes),
        Column("top-1 by estimated features, %", percentages("top1_by_estimated"), left=True),
        *(Column(f"{language} covered", _covered(language)) for language in languages),
    )


def _covered(language: str) -> Callable[[Row], str]:
    return lambda row: format(row["coverage"][language], ".1%") if language in row["coverage"] else "–"


def _per_step(nodes: str) -> Callable[[Row], str]:
    return lambda row: format(row["tokens_per_step"][nodes], ".2f") if nodes in row["tokens_per_step"] else "–"


def show_heads(result: Mapping[str, Any]) -> None:
    """Print an ablation."""
    tables.show(f"{result['model']}, {result['precision']}: {result['ablation']}", columns(result), result["rows"])


def section(records: Mapping[str, Record]) -> tuple[str, dict[str, Callable[[Path], None]]]:
    """The section and its plots: a table for every record `head-NAME`."""
    parts, drawn = [prose.HEADS], {}
    for name in _ORDER:
        record = records.get(PREFIX + name)
        if record is None:
            parts.append(prose.missing(PREFIX + name))
            continue
        result = record.result
        about = f"{result['model']}, {result['precision']}, {result['held_out']} held-out texts ({record.date}):"
        parts.append(
            f"### {prose.HEAD_TITLES[name]}\n\n{about}\n\n    {record.command}\n\n"
            f"{tables.markdown(columns(result), result['rows'])}\n"
        )
        if name == "data":
            drawn["head-data.svg"] = _draw(result["rows"])
            parts.append("![Tokens a step by training tokens](benchmarks/head-data.svg)\n")
    return "\n".join(parts), drawn


def _draw(rows: list[Row]) -> Callable[[Path], None]:
    return lambda path: plots.plot_by_data(rows, path)
