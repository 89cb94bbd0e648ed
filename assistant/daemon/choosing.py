"""One suggestion: what the target writes first, or, where the text policy leaves nothing of that, another text.

Another is also tried where the lines behind the cursor need a name that the first does not introduce; where none does,
it stays at the first.

The other text is the most probable one that parts from the first: the target's second choice at the place where it was
least sure, and its own greedy choices from there. Its beginning is in the cache, so it costs what its tokens cost, and
one forward for looking back at the first.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

from assistant.daemon.text import Filter, Reason, Verdict
from assistant.engine.generate import Pace, unfold
from assistant.engine.review import Reviewed, confidence, deviations, review
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
    held = choice.least_confidence > 0.0
    attempt = _Attempt(prompt, (), "", new_filter())
    tried: list[tuple[int, ...]] = []
    kept: tuple[_Attempt, Shown] | None = None
    while True:
        last: Shown | None = None
        for shown in _write(session, attempt, options, tokenizer, cancelled, pace):
            if shown is not None and shown.verdict is not None:
                last = shown
            else:
                yield shown if shown is None or not held else replace(shown, text="")
        assert last is not None
        assert last.verdict is not None
        withdrawn = last.step.finish is FinishReason.CANCELLED
        tried.append((*attempt.begun, *attempt.tokens))
        good, better = _valued(attempt, last.verdict)
        kept = (attempt, last) if good or (kept is None and last.verdict.text) else kept
        following = None
        if better and not withdrawn and len(tried) < choice.attempts:
            anew = last.verdict.reason in _REPEATS
            following = _another(session, prompt, tried, options, tokenizer, new_filter, anew=anew)
        if following is None:
            break
        yield replace(last, text="", step=replace(last.step, finish=None), verdict=None)
        attempt = following
    if kept is not None and kept[0] is not attempt and not withdrawn:
        yield replace(last, text="", step=replace(last.step, finish=None), verdict=None)
        attempt, last = kept[0], _again(*kept)
    yield last if withdrawn or not held else _weighed(session, attempt, last, choice)


def _valued(attempt: _Attempt, verdict: Verdict) -> tuple[bool, bool]:
    """Whether a text is as it should be, and whether another could be better."""
    if not verdict.text:
        return False, verdict.reason in _ANOTHER
    lacks = attempt.filter.lacks(verdict.text)
    return not lacks, lacks


def _again(attempt: _Attempt, shown: Shown) -> Shown:
    """An earlier text once more, as one step that computes nothing."""
    assert shown.verdict is not None
    tokens, origins = tuple(attempt.tokens), tuple(attempt.origins)
    step = StepResult(tokens, origins, "", shown.step.tree, (), forwards=0, finish=shown.step.finish)
    return replace(shown, step=step, text=shown.verdict.text, anew=True)


def _write(
    session: Session,
    attempt: _Attempt,
    options: GenerateOptions,
    tokenizer: Tokenizer,
    cancelled: Callable[[], bool],
    pace: Pace,
) -> Iterator[Shown | None]:
    """The steps of one text; the last one has a verdict."""
    verdict = attempt.filter.take(attempt.text, final=False)
    length = 0
    for step in unfold(session, attempt.prompt, options, tokenizer, cancelled, pace):
        if step is None:
            yield None
            continue
        attempt.tokens += step.tokens
        attempt.origins += step.origins
        final = step.finish is not None
        verdict = attempt.filter.take(step.text, final=final, stopped=step.finish is FinishReason.STOP)
        new, length = verdict.text[length:], len(verdict.text)
        if verdict.finished or final:
            yield Shown(step, new, verdict)
            return
        yield Shown(step, new)


def _another(
    session: Session,
    prompt: Prompt,
    tried: list[tuple[int, ...]],
    options: GenerateOptions,
    tokenizer: Tokenizer,
    new_filter: NewFilter,
    *,
    anew: bool,
) -> _Attempt | None:
    """The most probable text that begins like none of those tried (`anew`: nor but for its layout); None: no other."""
    tokens = tried[0]
    if not tokens:
        return None
    reviewed = review(session, prompt, tokens)
    whole = tokenizer.join(tokens)[len(prompt.forced) :].decode(errors="ignore")
    for place, other in deviations(reviewed, _spelt(prompt, tokens, tokenizer)):
        begun = (*tokens[:place], other)
        if other in options.stop_ids or any(text[: len(begun)] == begun for text in tried):
            continue
        text = tokenizer.join(begun)[len(prompt.forced) :].decode(errors="ignore")
        if anew and "".join(whole.split()).startswith("".join(text.split())):
            continue
        longer = replace(prompt, ids=prompt.ids + begun, prefix=prompt.prefix + begun, forced=b"")
        return _Attempt(longer, begun, text, new_filter())
    return None


def _spelt(prompt: Prompt, tokens: tuple[int, ...], tokenizer: Tokenizer) -> int:
    """How many tokens spell the bytes that were taken off the prompt: these have no alternative."""
    count = size = 0
    while size < len(prompt.forced) and count < len(tokens):
        size += len(tokenizer.token_bytes(tokens[count]))
        count += 1
    return count


def _weighed(session: Session, attempt: _Attempt, last: Shown, choice: Choice) -> Shown:
    """The last step with everything that was held back, or with nothing where the target was not sure enough."""
    verdict = last.verdict
    assert verdict is not None
    sure = confidence(_reviewed(session, attempt))
    if verdict.text and sure < choice.least_confidence:
        verdict = Verdict("", finished=True, reason=Reason.DOUBTFUL)
    return replace(last, text=verdict.text, verdict=verdict, confidence=sure)


def _reviewed(session: Session, attempt: _Attempt) -> list[Reviewed]:
    return review(session, attempt.prompt, attempt.tokens) if attempt.tokens else []
