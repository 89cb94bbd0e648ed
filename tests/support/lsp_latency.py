"""10,000 keystrokes of a real file through `eagle-assist lsp`, and how long each stage of an answer takes.

    python -m tests.support.lsp_latency [KEYS] [--daemon scripted|tiny] [--debounce MS]

Every answer is checked (`tests.support.lsp_replay`); the first that is wrong ends the run. The scripted daemon knows
the file and writes at once, so what is measured is everything but the model; with `tiny` it is the real daemon with a
tiny random model. Prints counts, and a table in milliseconds.
"""

import argparse
import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from tests.support.lsp_client import INLINE, EditorProcess
from tests.support.lsp_replay import Answer, Replay

ROOT = Path(__file__).parents[2]
FILES = ("assistant/daemon/server.py", "lsp/bridge.py", "assistant/protocol.py")
_START = """import sys
from assistant.client import Client
from tests.support.daemons import scripted_command
Client.connect("replay", command=scripted_command(*sys.argv[1:])).close()
"""
PROGRAM = (sys.executable, "-m", "eagle_assist")
_UTF32 = {"general": {"positionEncodings": ["utf-32"]}}
_HEAD = "| stage | answers | median | 95% | longest |\n| --- | --- | --- | --- | --- |"


def replay(keys: int, *, daemon: str, debounce_ms: int | None, home: Path) -> Replay:
    """Type so many keys; the daemon, `scripted` or `tiny`, lives in `home` and ends before this returns."""
    environment = {**os.environ, "EAGLE_ASSIST_HOME": str(home), "PYTHONPATH": str(ROOT)}
    options = {} if debounce_ms is None else {"editor": {"debounce_ms": debounce_ms, "debounce_max_ms": debounce_ms}}
    with _daemon(daemon, environment, home), EditorProcess([*PROGRAM, "lsp"], environment) as editor:
        editor.initialize({**INLINE, **_UTF32}, initializationOptions=options)
        _wait_until_ready(editor)
        found = Replay(editor, knowing=daemon == "scripted")
        for name in FILES:
            keys -= found.type_file(Path(shutil.copy(ROOT / name, home)), keys)  # a copy: nobody else writes to it
            if not keys:
                break
        assert editor.end() == 0
        assert editor.errors == b""
    return found


def table(answers: list[Answer]) -> str:
    """Milliseconds by stage."""
    asked = [(answer.total_ms, answer.stages) for answer in answers if answer.stages]
    names = {"queue_ms": "daemon: queue", "prefill_ms": "daemon: prefill", "decode_ms": "daemon: decode"}
    rows = [
        _row("**typed along**: all of it, no daemon", [answer.total_ms for answer in answers if answer.along]),
        _row("**asked for**: all of it", [total for total, _ in asked]),
        _row("bridge: waiting for the next key", [of["wait_ms"] for _, of in asked]),
        _row("bridge: the daemon's copy brought up to date", [of["sync_ms"] for _, of in asked]),
        *(_row(name, [of[key] for _, of in asked]) for key, name in names.items()),
        _row(
            "daemon: the rest, and the way there and back",
            [of["daemon_ms"] - sum(of[name] for name in names) for _, of in asked],
        ),
        _row(
            "editor to bridge, bridge to editor",
            [t - of["wait_ms"] - of["sync_ms"] - of["daemon_ms"] for t, of in asked],
        ),
    ]
    return "\n".join([_HEAD, *rows])


def _row(stage: str, times: list[float]) -> str:
    found = sorted(times)
    cells = (found[len(found) // 2], found[int(0.95 * (len(found) - 1))], found[-1]) if found else ()
    return f"| {stage} | {len(found)} | " + " | ".join(f"{cell:.1f}" for cell in cells) + " |"


@contextlib.contextmanager
def _daemon(kind: str, environment: dict[str, str], home: Path) -> Iterator[None]:
    """A daemon at the endpoint in `home`: a scripted one, or the real one with a tiny random model."""
    if kind == "scripted":
        options = ("--knows", "--steps", "2", "--size", "60", "--idle-exit", "60")
        subprocess.run([sys.executable, "-c", _START, *options], env=environment, check=True, timeout=60)
    else:  # the server starts it
        from tests.support.tiny_folder import write_model

        model = write_model(home / "tiny")
        (home / "config").mkdir()
        (home / "config" / "config.toml").write_text(f'[model]\nname = "{model}"\nprecision = "float32"\n')
    try:
        yield
    finally:
        subprocess.run([*PROGRAM, "daemon", "stop"], env=environment, capture_output=True, check=False, timeout=60)


def _wait_until_ready(editor: EditorProcess) -> None:
    end = time.monotonic() + 120
    warm = (ROOT / "lsp/pace.py").as_uri()
    editor.open(warm, "")
    editor.inline(warm, 0, 0)
    while editor.ask("eagle-assist/status", {})["result"]["state"] != "ready":
        assert time.monotonic() < end, editor.notifications
        time.sleep(0.1)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("keys", nargs="?", type=int, default=10_000)
    parser.add_argument("--daemon", choices=["scripted", "tiny"], default="scripted")
    parser.add_argument("--debounce", type=int, help="milliseconds; without it the program's defaults")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir="/tmp") as home:
        found = replay(options.keys, daemon=options.daemon, debounce_ms=options.debounce, home=Path(home))
    for name, count in found.counts.items():
        sys.stdout.write(f"{name}: {count}\n")
    sys.stdout.write(table(found.answers) + "\n")


if __name__ == "__main__":
    main()
