"""What of a completion is shown: each step passes by a writer, which takes its text, cuts it, or ends it all."""

from dataclasses import dataclass
from typing import Protocol

from assistant.config.languages import language_of
from assistant.daemon.engine_room import Text
from assistant.daemon.text import Filter, Policy, Reason, Settings
from assistant.engine.types import FinishReason, StepResult


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


class Filtered:
    """Shows what the text policy lets pass."""

    def __init__(self, text_filter: Filter) -> None:
        self._filter = text_filter
        self._shown = 0

    def take(self, step: StepResult) -> Shown:
        """What became certain with the step."""
        stopped = step.finish is FinishReason.STOP
        verdict = self._filter.take(step.text, final=step.finish is not None, stopped=stopped)
        text = verdict.text[self._shown :]
        self._shown = len(verdict.text)
        ended = verdict.finished or step.finish is not None
        finish = None
        if ended and not verdict.text and verdict.reason is not Reason.NONE:
            finish = FinishReason.FILTERED.value
        elif verdict.finished and step.finish is None:
            finish = FinishReason.STOP.value
        return Shown(text, finish, verdict.reason.words if ended else "")


def policy_writer(text: Text, *, policy: bool, multiline: bool | None) -> Writer:
    """A `WriterFactory` of the text policy, or of none where the request wants none."""
    if not policy:
        return Verbatim()
    language = text.language or language_of(text.path) or "plaintext"
    return Filtered(Policy.begin(text.text, text.cursor, language, Settings(multiline=multiline)))


def verbatim(text: Text, *, policy: bool, multiline: bool | None) -> Writer:
    """A `WriterFactory` that applies no policy."""
    del text, policy, multiline
    return Verbatim()
