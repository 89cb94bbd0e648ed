"""`eagle-assist logs`: what the daemon wrote down; it holds no code."""

import time
from collections import deque
from pathlib import Path

import click

from assistant.commands import output
from assistant.paths import log_dir

_LOOK_S = 0.3


@click.command()
@click.option("--follow", "-f", is_flag=True, help="Go on with what is written from now on.")
@click.option("--lines", "-n", type=click.IntRange(0), default=200, show_default=True, help="The last N lines.")
@click.option("--path", is_flag=True, help="Print the folder of the logs instead.")
def logs(*, follow: bool, lines: int, path: bool) -> None:
    """Print the daemon's log.

    It names requests by number, clients by name, counts and times, and where the program failed: never code, prompts
    or the names of your files.
    """
    output.prepare()
    if path:
        click.echo(str(log_dir()))
        return
    log = log_dir() / "daemon.log"
    for line in deque(_all(log), maxlen=lines):
        output.write(line)
    if not log.exists() and not follow:
        click.echo("there is no log yet.", err=True)
    if follow:
        _follow(log)


def _all(log: Path) -> list[str]:
    """The lines of the log and of what it was before it was rotated, the oldest first."""
    older = sorted(log.parent.glob(f"{log.name}.[0-9]*"), key=lambda path: -int(path.suffix[1:]))
    return [line for path in (*older, log) for line in _read(path)]


def _read(path: Path) -> list[str]:
    try:
        return path.read_text("utf-8", "replace").splitlines(keepends=True)
    except OSError:
        return []


def _follow(log: Path) -> None:
    """Print what is appended, across rotations; until interrupted."""
    place, inode = (log.stat().st_size, log.stat().st_ino) if log.exists() else (0, 0)
    while True:
        time.sleep(_LOOK_S)
        if not log.exists():
            continue
        found = log.stat()
        if found.st_ino != inode or found.st_size < place:
            place, inode = 0, found.st_ino
        if found.st_size > place:
            with log.open("rb") as file:
                file.seek(place)
                data = file.read()
            place += len(data)
            output.write(data.decode("utf-8", "replace"))
