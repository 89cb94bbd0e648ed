"""The door to eagle-assist: finds the rooms of the program and starts its command line.

The program's packages are called `assistant`, `lsp`, `tui` and `models`. Many people have a `models` of their own on
PYTHONPATH or in the working directory, so an installed eagle-assist keeps its four packages in a private folder,
`eagle_assist/_rooms`, which no import path names, and puts that folder first in this process only. In a checkout
(or an editable install) the packages lie beside this one, and that folder is put first.
"""

import os
import sys
from pathlib import Path

__version__ = "0.1.0"


def rooms() -> Path:
    """The folder that holds the packages `assistant`, `lsp`, `tui` and `models` which belong to this file."""
    here = Path(__file__).resolve().parent
    installed = here / "_rooms"
    return installed if installed.is_dir() else here.parent


def enter() -> None:
    """Put the rooms first on this process's import path, before a working directory or PYTHONPATH."""
    folder = str(rooms())
    sys.path[:] = [folder, *(entry for entry in sys.path if entry != folder)]


def share_processors() -> None:
    """Keep a forward's threads from spinning for long while they wait for one another; a user's own setting stands.

    GNU's OpenMP, which PyTorch computes with on Linux, lets a thread that is done spin for milliseconds. Beside a
    compiler or a second program on all processors that made a forward of 35 ms last over 2 s. So short a spin keeps it
    between 100 ms (measured with 3,000) and 200 ms (with 10,000), and costs at most a tenth on an idle machine. The
    library reads its variables when it is loaded.
    """
    if "OMP_WAIT_POLICY" not in os.environ:
        os.environ.setdefault("GOMP_SPINCOUNT", "4000")


def main() -> None:
    """Run the command line on this process's arguments; the console script's entry point."""
    enter()
    share_processors()
    from assistant.cli import main as command_line

    command_line()
