"""What remains of a fault of the program: one line for the user, and a log of where it happened.

The log names exception types and places in the program's source. It holds no messages of foreign exceptions and no
values, since those may quote the user's code; `--debug` shows the whole traceback on the user's own terminal instead.
"""

import os
import sys
import time
import traceback
from pathlib import Path

from assistant.errors import EagleAssistError
from assistant.paths import state_dir

ADVICE = "run the command again as `eagle-assist --debug ...` to see where"


def describe(error: Exception, *, debug: bool) -> str:
    """The sentence for a fault; its details go to stderr with `debug`, else to a log file that the sentence names."""
    place = _places(error)[-1:] or ["unknown place"]
    sentence = f"internal fault: {type(error).__name__} at {place[0]}"
    if isinstance(error, EagleAssistError):
        sentence += f" ({error})"
    if debug:
        traceback.print_exception(error, file=sys.stderr)
        return f"{sentence}."
    log = state_dir() / "faults.log"
    try:
        _append(log, record(error))
    except OSError:
        return f"{sentence}; {ADVICE}."
    return f"{sentence}; details are in {log}."


def record(error: BaseException) -> str:
    """The log entry: the chain of exceptions, each as its type and the places that it passed."""
    lines = [time.strftime("%Y-%m-%d %H:%M:%S ") + f"pid {os.getpid()}"]
    link: BaseException | None = error
    while link is not None:
        own = f": {link}" if isinstance(link, EagleAssistError) else ""
        lines += [f"{type(link).__name__}{own}", *(f"    {place}" for place in _places(link))]
        link = link.__cause__ or link.__context__
    return "\n".join(lines) + "\n\n"


def _places(error: BaseException) -> list[str]:
    return [
        f"{'/'.join(Path(frame.filename).parts[-3:])}:{frame.lineno} in {frame.name}"
        for frame in traceback.extract_tb(error.__traceback__)
    ]


def _append(log: Path, entry: str) -> None:
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("a", encoding="utf-8", errors="backslashreplace") as file:
        file.write(entry)
