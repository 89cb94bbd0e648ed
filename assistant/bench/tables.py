"""Rows of measurements as tables: the same columns in a terminal and in Markdown."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Row = Mapping[str, Any]
_NONE = "–"


@dataclass(frozen=True, slots=True)
class Column:
    """One column: its title, and a row's text in it."""

    title: str
    text: Callable[[Row], str]
    left: bool = False


def number(key: str, form: str = ".2f") -> Callable[[Row], str]:
    """A figure of a row, or a dash where it has none."""
    return lambda row: _NONE if row.get(key) is None else format(row[key], form)


def typical(row: Row, key: str) -> float | None:
    """A figure's median over the tasks where that is known, else the figure: one stalled task does not move it."""
    lies = row.get(f"{key}_by_task")
    found: float | None = lies["median"] if lies else row.get(key)
    return found


def median_of(key: str, form: str = ".2f") -> Callable[[Row], str]:
    """A figure's median over the tasks, with their quartiles behind it."""

    def text(row: Row) -> str:
        found, lies = typical(row, key), row.get(f"{key}_by_task")
        if found is None:
            return _NONE
        return f"{found:{form}} ({lies['q1']:{form}} to {lies['q3']:{form}})" if lies else format(found, form)

    return text


def with_spread(key: str, spread_key: str, form: str = ".2f") -> Callable[[Row], str]:
    """A figure with the quartiles of its tasks behind it."""

    def text(row: Row) -> str:
        lies = row.get(spread_key)
        figure = number(key, form)(row)
        return f"{figure} ({lies['q1']:{form}} to {lies['q3']:{form}})" if lies and figure != _NONE else figure

    return text


def quartiles(key: str, form: str = ".2f") -> Callable[[Row], str]:
    """A spread's median with its quartiles behind it."""

    def text(row: Row) -> str:
        lies = row.get(key)
        return f"{lies['median']:{form}} ({lies['q1']:{form}} to {lies['q3']:{form}})" if lies else _NONE

    return text


def percentages(key: str) -> Callable[[Row], str]:
    """A list of shares as whole percentages."""
    return lambda row: " ".join(f"{100 * share:.0f}" for share in row.get(key) or ()) or _NONE


def _identical(row: Row) -> str:
    if row.get("identical") is None:
        return _NONE
    text = f"{row['identical']} of {row['tasks']}"
    ties = row.get("ties_within_1e-4")
    return f"{text}, {ties} of the rest ties" if row.get("differences") else text


METHOD = Column("method", lambda row: str(row["method"]), left=True)
RATE = Column("tokens a second", median_of("tokens_per_second", ".1f"))
SPEEDUP = Column("speed-up", median_of("speedup"))
TOTAL_SPEEDUP = Column("with prefill", number("total_speedup"))
PER_STEP = Column("tokens a step", with_spread("tokens_per_step", "tokens_per_step_by_task"))
STEP_MS = Column("ms a step", median_of("ms_per_step", ".0f"))
ACCEPTANCE = Column("accepted by depth, %", percentages("acceptance_by_depth"), left=True)
IDENTICAL = Column("identical", _identical, left=True)

TERMINAL_COLUMNS = (
    METHOD,
    Column("tokens/step", number("tokens_per_step")),
    Column("ms/step", number("ms_per_step", ".0f")),
    Column("tokens/s", number("tokens_per_second", ".1f")),
    Column("speed-up", number("speedup")),
    IDENTICAL,
)
SPEED_COLUMNS = (METHOD, RATE, SPEEDUP, TOTAL_SPEEDUP, PER_STEP, STEP_MS, IDENTICAL)
TREE_COLUMNS = (METHOD, PER_STEP, ACCEPTANCE, STEP_MS, RATE, SPEEDUP, IDENTICAL)

PASS_COLUMNS = (
    Column("precision", lambda row: str(row["precision"]), left=True),
    Column("passed", lambda row: f"{row['passed']} of {row['tasks']}"),
    Column("pass@1", number("pass_at_1", ".3f")),
    Column("95 % interval", lambda row: " to ".join(format(end, ".3f") for end in row["pass_at_1_interval"])),
    Column("decoded with", lambda row: str(row["method"]), left=True),
)
AGREEMENT_COLUMNS = (
    Column("precision", lambda row: f"{row['precision']} against {row['reference']}", left=True),
    Column("tokens", number("tokens", "d")),
    Column("top-1 agreement", with_spread("top1_agreement", "top1_agreement_by_window", ".3f")),
    Column("KL", with_spread("kl", "kl_by_window", ".4f")),
    Column("loss", lambda row: f"{row['nll']:.3f} ({row['nll_reference']:.3f})"),
)


def markdown(columns: Sequence[Column], rows: Iterable[Row]) -> str:
    """A Markdown table."""
    lines = [
        _line(column.title for column in columns),
        _line("---" if column.left else "---:" for column in columns),
        *(_line(column.text(row) for column in columns) for row in rows),
    ]
    return "\n".join(lines)


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def show(title: str, columns: Sequence[Column], rows: Iterable[Row]) -> None:
    """A table on the terminal."""
    from rich.console import Console
    from rich.table import Table

    table = Table(title=title, title_justify="left")
    for column in columns:
        table.add_column(column.title, justify="left" if column.left else "right", no_wrap=column is columns[0])
    for row in rows:
        table.add_row(*(column.text(row) for column in columns))
    Console().print(table)


def show_costs(costs: Row) -> None:
    """The JSON of `Costs` on the terminal."""
    rows = [{"what": f"verify {n}", "ms": ms} for n, ms in costs["verify_ms"].items()]
    rows += [{"what": f"draft to depth {d}", "ms": ms} for d, ms in costs["draft_ms"].items()]
    title = f"{costs['model']}, {costs['precision']}, {costs['machine']}: {number('bandwidth_gb_s', '.1f')(costs)} GB/s"
    show(title, (Column("step", lambda row: str(row["what"]), left=True), Column("ms", number("ms", ".1f"))), rows)


def show_quality(result: Row) -> None:
    """The JSON of `bench quality` on the terminal."""
    show(result["model"], PASS_COLUMNS, result["rows"])
    show(result["model"], AGREEMENT_COLUMNS, result["agreement"])
