"""The tables of `bench infill`, on the terminal and on the page of benchmarks."""

from collections.abc import Callable, Mapping
from pathlib import Path

from assistant.bench import prose
from assistant.bench.records import Record
from assistant.bench.tables import METHOD, Column, markdown, number

_POLICY = Column("policy", lambda row: str(row["policy"]), left=True)
_INFILLED = (
    Column("holes", number("tasks", "d")),
    Column("exact match", number("exact_match", ".3f")),
    Column("edit similarity", number("edit_similarity", ".3f")),
    Column("duplicates", number("duplicates", "d")),
    Column("nothing shown", number("nothing", "d")),
)
INFILL_COLUMNS = (
    METHOD,
    _POLICY,
    Column("pass@1", number("pass_at_1", ".3f")),
    Column("95 % interval", lambda row: " to ".join(format(end, ".3f") for end in row["pass_at_1_interval"] or ())),
    *_INFILLED,
    Column("p50 ms", number("p50_ms", ".0f")),
    Column("p95 ms", number("p95_ms", ".0f")),
)
INFILL_GROUP_COLUMNS = (
    METHOD,
    _POLICY,
    Column("of", lambda row: str(row.get("language") or row.get("kind")), left=True),
    *_INFILLED,
)

TASKS = ("infill-single-line", "infill-random-span")
LANGUAGES = "infill-languages"
CONTEXT = ("infill-across-files", "infill-across-files-context")
_PROSE = """\
## Holes

What `bench infill` put into holes. *Policy on* is what the daemon shows; *off* is the same model's text as it came;
llama.cpp reads the 4-bit file of the same model, its text taken whole and cut behind its first line. A duplicate writes
again the next line, the rest of the line or a bracket that was closed already. Times are of single requests that
nothing was cached for. HumanEval's infilling tasks (MIT licence, openai/human-eval-infilling) are judged by running
them; the holes in eight languages are those of `scripts/holes`, and the answers of those across files begin with a name
that another file of the package defines; *context* is the most tokens that were read of such files. `--limit` says
where only the first holes were filled.
"""


def section(records: Mapping[str, Record]) -> tuple[str, dict[str, Callable[[Path], None]]]:
    """The page's section on holes; it has no plots."""
    parts = [_PROSE]
    parts += [_table(records, name, INFILL_COLUMNS) for name in (*TASKS, LANGUAGES, *CONTEXT)]
    if LANGUAGES in records:
        parts.append(markdown(INFILL_GROUP_COLUMNS, records[LANGUAGES].result["groups"]) + "\n")
    return "\n".join(parts), {}


def _table(records: Mapping[str, Record], name: str, columns: tuple[Column, ...]) -> str:
    if name not in records:
        return prose.missing(name)
    record = records[name]
    result = record.result
    times = f"; times {result['times']}" if "times" in result else ""
    about = f"{result['model']}, {result['precision']}, {result['tasks']} holes{times} ({record.date}):"
    return f"{about}\n\n    {record.command}\n\n{markdown(columns, result['rows'])}\n"
