"""What all unit tests share."""

import sys

import pytest
from hypothesis import settings

# The same examples on every run, and no failure because a machine is slow.
settings.register_profile("steady", deadline=None, derandomize=True)
settings.load_profile("steady")


@pytest.fixture(scope="session", autouse=True)
def _one_thread() -> None:
    """Tiny models are ten times slower where two threads wait for each other at every operation."""
    if "torch" in sys.modules:
        sys.modules["torch"].set_num_threads(1)
