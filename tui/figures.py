"""Steps and ends of completions, folded into the figures that are shown; everything bounded, nothing invented.

A figure that nobody measured is None.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from statistics import median

from assistant.protocol import FeedEvent, Observed, Settled, Step
from tui import drafts

DRAFTED = ("head", "draft", "retrieval")
"""origins of tokens that were guessed and accepted; the target wrote the others itself"""
BINS = 10
RECENT = 512
"""steps and ends whose times and shapes are kept"""


@dataclass(frozen=True, slots=True)
class Bin:
    """Guesses of about the same confidence."""

    guesses: int = 0
    accepted: int = 0
    confidence: float = 0.0
    """the sum over the guesses"""


@dataclass(frozen=True, slots=True)
class Recent:
    """The last values of what is drawn over time or ranked, oldest first."""

    nodes: tuple[int, ...] = ()
    depth: tuple[int, ...] = ()
    width: tuple[int, ...] = ()
    tokens: tuple[int, ...] = ()
    draft_ms: tuple[float, ...] = ()
    verify_ms: tuple[float, ...] = ()
    prefill_ms: tuple[float, ...] = ()
    queue_ms: tuple[float, ...] = ()
    total_ms: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class Figures:
    """Sums over steps and completions."""

    completions: int = 0
    steps: int = 0
    """verifications; prefills are not among them"""
    forwards: int = 0
    tokens: int = 0
    """written in steps, the prefills' left out"""
    drafting_steps: int = 0
    """steps of completions whose method drafts, whether there was something to draft or not"""
    drafting_tokens: int = 0
    drafting_ms: float = 0.0
    """what those steps took: drafting and verifying"""
    origins: dict[str, int] = field(default_factory=dict)
    """tokens of such completions by who wrote them, the prefills' included"""
    plain_tokens: int = 0
    """tokens of the others"""
    prompt_tokens: int = 0
    reused: int = 0
    depths: tuple[tuple[int, int], ...] = ()
    """(tried, accepted) by depth, from 1"""
    bins: tuple[Bin, ...] = (Bin(),) * BINS
    outcomes: dict[str, int] = field(default_factory=dict)
    """ends of completions and feedback on suggestions, by name"""
    recent: Recent = Recent()

    @property
    def tokens_per_step(self) -> float | None:
        """Tokens after the prefill's / forwards of the target, of methods that draft where there are any."""
        if self.drafting_steps:
            return self.drafting_tokens / self.drafting_steps
        return self.tokens / self.forwards if self.forwards else None

    @property
    def drafted_share(self) -> float | None:
        """The part of the tokens that was guessed and accepted, of methods that draft."""
        written = sum(self.origins.values())
        return sum(self.origins.get(origin, 0) for origin in DRAFTED) / written if written else None


@dataclass(frozen=True, slots=True)
class Speedup:
    """Times as fast as writing one token a forward."""

    times: float
    plain_ms: float
    """what one token a forward costs"""
    basis: str
    """where that comes from, in words"""


def speedup(figures: Figures, measured: Iterable[float], modelled_ms: float = 0.0) -> Speedup | None:
    """The ledger: tokens x the cost of a plain step / what the drafting steps took; None where a part is not known.

    Args:
        figures: of the steps that are judged.
        measured: milliseconds of plain steps that ran; preferred.
        modelled_ms: what the daemon's cost model says of a plain step; 0 where it says nothing.
    """
    sample = tuple(measured)
    plain_ms = median(sample) if sample else modelled_ms
    if not plain_ms or not figures.drafting_ms:
        return None
    basis = f"{len(sample)} measured" if sample else "cost model"
    return Speedup(figures.drafting_tokens * plain_ms / figures.drafting_ms, plain_ms, basis)


def quantile(values: Iterable[float], part: float) -> float | None:
    """The nearest-rank quantile; None of nothing."""
    ranked = sorted(values)
    return ranked[min(int(part * len(ranked)), len(ranked) - 1)] if ranked else None


def fold(figures: Figures, events: Iterable[FeedEvent]) -> Figures:
    """Add events to the figures, in the order in which they happened."""
    tally = _Tally(figures)
    for event in events:
        if isinstance(event, Observed):
            tally.step(event.step, plain=event.method == "plain")
        elif isinstance(event, Settled):
            tally.end(event)
    return tally.figures()


