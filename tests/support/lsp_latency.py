"""A file typed key by key through the real server process and a scripted daemon: how long each stage takes.

    python -m tests.support.lsp_latency [KEYS]

Prints a table in milliseconds. The daemon writes at once, so what is measured is everything but the model.
"""

import asyncio
import inspect
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

from assistant import protocol
from assistant.client import AsyncClient
from lsp import documents
from tests.support.lsp_client import INLINE, EditorProcess

ROOT = Path(__file__).parents[2]
URI = "file:///work/project/code.py"
QUICK = {"editor": {"debounce_ms": 0, "debounce_max_ms": 0}}


def row(stage: str, times: list[float]) -> str:
    """A line of the table."""
    found = sorted(times)
    cells = (statistics.median(found), found[int(0.95 * (len(found) - 1))], found[-1])
    return f"| {stage} | {len(found)} | " + " | ".join(f"{1000 * cell:.1f}" for cell in cells) + " |"


def type_through(editor: EditorProcess, text: str) -> tuple[list[float], list[float]]:
    """(times of answers that came from the daemon, of those that were typed along)."""
    asked: list[float] = []
    along: list[float] = []
    line = column = 0
    expected = ""
    editor.open(URI, "")
    for version, key in enumerate(text, 2):
        editor.change(URI, version, key, (line, column), (line, column))
        line, column = (line + 1, 0) if key == "\n" else (line, column + 1)
        started = time.perf_counter()
        items = editor.inline(URI, line, column)
        took = time.perf_counter() - started
        is_along = len(expected) > 1 and expected[0] == key
        (along if is_along else asked).append(took)
        expected = items[0]["insertText"] if items else ""
    return asked, along


async def daemon_alone(rounds: int) -> list[float]:
    """The same completion, asked for without an editor."""
    times = []
    async with await AsyncClient.connect("latency", start=False) as client:
        for _ in range(rounds):
            started = time.perf_counter()
            async for _event in client.complete(protocol.Complete(path="a.py", prefix="total = 0\ntot")):
                pass
            times.append(time.perf_counter() - started)
    return times


def main() -> None:
    keys = int(sys.argv[1]) if sys.argv[1:] else 2000
    source = inspect.getsource(documents)
    text = (source * (keys // len(source) + 1))[:keys]
    with tempfile.TemporaryDirectory() as home:
        os.environ["EAGLE_ASSIST_HOME"] = home
        command = [sys.executable, "-m", "tests.support.lsp_server", "--idle-exit", "5"]
        with EditorProcess(command, {**os.environ, "PYTHONPATH": str(ROOT)}) as editor:
            editor.initialize(INLINE, initializationOptions=QUICK)
            editor.open("file:///warm.py", "a = ")
            editor.inline("file:///warm.py", 0, 4)
            asked, along = type_through(editor, text)
            alone = asyncio.run(daemon_alone(200))
            editor.end()
    table = [
        "| stage | answers | median | 95% | longest |\n| --- | --- | --- | --- | --- |",
        row("typed along a suggestion: editor, server, editor", along),
        row("the daemon's answer without an editor", alone),
        row("asked for: editor, server, daemon, server, editor", asked),
    ]
    sys.stdout.write("\n".join(table) + "\n")


if __name__ == "__main__":
    main()
