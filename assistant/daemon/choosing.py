"""One suggestion: what the target writes first, or another text that fits its place better.

A model asked to fill a gap often minds the text behind it too little. But it reads well: after a text that belongs
there it expects the lines that follow, after another it is surprised by them. So where lines follow, a text is worth
its own probability times that of the next few tokens behind it, read as one text, in plain order. Texts that begin
less probably than the first one is worth cannot be better; where any could, the most probable are written side by side
(`others`), read on, and the best is shown. That is also done where the text policy leaves nothing of the first, and
where the lines behind the cursor need a name that the first does not introduce.

Nothing of a first text is shown while another may still take its place; a long one has none.
"""

import math
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from assistant.daemon.others import Beginning, Writer, Written
from assistant.daemon.sequel import Sequels
from assistant.daemon.text import Filter, Reason, Verdict
from assistant.engine.aside import Aside
from assistant.engine.generate import Pace, unfold
from assistant.engine.review import Passage, Reviewed, confidence, deviations, log_prob, review
from assistant.engine.session import Session
from assistant.engine.tree import root_only
from assistant.engine.types import FinishReason, GenerateOptions, Origin, Prompt, StepResult
from assistant.errors import ContextOverflowError
from models.tokenizer import Tokenizer

_ANOTHER = frozenset(
    {Reason.REPEATS_REST, Reason.REPEATS_NEXT, Reason.REPEATS_ABOVE, Reason.LOOP, Reason.MISFIT, Reason.MARKER}
    | {Reason.EMPTY}
)
"""reasons that another text may not share"""
_REPEATS = frozenset({Reason.REPEATS_REST, Reason.REPEATS_NEXT, Reason.REPEATS_ABOVE})
"""those that the same text in another layout shares"""
_SHORT = 32
"""a first text with more tokens is shown as it is written"""
_LOSS = 3.0
"""what a text is worth less than its beginning, most often: the rest of it, and what follows, are not certain either"""
_OTHERS = 8
"""tokens, the most probable ones, that a text may part from another by"""
_ROOM = 1024
"""positions that other texts and what follows them need at most"""
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Choice:
    """How a suggestion is chosen."""

    attempts: int = 8
    """texts that are tried, the first included"""
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
    """with the last step, where it is known"""
    anew: bool = False
    """another text than that of the steps before, whose tokens do not count"""


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
    """Steps of a suggestion, None for a pause (`unfold`); the last one has its `verdict`.

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
    search = _Search(Writer(session, prompt, options, tokenizer, new_filter), choice, cancelled)
    return search.steps(unfold(session, prompt, options, tokenizer, cancelled, pace))


class _Search:
    """The choice of one suggestion."""

    def __init__(self, writer: Writer, choice: Choice, cancelled: Callable[[], bool]) -> None:
        self._writer = writer
        self._choice = choice
        self._cancelled = cancelled
        self._filter = writer.new_filter()
        # A text that was drawn is shown as it was drawn, unless it is wrong: the most probable one would always win.
        greedy = writer.options.sampling.greedy
        self._sequels = Sequels.at(self._filter.place, writer.prompt, writer.tokenizer) if greedy else None
        self._work = _Work()
        self._shown = 0
        """characters of the first text"""

    def steps(self, unfolded: Iterator[StepResult | None]) -> Iterator[Shown | None]:
        """The first text's steps, and one more where another is chosen."""
        tokens, last = yield from self._write(unfolded)
        if last.step.finish is FinishReason.CANCELLED or not tokens:
            yield last
            return
        assert last.verdict is not None
        first = self._writer.replay(tokens, last.verdict)
        try:
            best = yield from self._best(first)
        except ContextOverflowError:  # a search that finds no room loses no text that is finished
            best = first
        if best is not first:
            yield replace(last, text="", step=replace(last.step, finish=None), verdict=None)
            last = Shown(_anew(best), best.verdict.text, best.verdict, anew=True)
        yield self._final(last, best)

    def _write(self, unfolded: Iterator[StepResult | None]) -> Generator[Shown | None, None, tuple[list[int], Shown]]:
        """The steps of the first text but for the last one, which is returned behind all its tokens."""
        tokens: list[int] = []
        for step in unfolded:
            if step is None:
                yield None
                continue
            tokens += step.tokens
            final = step.finish is not None
            verdict = self._filter.take(step.text, final=final, stopped=step.finish is FinishReason.STOP)
            new = verdict.text[self._shown :]
            if verdict.finished or final:
                return tokens, Shown(step, new, verdict)
            text = "" if self._holds(len(tokens)) else new
            self._shown += len(text)
            yield Shown(step, text)
        raise AssertionError("an engine's last step says that it is the last")

    def _holds(self, tokens: int) -> bool:
        """Whether nothing is shown yet of a text with so many tokens."""
        return self._choice.least_confidence > 0.0 or (self._sequels is not None and tokens <= _SHORT)

    def _best(self, first: Written) -> Generator[None, None, Written]:
        """The text that is shown. Others may use the engine between forwards; a withdrawn request gets its first."""
        shows = bool(first.verdict.text)
        wrong = first.lacks if shows else first.verdict.reason in _ANOTHER
        sequels = self._sequels if len(first.tokens) <= _SHORT else None
        tried = self._choice.attempts > 1 and not self._shown and self._roomy
        doubted = tried and (wrong or (shows and sequels is not None))
        if not doubted and self._choice.least_confidence <= 0.0:
            return first
        yield None
        if self._cancelled():
            return first
        self._make_room(len(first.tokens))
        aside = Aside(self._writer.session)
        starts = self._look_back(aside, first, sequels if doubted else None)
        bound = -math.inf if wrong else first.value
        beginnings = self._chosen(starts, bound) if doubted else []
        finished = yield from self._written(aside, beginnings, bound)
        others = list({one.verdict.text: one for one in reversed(finished) if one.verdict.text}.values())
        if sequels is not None and others:
            self._read_on(aside, others, sequels)
        texts = [first, *others] if shows else others
        return max(texts, default=first, key=lambda one: (not one.lacks, sequels is None and one is first, one.value))

    @property
    def _roomy(self) -> bool:
        session = self._writer.session
        return session.cache.limit - len(session.ids) >= _ROOM

    def _make_room(self, tokens: int) -> None:
        """Give up what was written where so many tokens do not fit behind it: behind the prompt they did."""
        session = self._writer.session
        if session.cache.limit - len(session.ids) < tokens:
            del session.ids[len(self._writer.prompt.ids) :]

    def _passage(self, text: Written) -> Passage:
        """A text as the target writes it."""
        return Passage(len(self._writer.prompt.ids), tuple(text.tokens))

    def _look_back(self, aside: Aside, first: Written, sequels: Sequels | None) -> list[Beginning]:
        """Find out what the first text is worth, and where others may part from it, the most probable first.

        Where it was a repetition, they differ from it in more than layout.
        """
        passages = [self._passage(first)]
        reading = None if sequels is None else sequels.reading(first.verdict.text)
        if reading is not None:
            passages.append(reading.passage)
        reviewed = self._work.run(lambda: review(aside, passages, others=_OTHERS))
        first.log_prob = log_prob(reviewed[0])
        starts = self._parting(reviewed[0], first.verdict.reason)
        if reading is not None:
            first.sequel = reading.value(reviewed[1])
            starts += self._parting(reading.own(reviewed[1]), first.verdict.reason, plain=True)
        return starts

    def _parting(self, reviewed: Sequence[Reviewed], reason: Reason, *, plain: bool = False) -> list[Beginning]:
        """What other texts may begin with, the most probable first."""
        writer = self._writer
        forced, tokens = writer.prompt.forced, tuple(one.token for one in reviewed)
        repeated = "".join(self._spelt(tokens).split()) if reason in _REPEATS and not plain else None
        found = []
        for value, place, token in deviations(reviewed):
            begun, spelt = (*tokens[:place], token), writer.tokenizer.token_bytes(token)
            due = forced[len(writer.tokenizer.join(tokens[:place])) :]
            if token in writer.options.stop_ids or not spelt or not spelt.startswith(due):
                continue
            if repeated is None or not repeated.startswith("".join(self._spelt(begun).split())):
                found.append(Beginning(begun, value, reviewed[place].node, plain))
        return found

    def _chosen(self, starts: Sequence[Beginning], bound: float) -> list[Beginning]:
        """Those that are tried; none where none is much more probable than the bound: no text is worth more then."""
        most = self._choice.attempts - 1
        plain = [start for start in starts if start.plain][: most // 2]
        known = [start for start in starts if not start.plain and start.log_prob > bound + _LOSS][: most - len(plain)]
        return [*known, *plain] if known else []

    def _written(
        self, aside: Aside, beginnings: Sequence[Beginning], bound: float
    ) -> Generator[None, None, list[Written]]:
        """The texts with these beginnings that may be worth more than the bound; none for a withdrawn request."""
        writing = self._writer.write(aside, beginnings, bound)
        finished = next(writing)
        while (more := self._work.run(lambda: next(writing, None))) is not None:
            finished = more
            yield None
            if self._cancelled():
                return []
        return finished

    def _read_on(self, aside: Aside, texts: Sequence[Written], sequels: Sequels) -> None:
        """Find out what texts are worth."""
        readings = [sequels.reading(text.verdict.text) for text in texts]
        plain = [text for text in texts if text.plain]
        passages = [*(reading.passage for reading in readings), *map(self._passage, plain)]
        found = self._work.run(lambda: review(aside, passages))
        for text, reading, reviewed in zip(texts, readings, found, strict=False):
            text.sequel = reading.value(reviewed)
        for text, reviewed in zip(plain, found[len(texts) :], strict=True):
            text.log_prob = log_prob(reviewed)

    def _spelt(self, tokens: tuple[int, ...]) -> str:
        """The text of tokens, without what was typed already."""
        writer = self._writer
        return writer.tokenizer.join(tokens)[len(writer.prompt.forced) :].decode(errors="ignore")

    def _final(self, last: Shown, text: Written) -> Shown:
        """The last step with what choosing took; and with nothing to show where the target was not sure enough."""
        if not self._work.forwards:
            return last
        assert last.verdict is not None
        sure = confidence(text.log_prob, len(text.tokens))
        if last.verdict.text and sure < self._choice.least_confidence:
            last = replace(last, text="", verdict=Verdict("", finished=True, reason=Reason.DOUBTFUL))
        return replace(last, step=self._work.added(last.step), confidence=sure)


class _Work:
    """What choosing takes besides the first text's own steps."""

    def __init__(self) -> None:
        self.forwards = 0
        self._ms = 0.0

    def run(self, forward: Callable[[], T]) -> T:
        """The result of something that is one forward, or none where there is none."""
        started = time.perf_counter()
        result = forward()
        self.forwards += result is not None
        self._ms += (time.perf_counter() - started) * 1e3
        return result

    def added(self, step: StepResult) -> StepResult:
        """A step with it."""
        return replace(step, forwards=step.forwards + self.forwards, verify_ms=step.verify_ms + self._ms)


def _anew(text: Written) -> StepResult:
    """A text as one step."""
    tokens = tuple(text.tokens)
    origins = (Origin.TARGET,) * len(tokens)
    return StepResult(
        tokens, origins, "", root_only(tokens[0]), (), forwards=0, finish=text.finish or FinishReason.STOP
    )
