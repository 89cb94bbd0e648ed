"""docs/benchmarks.md: prose from here, every figure from a record."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from assistant.bench import head_tables as heads
from assistant.bench import infill_tables as holes
from assistant.bench import learning_tables as learning
from assistant.bench import plots, prose, tables
from assistant.bench import policy_tables as policy
from assistant.bench import waiting_tables as waiting
from assistant.bench.records import Record
from assistant.bench.tables import Column, number, percentages
from assistant.files import atomic_file, ensure_dir, write_atomic

Records = Mapping[str, Record]
Drawn = dict[str, Callable[[Path], None]]

SPEED = ("speed-int8", "speed-infilling", "speed-bfloat16", "speed-float32")
TREES = "trees-int8"
SHIPPED = "head-int8"
EXACT = ("head-int8", "trees-int8", "exact-float32", "exact-bfloat16", "sps-1.5b")
ABLATION = "ablation-int8"
CHAINS = "chains-int8"
COSTS = ("cost-int8", "cost-bfloat16", "cost-float32")
QUALITY = "quality-humaneval"

_CHAIN_COLUMNS = (
    Column("K", number("drafts", "d")),
    Column("a", number("draft_acceptance", ".3f")),
    Column("measured", tables.with_spread("tokens_per_step", "tokens_per_step_by_task")),
    Column("expected, own a", number("expected", ".2f")),
    Column("expected, a of the first draft", number("expected_first", ".2f")),
    Column("accepted by depth, %", percentages("acceptance_by_depth"), left=True),
)
_ABLATION_COLUMNS = (tables.METHOD, tables.PER_STEP, tables.ACCEPTANCE, tables.IDENTICAL)
_EXACT_COLUMNS = (
    tables.METHOD,
    Column("tasks", number("tasks", "d")),
    Column("tokens", number("tokens", "d")),
    tables.PER_STEP,
    Column("identical", number("identical", "d")),
    Column("differences", number("differences", "d")),
    Column("ties within 1e-4", number("ties_within_1e-4", "d")),
    Column("margins", lambda row: " ".join(_margin(m) for m in row.get("margins") or ()) or "–", left=True),
)


def write_report(records: Records, page: Path, pictures: Path) -> list[Path]:
    """Write the page, and beside the records the plots that they allow; returns the files written.

    Raises:
        UsageError: matplotlib is not installed.
        StorageError: a folder cannot be written.
    """
    text, drawn = page_text(records)
    ensure_dir(pictures)
    for name, draw in drawn.items():
        with atomic_file(pictures / name) as temporary:
            draw(temporary)
    write_atomic(page, text.encode())
    return [page, *(pictures / name for name in drawn)]


def page_text(records: Records) -> tuple[str, Drawn]:
    """The page in Markdown, and the plots that it shows: file name -> what draws it to a path."""
    sections = [
        section(records)
        for section in (
            *(_speed, _trees, policy.by_code, policy.by_temperature, policy.by_length, _ablation, _exact, _chains),
            *(heads.section, _costs, _quality),
            waiting.section,
            learning.section,
            holes.section,
        )
    ]
    drawn: Drawn = {}
    for _, plots_of_section in sections:
        drawn |= plots_of_section
    parts = (prose.OPENING, _machines(records), *(text for text, _ in sections))
    return "\n".join(parts).rstrip() + "\n", drawn


def _machines(records: Records) -> str:
    lines = {
        f"- {m['cpu']}, threads used: {m['threads']}, {m['memory_gb']} GB; {m['system']}, Python {m['python']}, torch "
        f"{m['torch']}, transformers {m['transformers']}, llama-cpp-python {m['llama_cpp_python'] or 'absent'}"
        for m in (record.machine for record in records.values())
    }
    return "Measured on:\n\n" + "\n".join(sorted(lines)) + "\n" if lines else "Nothing is measured yet.\n"


def _tables(records: Records, names: Sequence[str], columns: Sequence[Column]) -> str:
    parts = []
    for name in names:
        if name in records:
            parts.append(f"{prose.heading(records[name])}\n{tables.markdown(columns, records[name].result['rows'])}\n")
        else:
            parts.append(prose.missing(name))
    return "\n".join(parts)


def _rows(records: Records, name: str) -> list[Mapping[str, Any]]:
    return list(records[name].result["rows"]) if name in records else []


def _picture(name: str, alternative: str, drawn: Mapping[str, object]) -> str:
    return f"\n![{alternative}](benchmarks/{name})\n" if name in drawn else ""


def _speed(records: Records) -> tuple[str, Drawn]:
    rows = _rows(records, SPEED[0])
    drawn: Drawn = {"speed.svg": lambda path: plots.plot_speedups(rows, path)} if rows else {}
    picture = _picture("speed.svg", "Speed-up beside other programs", drawn)
    return f"{prose.SPEED}\n{_tables(records, SPEED, tables.SPEED_COLUMNS)}{picture}", drawn


def _trees(records: Records) -> tuple[str, Drawn]:
    rows = _rows(records, TREES)
    drawn: Drawn = {}
    if rows:
        drawn["speedup.svg"] = lambda path: plots.plot_speedups(rows, path)
    if plots.has_lines(rows):
        for key, label in (("tokens_per_step", "tokens a step"), ("ms_per_step", "ms a step")):
            drawn[f"{key}.svg"] = _by_nodes(rows, key, label)
    text = f"{prose.TREES}\n{_tables(records, (SHIPPED, TREES), tables.TREE_COLUMNS)}"
    text += _picture("speedup.svg", "Speed-up by method", drawn)
    text += _picture("tokens_per_step.svg", "Tokens a step by nodes", drawn)
    return text + _picture("ms_per_step.svg", "Milliseconds a step by nodes", drawn), drawn


def _by_nodes(rows: Sequence[tables.Row], key: str, label: str) -> Callable[[Path], None]:
    return lambda path: plots.plot_by_nodes(rows, key, label, path)


def _ablation(records: Records) -> tuple[str, Drawn]:
    return f"{prose.ABLATION}\n{_tables(records, (ABLATION,), _ABLATION_COLUMNS)}", {}


def _exact(records: Records) -> tuple[str, Drawn]:
    return f"{prose.EXACT}\n{_tables(records, EXACT, _EXACT_COLUMNS)}", {}


def _chains(records: Records) -> tuple[str, Drawn]:
    rows = _rows(records, CHAINS)
    if not rows:
        return f"{prose.CHAINS}\n{prose.missing(CHAINS)}", {}
    table = tables.markdown(_CHAIN_COLUMNS, plots.chain_rows(rows))
    drawn: Drawn = {"chains.svg": lambda path: plots.plot_chains(rows, path)}
    picture = _picture("chains.svg", "Expected against measured tokens a step of chains", drawn)
    return f"{prose.CHAINS}\n{prose.heading(records[CHAINS])}\n{table}\n{picture}", drawn


def _costs(records: Records) -> tuple[str, Drawn]:
    costs = [records[name].result for name in COSTS if name in records]
    missing = "".join(f"\n{prose.missing(name)}" for name in COSTS if name not in records)
    if not costs:
        return f"{prose.COSTS}\n{missing}", {}
    sizes = sorted({int(n) for cost in costs for n in cost["verify_ms"]})
    depths = sorted({int(d) for cost in costs for d in cost["draft_ms"]})
    verify = (
        Column("rows", lambda row: str(row["precision"]), left=True),
        *(Column(str(n), _nested("verify_ms", n)) for n in sizes),
        Column("GB/s", number("bandwidth_gb_s", ".1f")),
    )
    draft = (
        Column("depth", lambda row: f"{row['precision']}, width {row['width']}", left=True),
        *(Column(str(d), _nested("draft_ms", d)) for d in depths),
    )
    drawn: Drawn = {"cost.svg": lambda path: plots.plot_costs(costs, path)}
    picture = _picture("cost.svg", "Milliseconds of a forward by rows", drawn)
    both = f"{tables.markdown(verify, costs)}\n\n{tables.markdown(draft, costs)}"
    return f"{prose.COSTS}\n{both}\n{missing}{picture}", drawn


def _nested(key: str, inner: int) -> Callable[[tables.Row], str]:
    return lambda row: format(row[key][str(inner)], ".0f") if str(inner) in row[key] else "–"


def _quality(records: Records) -> tuple[str, Drawn]:
    if QUALITY not in records:
        return f"{prose.QUALITY}\n{prose.missing(QUALITY)}", {}
    record = records[QUALITY]
    passed = tables.markdown(tables.PASS_COLUMNS, record.result["rows"])
    agreed = tables.markdown(tables.AGREEMENT_COLUMNS, record.result["agreement"])
    return f"{prose.QUALITY}\n({record.date})\n\n    {record.command}\n\n{passed}\n\n{agreed}\n", {}


def _margin(margin: float | None) -> str:
    return "none" if margin is None else f"{margin:.1e}"
