"""One suggestion: what the target writes first, or, where the text policy leaves nothing of that, another text.

Another is also tried where the lines behind the cursor need a name that the first does not introduce; where none does,
it stays at the first.

The other text is the most probable one that parts from the first: the target's second choice at the place where it was
least sure, and its own greedy choices from there. Its beginning is in the cache, so it costs what its tokens cost, and
one forward for looking back at the first.
"""

from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, field, replace

from assistant.daemon.text import Filter, Reason, Verdict
from assistant.engine.generate import Pace, unfold
from assistant.engine.review import confidence, deviations, review
from assistant.engine.session import Session
from assistant.engine.types import FinishReason, GenerateOptions, Origin, Prompt, StepResult
from models.tokenizer import Tokenizer

_ANOTHER = frozenset(
    {Reason.REPEATS_REST, Reason.REPEATS_NEXT, Reason.REPEATS_ABOVE, Reason.LOOP, Reason.MISFIT, Reason.MARKER}
    | {Reason.EMPTY}
)
"""reasons that another text may not share"""
_REPEATS = frozenset({Reason.REPEATS_REST, Reason.REPEATS_NEXT, Reason.REPEATS_ABOVE})
"""those that the same text in another layout shares"""


@dataclass(frozen=True, slots=True)
class Choice:
    """How a suggestion is chosen."""

    attempts: int = 4
    """texts that are tried"""
    least_confidence: float = 0.0
    """a text whose tokens' probabilities have a geometric mean below this is not shown; 0 shows all"""


@dataclass(frozen=True, slots=True)
class Shown:
    """One step, and what may be shown with it."""

    step: StepResult
    text: str
    """what became certain"""
    verdict: Verdict | None = None
    """with the last step: all that is shown, and why it ended or why it is nothing"""
    confidence: float | None = None
    """with the last step, where it was asked for"""
    anew: bool = False
    """an earlier text is shown after all: the step repeats its tokens, and those of the steps between do not count"""


@dataclass(slots=True)
class _Attempt:
    """One text: what is asked of the engine, and what came of it."""

    prompt: Prompt
    begun: tuple[int, ...]
    """tokens that the prompt ends with although they are part of the suggestion"""
    text: str
    """what they spell of it"""
    filter: Filter
    tokens: list[int] = field(default_factory=list)
    origins: list[Origin] = field(default_factory=list)


NewFilter = Callable[[], Filter]
DEFAULT_CHOICE = Choice()
_ALONE = Pace()


def suggest(
    session: Session,
    prompt: Prompt,
    options: GenerateOptions,
    tokenizer: Tokenizer,
    new_filter: NewFilter,
    *,
    choice: Choice = DEFAULT_CHOICE,
    cancelled: Callable[[], bool] = lambda: False,
    pace: Pace = _ALONE,
) -> Iterator[Shown | None]:
    """Steps of a suggestion, None for a pause within a prompt (`unfold`); the last one has its `verdict`.

    Generation ends as soon as the policy has seen enough. Text of earlier steps stays shown.

    Args:
        session: where the prompt's rows may be.
        prompt: asks for the text at the cursor.
        options: of the engine.
        tokenizer: the target's.
        new_filter: begins the text policy at the cursor, once for each text that is tried.
        choice: how many texts, and how sure the target has to be.
        cancelled: whether the request was withdrawn.
        pace: how the machine is shared.
    """
    search = _Search(session, prompt, options, tokenizer, new_filter, choice)
    return search.steps(lambda prompt: unfold(session, prompt, options, tokenizer, cancelled, pace))


