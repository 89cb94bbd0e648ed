"""Waiting for what another thread or process does."""

import time
from collections.abc import Callable

PATIENCE_S = 20.0


def until(condition: Callable[[], bool], patience_s: float = PATIENCE_S) -> None:
    """Return as soon as a condition holds.

    Raises:
        AssertionError: it does not come to hold.
    """
    deadline = time.monotonic() + patience_s
    while not condition():
        assert time.monotonic() < deadline, "what was waited for did not happen"
        time.sleep(0.01)