def plain_samples(events: Iterable[FeedEvent]) -> tuple[float, ...]:
    """Milliseconds of each step that drafted nothing and cost one forward: samples of plain decoding."""
    return tuple(e.step.verify_ms for e in events if isinstance(e, Observed) and _is_plain(e.step))


def _is_plain(step: Step) -> bool:
    drafted = step.tree is not None and len(step.tree.tokens) > 1
    return not drafted and not step.prompt_tokens and step.index > 0 and step.forwards == 1 and len(step.tokens) == 1


class _Tally:
    """Collects a batch in mutable sums, so that a flood costs one copy a batch and not one a step."""

    def __init__(self, before: Figures) -> None:
        self._before = before
        self._sums = dict.fromkeys(
            ("completions", "steps", "forwards", "tokens", "drafting_steps", "drafting_tokens", "drafting_ms",
             "plain_tokens", "prompt_tokens", "reused"), 0.0
        )  # fmt: skip
        self._origins = dict(before.origins)
        self._outcomes = dict(before.outcomes)
        self._depths: list[tuple[int, int]] = list(before.depths)
        self._bins = list(before.bins)
        self._recent: dict[str, list[float]] = {name: [] for name in Recent.__slots__}

    def step(self, step: Step, *, plain: bool) -> None:
        if plain:
            self._add(plain_tokens=len(step.tokens))
        else:
            for origin in step.origins:
                self._origins[origin] = self._origins.get(origin, 0) + 1
        if step.index == 0 or step.prompt_tokens:
            self._prefill(step)
            return
        self._add(steps=1, forwards=step.forwards, tokens=len(step.tokens))
        self._keep(tokens=len(step.tokens), verify_ms=step.verify_ms)
        if step.draft_ms:
            self._keep(draft_ms=step.draft_ms)
        if not plain and not step.anew:
            spent = step.draft_ms + step.verify_ms
            self._add(drafting_steps=step.forwards, drafting_tokens=len(step.tokens), drafting_ms=spent)
        if step.tree is None or len(step.tree.tokens) < 2:
            self._keep(nodes=0, depth=0, width=0)
            return
        size = drafts.shape(step.tree)
        self._keep(nodes=size.nodes, depth=size.depth, width=size.width)
        for depth, accepted in drafts.tried(step.tree):
            if depth > len(self._depths):
                self._depths.append((0, 0))
            tried, taken = self._depths[depth - 1]
            self._depths[depth - 1] = (tried + 1, taken + accepted)
        for confidence, accepted in drafts.judged(step.tree):
            at = min(int(confidence * BINS), BINS - 1)
            old = self._bins[at]
            self._bins[at] = Bin(old.guesses + 1, old.accepted + accepted, old.confidence + confidence)

    def end(self, event: Settled) -> None:
        self._outcomes[event.outcome] = self._outcomes.get(event.outcome, 0) + 1
        if event.total_ms:
            self._keep(queue_ms=event.queue_ms, total_ms=event.total_ms)

    def figures(self) -> Figures:
        before = self._before
        sums = {name: getattr(before, name) + type(getattr(before, name))(add) for name, add in self._sums.items()}
        recent = {name: (*getattr(before.recent, name), *new)[-RECENT:] for name, new in self._recent.items()}
        return replace(
            before,
            **sums,
            origins=self._origins,
            outcomes=self._outcomes,
            depths=tuple(self._depths),
            bins=tuple(self._bins),
            recent=Recent(**recent),
        )

    def _prefill(self, step: Step) -> None:
        self._add(completions=1, prompt_tokens=step.prompt_tokens, reused=step.reused)
        self._keep(prefill_ms=step.prefill_ms)

    def _add(self, **amounts: float) -> None:
        for name, amount in amounts.items():
            self._sums[name] += amount

    def _keep(self, **values: float) -> None:
        for name, value in values.items():
            self._recent[name].append(value)


def calibration_error(figures: Figures) -> float | None:
    """The mean distance of confidence from what was accepted, weighted by guesses (expected calibration error)."""
    guesses = sum(row.guesses for row in figures.bins)
    if not guesses:
        return None
    return sum(abs(row.confidence - row.accepted) for row in figures.bins) / guesses


def acceptance(figures: Figures) -> tuple[tuple[int, float, int], ...]:
    """(depth, the part of tries that was accepted, tries), from depth 1."""
    return tuple((depth, taken / tried, tried) for depth, (tried, taken) in enumerate(figures.depths, 1))