@dataclass(slots=True)
class _Search:
    """The texts of one suggestion, one after the other."""

    session: Session
    prompt: Prompt
    options: GenerateOptions
    tokenizer: Tokenizer
    new_filter: NewFilter
    choice: Choice
    tried: list[tuple[int, ...]] = field(default_factory=list)

    def steps(self, unfolded: Callable[[Prompt], Iterator[StepResult | None]]) -> Iterator[Shown | None]:
        """Every text's steps, and at the end what is shown of the best."""
        attempt = _Attempt(self.prompt, (), "", self.new_filter())
        kept: tuple[_Attempt, Shown] | None = None
        while True:
            last = yield from self._write(attempt, unfolded(attempt.prompt))
            assert last.verdict is not None
            self.tried.append((*attempt.begun, *attempt.tokens))
            withdrawn = last.step.finish is FinishReason.CANCELLED
            good, better = _valued(attempt, last.verdict)
            if good or (kept is None and last.verdict.text):
                kept = attempt, last
            another = self._another(last.verdict.reason) if better and not withdrawn else None
            if another is None:
                break
            yield _passing(last)
            attempt = another
        if kept is not None and kept[0] is not attempt and not withdrawn:
            yield _passing(last)
            attempt, last = kept[0], _again(*kept)
        yield last if withdrawn or not self._holds else self._weighed(attempt, last)

    @property
    def _holds(self) -> bool:
        """Whether nothing is shown before its confidence is known."""
        return self.choice.least_confidence > 0.0

    def _write(self, attempt: _Attempt, steps: Iterator[StepResult | None]) -> Generator[Shown | None, None, Shown]:
        """The steps of one text; returns the last one, with its verdict."""
        verdict = attempt.filter.take(attempt.text, final=False)
        length = 0
        for step in steps:
            if step is None:
                yield None
                continue
            attempt.tokens += step.tokens
            attempt.origins += step.origins
            final = step.finish is not None
            verdict = attempt.filter.take(step.text, final=final, stopped=step.finish is FinishReason.STOP)
            new, length = verdict.text[length:], len(verdict.text)
            if verdict.finished or final:
                return Shown(step, new, verdict)
            yield Shown(step, "" if self._holds else new)
        raise AssertionError("an engine's last step says that it is the last")

    def _another(self, reason: Reason) -> _Attempt | None:
        """The most probable text that begins like none of those tried; None where there is no other, or enough were.

        Where the last one was a repetition, it differs from it in more than layout.
        """
        tokens = self.tried[0]
        if not tokens or len(self.tried) >= self.choice.attempts:
            return None
        reviewed = review(self.session, self.prompt, tokens)
        whole = self._spelt(tokens)
        for place, other in deviations(reviewed, self._forced(tokens)):
            begun = (*tokens[:place], other)
            text = self._spelt(begun)
            if other in self.options.stop_ids or any(known[: len(begun)] == begun for known in self.tried):
                continue
            if reason in _REPEATS and "".join(whole.split()).startswith("".join(text.split())):
                continue
            longer = replace(self.prompt, ids=self.prompt.ids + begun, prefix=self.prompt.prefix + begun, forced=b"")
            return _Attempt(longer, begun, text, self.new_filter())
        return None

    def _spelt(self, tokens: tuple[int, ...]) -> str:
        """The text of tokens, without what was typed already."""
        return self.tokenizer.join(tokens)[len(self.prompt.forced) :].decode(errors="ignore")

    def _forced(self, tokens: tuple[int, ...]) -> int:
        """How many tokens spell the bytes that were taken off the prompt: these have no alternative."""
        count = size = 0
        while size < len(self.prompt.forced) and count < len(tokens):
            size += len(self.tokenizer.token_bytes(tokens[count]))
            count += 1
        return count

    def _weighed(self, attempt: _Attempt, last: Shown) -> Shown:
        """The last step with everything that was held back, or with nothing where the target was not sure enough."""
        verdict = last.verdict
        assert verdict is not None
        sure = confidence(review(self.session, attempt.prompt, attempt.tokens) if attempt.tokens else [])
        if verdict.text and sure < self.choice.least_confidence:
            verdict = Verdict("", finished=True, reason=Reason.DOUBTFUL)
        return replace(last, text=verdict.text, verdict=verdict, confidence=sure)


def _valued(attempt: _Attempt, verdict: Verdict) -> tuple[bool, bool]:
    """Whether a text is as it should be, and whether another could be better."""
    if not verdict.text:
        return False, verdict.reason in _ANOTHER
    lacks = attempt.filter.lacks(verdict.text)
    return not lacks, lacks


def _passing(shown: Shown) -> Shown:
    """The last step of a text that is not the last one."""
    return replace(shown, text="", step=replace(shown.step, finish=None), verdict=None)


def _again(attempt: _Attempt, shown: Shown) -> Shown:
    """An earlier text once more, as one step that computes nothing."""
    assert shown.verdict is not None
    tokens, origins = tuple(attempt.tokens), tuple(attempt.origins)
    step = StepResult(tokens, origins, "", shown.step.tree, (), forwards=0, finish=shown.step.finish)
    return replace(shown, step=step, text=shown.verdict.text, anew=True)
