"""What somebody who types waits for, several documents at once, and memory: one section of the report."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from assistant.bench import plots, prose, tables
from assistant.bench.records import Record
from assistant.bench.tables import Column, Row, number, quartiles, with_spread

LATENCY = ("latency-typing", "latency-rapid")
DOCUMENTS = "documents"
START = "start"
MEMORY = "memory"
OPENING = """## Typing, with the daemon

Keystrokes replayed against a running daemon, each sent at its time whatever became of the one before: an edit of the
document, then a completion. Times count from the key. *Computed* are tokens of a prompt whose rows were not in the
cache, the first prompt of the document left out. *Steps for superseded requests* are forwards that were under way when
a newer key came.
"""
_DOCUMENTS = """### Several documents at once

Tokens a second of all documents together; prompts were read before.
"""
_START = """### The first text

Milliseconds from asking, medians and quartiles: no daemon runs and one is started, its model was unloaded, its model is
loaded. Every time the document is one that it has not read. Files come from the system's cache.
"""
_MEMORY = """### Memory

Requests over many documents that are edited at random; a part of them is superseded or cancelled.
"""
LAST = {
    True: "what the model writes when asked anew",
    False: "NOT what the model writes when asked anew",
    None: "the rest of an earlier suggestion",
}
"""what the last answer of a replay is"""
DOCUMENT_COLUMNS = (
    Column("documents", number("documents", "d")),
    Column("speculation", lambda row: str(row["speculation"]), left=True),
    Column("tokens a second", with_spread("tokens_per_second", "spread", ".1f")),
    Column("tokens a step", number("tokens_per_step")),
)
START_COLUMNS = (
    Column("", lambda row: str(row["situation"]), left=True),
    *(
        Column(title, quartiles(f"{name}_ms", ".0f"))
        for title, name in (
            ("the daemon answers", "answered"),
            ("model loaded, prompt read", "ready"),
            ("first text", "first_text"),
            ("whole text", "full_text"),
        )
    ),
)
LATENCY_COLUMNS = (
    Column("", lambda row: str(row["what"]), left=True),
    Column("count", number("count", "d")),
    Column("p50", number("p50", ".1f")),
    Column("p95", number("p95", ".1f")),
    Column("most", number("most", ".1f")),
)
_FIGURES = {
    "first_text_ms": "ms to the first text, from the model",
    "full_text_ms": "ms to the whole text, from the model",
    "typed_ms": "ms to the whole text, typing along a suggestion",
    "typed_answer_ms": "of which the completion, without the edit",
    "prefilled_target": "prompt tokens computed, target",
    "prefilled_draft": "prompt tokens computed, draft head",
}


def latency_rows(result: Mapping[str, Any]) -> list[Row]:
    """The figures of a replay as rows; those that it has none of are left out."""
    return [{"what": words, **result[name]} for name, words in _FIGURES.items() if result.get(name)]


def section(records: Mapping[str, Record]) -> tuple[str, dict[str, Callable[[Path], None]]]:
    """The section and its plots."""
    parts = [OPENING, *(_latency(records[name]) for name in LATENCY if name in records)]
    drawn: dict[str, Callable[[Path], None]] = {}
    if DOCUMENTS in records:
        table = tables.markdown(DOCUMENT_COLUMNS, records[DOCUMENTS].result["rows"])
        parts.append(f"{_DOCUMENTS}\n{_head(records[DOCUMENTS])}\n{table}\n")
    if START in records:
        table = tables.markdown(START_COLUMNS, records[START].result["rows"])
        threads = f"{records[START].result['repeat']} times, threads used: {records[START].machine['threads']}."
        parts.append(f"{_START}\n{_head(records[START])}\n{threads}\n\n{table}\n")
    if MEMORY in records:
        result = records[MEMORY].result
        samples = result["samples"]
        drawn["memory.svg"] = lambda path: plots.plot_memory(samples, path)
        parts.append(
            f"{_MEMORY}\n{_head(records[MEMORY])}\n{result['requests']} requests over {result['documents']} documents; "
            f"resident memory changed by {result['growth_mb']:+.1f} MB in the second half.\n\n"
            "![resident memory over requests](benchmarks/memory.svg)\n"
        )
    missing = [name for name in (*LATENCY, DOCUMENTS, START, MEMORY) if name not in records]
    parts += [prose.missing(name) for name in missing]
    return "\n".join(parts), drawn


def _latency(record: Record) -> str:
    result = record.result
    return (
        f"{_head(record)}\n{result['keys']} keys: {result['answered_by_model']} answered by the model, "
        f"{result['answered_by_typing']} by typing along, {result['superseded']} superseded, "
        f"{result['failed']} failed; {result['superseded_steps']} steps for superseded requests; "
        f"the last answer is {LAST[result['last_is_right']]}.\n\n"
        f"{tables.markdown(LATENCY_COLUMNS, latency_rows(result))}\n"
    )


def _head(record: Record) -> str:
    return f"{record.result['model']} ({record.date}):\n\n    {record.command}\n"
