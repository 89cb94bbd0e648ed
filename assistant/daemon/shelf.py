"""The models and draft heads that are on this machine, for people who choose one."""

import time
from collections.abc import Callable
from dataclasses import dataclass

from assistant.errors import UserError
from models import checkpoints, registry

FRESH_S = 10.0
"""for so long nobody looks again: a status is asked for every second"""


@dataclass(frozen=True, slots=True)
class Names:
    """What may be loaded by name."""

    models: tuple[str, ...] = ()
    """the registry's whose files or parts are here, and those of the Hugging Face cache"""
    heads: tuple[str, ...] = ()
    """shipped ones"""


def look() -> Names:
    """What is there now; a damaged folder hides its kind, and whoever loads from it is told why."""
    return Names(_named(_models), _named(checkpoints.shipped_heads))


class Shelf:
    """Remembers for a moment what it saw."""

    def __init__(self, look: Callable[[], Names] = look, clock: Callable[[], float] = time.monotonic) -> None:
        self._look = look
        self._clock = clock
        self._seen: tuple[float, Names] | None = None

    @property
    def names(self) -> Names:
        """What is there, as of FRESH_S seconds ago at most."""
        now = self._clock()
        if self._seen is None or now - self._seen[0] > FRESH_S:
            self._seen = (now, self._look())
        return self._seen[1]


def _models() -> list[str]:
    return [entry.name for entry in registry.list_models() if entry.state != "absent"]


def _named(listed: Callable[[], "list[str] | dict[str, str | None]"]) -> tuple[str, ...]:
    try:
        return tuple(listed())
    except (UserError, OSError):
        return ()
