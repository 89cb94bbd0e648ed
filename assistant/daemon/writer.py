"""What of a completion is shown: each step passes by a writer, which takes its text, cuts it, or ends it all."""

from dataclasses import dataclass
from typing import Protocol

from assistant.daemon.engine_room import Text
from assistant.engine.types import StepResult


@dataclass(frozen=True, slots=True)
class Shown:
    """A writer's word on one step."""

    text: str
    """what may be shown of it, and of what was held back before"""
    finish: str | None = None
    """the completion ends here, with this finish (stop, filtered); None: it goes on unless the engine ended it"""
    reason: str = ""
    """why less is shown than was written, in words"""


class Writer(Protocol):
    """The text policy of one completion."""

    def take(self, step: StepResult) -> Shown:
        """A step came; where its `finish` is set it is the last one, and nothing may be held back any more."""
        ...


class WriterFactory(Protocol):
    """Makes the writer of a completion at a place."""

    def __call__(self, text: Text, *, policy: bool, multiline: bool | None) -> Writer: ...


class Verbatim:
    """Shows everything as it was written."""

    def take(self, step: StepResult) -> Shown:
        """The step's own text."""
        return Shown(step.text)


def verbatim(text: Text, *, policy: bool, multiline: bool | None) -> Writer:
    """A `WriterFactory` that applies no policy."""
    del text, policy, multiline
    return Verbatim()
