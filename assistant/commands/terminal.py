"""Consoles for tables and trees."""

from rich.console import Console


def console_for(*, stderr: bool) -> Console:
    """A console that never wraps a node's line where nobody's terminal sets the width."""
    console = Console(stderr=stderr, highlight=False, emoji=False, markup=False)
    if not console.is_terminal:
        console.width = 1000
    return console
