"""Other texts for a place: each parts from a first one at some token, and goes on as the target then would.

They are written side by side, a token of each in one forward, which costs little more than a token of one.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import torch

from assistant.daemon.text import Filter, Verdict
from assistant.engine.aside import Aside
from assistant.engine.emit import Emitter
from assistant.engine.session import Session
from assistant.engine.types import FinishReason, GenerateOptions, Origin, Prompt
from models.tokenizer import Tokenizer

_LONG = 24
"""tokens after which a text is given up where there is another to show"""


@dataclass(frozen=True, slots=True)
class Beginning:
    """What another text begins with: some of the first one's, and a token of its own."""

    tokens: tuple[int, ...]
    log_prob: float
    parent: int
    """the node that the last one follows (`Aside.grow`)"""
    plain: bool = False
    """it is written, and its probability told, as if nothing followed the cursor"""


@dataclass(slots=True)
class Written:
    """A text, what may be shown of it, and what it is worth: natural logarithms of probabilities."""

    filter: Filter
    verdict: Verdict
    tokens: list[int] = field(default_factory=list)
    log_prob: float = 0.0
    """of its tokens"""
    sequel: float = 0.0
    """of what stands behind it, where that was read"""
    finish: FinishReason | None = None
    plain: bool = False
    """`log_prob` is of what a target writes that does not know what follows"""

    @property
    def value(self) -> float:
        return self.log_prob + self.sequel

    @property
    def lacks(self) -> bool:
        """Whether it leaves out a name that the following lines need."""
        return self.filter.lacks(self.verdict.text)

    @property
    def over(self) -> bool:
        return self.verdict.finished or self.finish is not None


class _Line:
    """A text that is being written.

    Args:
        text: nothing yet.
        emitter: a new one.
        parent: of the node of its last token.
    """

    def __init__(self, text: Written, emitter: Emitter, parent: int) -> None:
        self.text = text
        self.parent = parent
        self._emitter = emitter

    def take(self, token: int, log_prob: float) -> None:
        text = self.text
        emission = self._emitter.take([token], [Origin.TARGET])
        text.tokens += emission.tokens
        text.log_prob += log_prob
        text.finish = emission.finish
        stopped = emission.finish is FinishReason.STOP
        text.verdict = text.filter.take(emission.text, final=emission.finish is not None, stopped=stopped)


@dataclass(frozen=True, slots=True)
class Writer:
    """Writes texts behind a prompt whose first text a session holds."""

    session: Session
    prompt: Prompt
    options: GenerateOptions
    tokenizer: Tokenizer
    new_filter: Callable[[], Filter]

    def replay(self, tokens: Sequence[int], verdict: Verdict) -> Written:
        """The first text, of which so many tokens were written: without those behind its end."""
        line = self._line(0, plain=False)
        for token in tokens:
            if line.text.over:
                break
            line.take(token, 0.0)
        line.text.verdict = verdict
        return line.text

    def write(self, aside: Aside, beginnings: Sequence[Beginning], bound: float) -> Iterator[list[Written]]:
        """The texts that are finished so far: by their beginnings, then after each forward.

        Args:
            aside: where they are written.
            beginnings: of the texts.
            bound: a text that becomes less probable is given up, unless its probability is a `plain` one (natural
                logarithm). Where it is finite there is a text to show already.
        """
        live = [self._begun(beginning) for beginning in beginnings]
        finished = [line.text for line in live if line.text.over]
        live = [line for line in live if not line.text.over]
        yield finished
        while live and aside.room >= len(live):
            self._advance(aside, live)
            kept = [line for line in live if line.text.plain or line.text.log_prob > bound]
            finished += [line.text for line in kept if line.text.over]
            shows = math.isfinite(bound) or any(text.verdict.text for text in finished)
            longest = _LONG if shows else self.options.max_tokens
            live = [line for line in kept if not line.text.over and len(line.text.tokens) < longest]
            yield finished

    def _line(self, parent: int, *, plain: bool) -> _Line:
        new = self.new_filter()
        text = Written(new, new.take("", final=False), plain=plain)
        return _Line(text, Emitter(self.options, self.tokenizer, self.prompt.forced), parent)

    def _begun(self, beginning: Beginning) -> _Line:
        line = self._line(beginning.parent, plain=beginning.plain)
        for token in beginning.tokens:
            line.take(token, 0.0)
        line.text.log_prob = beginning.log_prob
        return line

    def _advance(self, aside: Aside, live: Sequence[_Line]) -> None:
        """One more token of each, the most probable."""
        first = aside.size
        logits = aside.grow([line.text.tokens[-1] for line in live], [line.parent for line in live])
        best = torch.log_softmax(logits.float(), dim=-1).max(dim=-1)
        found = zip(live, best.values.tolist(), best.indices.tolist(), strict=True)
        for node, (line, log_prob, token) in enumerate(found, start=first):
            line.parent = node
            line.take(token, log_prob)
