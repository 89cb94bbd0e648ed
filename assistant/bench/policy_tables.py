"""How the policy fares, in three sections of the report: by kind of code, by temperature, by what is read before."""

from collections.abc import Callable, Mapping
from pathlib import Path

from assistant.bench import lengths, plots, positions, prose, tables, temperatures
from assistant.bench.records import Record

POSITIONS, TEMPERATURE, GROWTH = "positions", "temperature", "growth"
Drawn = dict[str, Callable[[Path], None]]


def by_code(records: Mapping[str, Record]) -> tuple[str, Drawn]:
    """The trees at places labelled boilerplate or logic."""
    record = records.get(POSITIONS)
    if record is None:
        return f"{prose.POSITIONS}\n{prose.missing(POSITIONS)}", {}
    counts = {label: sum(row["label"] == label for row in record.result["places"]) for label in positions.LABELS}
    about = ", ".join(f"{count} places of {label}" for label, count in counts.items())
    table = tables.markdown(positions.COLUMNS, record.result["rows"])
    return f"{prose.POSITIONS}\n{about} ({record.date}):\n\n    {record.command}\n\n{table}\n", {}


def by_temperature(records: Mapping[str, Record]) -> tuple[str, Drawn]:
    """The sweep of temperatures, and its plot."""
    record = records.get(TEMPERATURE)
    if record is None:
        return f"{prose.TEMPERATURE}\n{prose.missing(TEMPERATURE)}", {}
    rows = record.result["rows"]
    text = (
        f"{prose.TEMPERATURE}\n{prose.heading(record)}\n{tables.markdown(temperatures.COLUMNS, rows)}\n"
        "\n![Adaptive trees over plain decoding by temperature](benchmarks/temperature.svg)\n"
    )
    return text, {"temperature.svg": lambda path: plots.plot_by_temperature(rows, path)}


def by_length(records: Mapping[str, Record]) -> tuple[str, Drawn]:
    """Decoding behind longer and longer texts, and its plot."""
    record = records.get(GROWTH)
    if record is None:
        return f"{prose.GROWTH}\n{prose.missing(GROWTH)}", {}
    rows = record.result["rows"]
    text = (
        f"{prose.GROWTH}\n{prose.heading(record)}\n{tables.markdown(lengths.COLUMNS, rows)}\n"
        "\n![Milliseconds a token by tokens before](benchmarks/growth.svg)\n"
    )
    return text, {"growth.svg": lambda path: plots.plot_by_length(rows, path)}
