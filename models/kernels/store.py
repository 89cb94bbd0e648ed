"""Where numba keeps what it compiled: beside the sources, as Python does, or among the files that can be made again."""

import hashlib
import os
from pathlib import Path

import numba

from assistant import paths

_HERE = Path(__file__).parent


def choose_folder() -> None:
    """Tell numba, before it compiles anything.

    It looks at a function's own file to see whether what it kept is still true; the folder's name stands for all files.
    """
    sources = b"".join(path.read_bytes() for path in sorted(_HERE.glob("*.py")))
    name = f"kernels-{hashlib.sha256(sources).hexdigest()[:16]}"
    beside = _HERE / "__pycache__"
    kept = beside if os.access(beside if beside.exists() else _HERE, os.W_OK) else paths.cache_dir()
    numba.config.CACHE_DIR = str(kept / name)
