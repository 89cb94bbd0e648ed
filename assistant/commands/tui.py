"""`eagle-assist tui`: what the daemon completes, how it was drafted, and whether that pays."""

import sys
from pathlib import Path

import click

from assistant.errors import UsageError


@click.command()
@click.option("--trace", type=click.Path(path_type=Path), metavar="FILE", help="Show a trace saved with `s` instead.")
def tui(trace: Path | None) -> None:
    """See the daemon think: each token and who guessed it, the draft trees, the speed-up.

    Leave it open beside the editor. `?` explains the screen, ctrl+p lists every command.
    """
    from tui.app import EagleApp
    from tui.trace import load

    saved = load(trace) if trace else None
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise UsageError("eagle-assist tui needs a terminal; `eagle-assist daemon status` prints figures without one.")
    if saved is not None:
        EagleApp(None, saved).run()
        return
    from tui.daemon import Daemon

    EagleApp(Daemon()).run()
