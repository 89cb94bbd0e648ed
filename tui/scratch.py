"""The scratch pad's own state: what is asked, what came of it, and how much of it was accepted. Pure."""

import re
from dataclasses import dataclass, replace

from assistant.protocol import (
    Begun,
    Complete,
    CompletionEvent,
    Done,
    Failed,
    Observed,
    Options,
    Progress,
    Shape,
    Status,
    Step,
)
from tui.figures import Figures, fold
from tui.writing import Writing, writing

METHODS = ("auto", "plain", "ngram", "sps", "eagle1", "eagle2", "best-first", "hybrid")
EXAMPLE = '''\
def mean(values):
    """The arithmetic mean; 0 of nothing."""
    if not values:
        return 0
    return sum(values) / len(values)


def variance(values):
    """The mean squared distance from the mean."""
'''
_SAME = 1.05
"""times as fast that are within what repeating a measurement changes"""
_WORD = re.compile(r"\s*(\w+|[^\w\s]+)|\s+")


@dataclass(frozen=True, slots=True)
class Knobs:
    """What can be turned while one watches; None leaves a bound to the configuration."""

    nodes: int | None = None
    depth: int | None = None
    width: int | None = None
    temperature: float = 0.0
    max_tokens: int = 48
    seed: int = 0

    def request(self, method: str, path: str, before: str, after: str) -> Complete:
        """The completion to ask for; `auto` leaves the method to the configuration."""
        shape = Shape(nodes=self.nodes, depth=self.depth, width=self.width)
        options = Options(
            method=None if method == "auto" else method,
            max_tokens=self.max_tokens,
            temperature=self.temperature,
            seed=self.seed,
            shape=shape,
        )
        return Complete(path=path, prefix=before, suffix=after, options=options, typed=False)


@dataclass(frozen=True, slots=True)
class Attempt:
    """One completion by one method, as it comes in."""

    method: str
    """as it was asked for, and, once the daemon began, as it is"""
    before: str = ""
    after: str = ""
    request: str = ""
    steps: tuple[Step, ...] = ()
    waiting: str = ""
    """what goes on before the first step"""
    done: Done | None = None
    failure: str = ""

    @property
    def text(self) -> str:
        """What may be accepted."""
        return self.done.text if self.done else "".join(step.text for step in self.steps)

    @property
    def ended(self) -> bool:
        """Whether nothing more comes."""
        return self.done is not None or bool(self.failure)

    @property
    def figures(self) -> Figures:
        """Of its steps."""
        return fold(Figures(), (Observed(client="", document="", method=self.method, step=step) for step in self.steps))

    @property
    def decode_ms(self) -> float:
        """Drafting and verifying, the prefill left out."""
        return sum(step.draft_ms + step.verify_ms for step in self.steps)

    def writing(self) -> Writing:
        """The completion in its text."""
        return writing(self.steps, self.before, self.after)


def take(attempt: Attempt, event: CompletionEvent) -> Attempt:
    """Fold an event of the completion in."""
    match event:
        case Step():
            return replace(attempt, steps=(*attempt.steps, event), request=event.request, waiting="")
        case Begun():
            # Where a daemon went away before its first step, another one begins again.
            waiting = f"waits behind {event.queue} others" if event.queue else "the model reads"
            known = attempt.method == "auto" != event.method
            method = f"auto ({event.method})" if known else attempt.method
            return replace(attempt, method=method, request=event.request, steps=(), waiting=waiting)
        case Progress():
            part = f", {event.done / event.total:.0%}" if event.total else ""
            return replace(attempt, waiting=f"{event.stage}{part}")
        case Done():
            return replace(attempt, done=event, waiting="")
        case Failed():
            return replace(attempt, failure=event.message, waiting="")


def why_not(method: str, status: Status | None) -> str:
    """Why a method cannot be had of the daemon, "" where it can or the daemon has not said."""
    if method != "sps" or status is None or status.draft is not None:
        return ""
    return (
        f"sps drafts with a second, smaller model, and there is none for {status.model}: "
        "name one as model.draft in the configuration."
    )


def remaining(suggestion: str, typed: str) -> str:
    """What is left of a suggestion after the text that followed its cursor since; "" where that left its path."""
    return suggestion[len(typed) :] if suggestion.startswith(typed) else ""


def next_word(text: str) -> str:
    """The first word of a suggestion, with the white space before it."""
    match = _WORD.match(text)
    return match[0] if match else ""


def next_line(text: str) -> str:
    """A suggestion up to its first line end after some text, the line end included."""
    lead = len(text) - len(text.lstrip("\n"))
    end = text.find("\n", lead)
    return text if end < 0 else text[: end + 1]


def verdict(one: Attempt, other: Attempt) -> str:
    """Two methods on one prompt, in a sentence; the prompt's reading is not counted."""
    if not (one.done and other.done):
        return ""
    same = "Same text" if one.text == other.text else "Different texts"
    written, rest = _decoded(one), _decoded(other)
    if not (written and rest and one.decode_ms and other.decode_ms):
        return f"{same}."
    pace, against = one.decode_ms / written, other.decode_ms / rest
    times = max(pace, against) / min(pace, against)
    if times < _SAME:
        return f"{same}; {one.method} and {other.method} took about the same time a token."
    quick, slow = (one.method, other.method) if pace <= against else (other.method, one.method)
    return f"{same}; {quick} was {times:.2f} times as fast a token as {slow}."


def _decoded(attempt: Attempt) -> int:
    return sum(len(step.tokens) for step in attempt.steps if step.index)
