"""A job's steps with what of each may be shown: through the text policy, or as the target writes them."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from assistant.config.languages import language_of
from assistant.daemon import choosing
from assistant.daemon.choosing import Shown
from assistant.daemon.jobs import Job
from assistant.daemon.text import Policy, Reason, Settings
from assistant.daemon.wanted import Wanted, multiline, settings_of
from assistant.engine.generate import Pace, unfold
from assistant.engine.session import Session
from assistant.engine.types import FinishReason, Prompt
from models.tokenizer import Tokenizer


@dataclass(frozen=True, slots=True)
class Means:
    """What a completion is written with."""

    session: Session
    tokenizer: Tokenizer
    cancelled: Callable[[], bool]
    pace: Pace


def write(job: Job, prompt: Prompt, wanted: Wanted, means: Means) -> Iterator[Shown | None]:
    """The steps of a job; None for a pause in which others may use the engine."""
    if job.request.options.policy:
        return _filtered(job, prompt, wanted, means)
    steps = unfold(means.session, prompt, wanted.options, means.tokenizer, means.cancelled, means.pace)
    return (None if step is None else Shown(step, step.text) for step in steps)


def ending(shown: Shown) -> tuple[str | None, str]:
    """The finish that a step brings, None where it goes on, and in words why it ended or shows nothing."""
    finish, verdict = shown.step.finish, shown.verdict
    if verdict is None or finish is FinishReason.CANCELLED:
        return None if finish is None else finish.value, ""
    if not verdict.text and verdict.reason is not Reason.NONE:
        return FinishReason.FILTERED.value, verdict.reason.words
    return (finish or FinishReason.STOP).value, verdict.reason.words


def _filtered(job: Job, prompt: Prompt, wanted: Wanted, means: Means) -> Iterator[Shown | None]:
    text, settings = job.text, settings_of(job.text)
    language = text.language or language_of(text.path) or "plaintext"
    rule = Settings(multiline=multiline(job.request, text))
    return choosing.suggest(
        means.session,
        prompt,
        wanted.options,
        means.tokenizer,
        lambda: Policy.begin(text.text, text.cursor, language, rule),
        choice=choosing.Choice(least_confidence=settings.completion.min_confidence),
        cancelled=means.cancelled,
        pace=means.pace,
    )
