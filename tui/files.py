"""What the interface writes for its user: traces, and trees as text and SVG."""

import time
from pathlib import Path

from assistant.files import write_atomic
from assistant.protocol import Observed, Step
from tui import trace, wording
from tui.svg import tree_svg
from tui.widgets.draft_tree import tree_content

_WIDTH = 88


def trace_name() -> str:
    """A name for a new trace in the current folder."""
    return time.strftime("eagle-trace-%Y%m%d-%H%M%S.jsonl")


def tree_name(step: Step) -> str:
    """A name for a step's tree in the current folder."""
    return f"eagle-tree-{step.request}-{step.index}.svg"


def save_trace(path: Path, saved: trace.Trace) -> str:
    """Save a trace and say so.

    Raises:
        StorageError: it cannot be written.
    """
    trace.save(path, saved)
    return f"Saved {wording.count(len(saved.events), 'event')} to {path}; `eagle-assist tui --trace {path}` opens it."


def export_tree(path: Path, observed: Observed) -> str:
    """Write a step's tree at `path` as SVG and beside it as text, and say so.

    Raises:
        StorageError: one of them cannot be written.
    """
    step = observed.step
    lines = (wording.headline(step), wording.why(observed), "", tree_content(step, _WIDTH).plain)
    text = path.with_suffix(".txt")
    write_atomic(path, tree_svg(step).encode())
    write_atomic(text, ("\n".join(line.rstrip() for line in "\n".join(lines).split("\n")) + "\n").encode())
    return f"Wrote {path} and {text.name}."
