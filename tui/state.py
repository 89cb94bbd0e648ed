"""The view model: feed events fold into one frozen `View`; every widget draws a `View` and nothing else.

The functions are pure, and a batch of n events costs O(n + HISTORY): memory is bounded by HISTORY whatever comes in.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum

from assistant.protocol import FeedEvent, Missed, Observed, Status
from tui.figures import Figures, Speedup, fold, plain_samples, speedup

HISTORY = 2000
"""events that are kept: what can be scrolled through, filtered and saved"""
PLAIN = 16
"""the last plain steps, which speed is compared with: few, since what else the machine does changes by the minute"""

MEASURING = "plain-decoding.py"
"""the document in which plain decoding is measured: shown only where it is asked for"""


class Link(StrEnum):
    """How the interface stands with the daemon."""

    CONNECTING = "connecting"
    LIVE = "live"
    ABSENT = "absent"
    """no daemon runs"""
    LOST = "lost"
    """it went away; the interface keeps trying"""
    TRACE = "trace"
    """a saved trace is shown, there is no daemon"""


@dataclass(frozen=True, slots=True)
class Filter:
    """Which part of the feed is shown; None is all of it."""

    client: str | None = None
    document: str | None = None

    def takes(self, event: FeedEvent) -> bool:
        """Whether an event belongs to what is shown."""
        if isinstance(event, Missed) or (event.document == MEASURING and self.document != MEASURING):
            return False
        return self.client in {None, event.client} and self.document in {None, event.document}

    @property
    def everything(self) -> bool:
        """Whether nothing is left out."""
        return self.client is None and self.document is None


@dataclass(frozen=True, slots=True)
class Kept:
    """An event and its number, from 0, in the order of arrival."""

    number: int
    event: FeedEvent


@dataclass(frozen=True, slots=True)
class View:
    """All that is on the screen."""

    link: Link = Link.CONNECTING
    sentence: str = ""
    """what there is to say of the link"""
    status: Status | None = None
    history: tuple[Kept, ...] = ()
    """the last HISTORY events of every client"""
    arrived: int = 0
    """events that ever came"""
    missed: int = 0
    """events that the daemon left out because the interface was too slow"""
    filter: Filter = Filter()
    figures: Figures = field(default_factory=Figures)
    """of what the filter takes: since the start, or, after a change of the filter, since the oldest event kept"""
    plain_ms: tuple[float, ...] = ()
    """the last plain steps of any client: what speed is compared with"""
    selected: int | None = None
    """the number of the step that is looked at; None is the newest"""
    paused: bool = False

    @property
    def modelled_ms(self) -> float:
        """What a plain step costs by the daemon's cost model; 0 where it does not say."""
        return self.status.plain_ms if self.status else 0.0

    @property
    def speed(self) -> Speedup | None:
        """Of everything shown, against plain decoding."""
        return speedup(self.figures, self.plain_ms, self.modelled_ms)


def take(view: View, events: Sequence[FeedEvent]) -> View:
    """Fold a batch of the feed in."""
    missed = sum(event.count for event in events if isinstance(event, Missed))
    events = [event for event in events if not isinstance(event, Missed)]
    kept = tuple(Kept(view.arrived + i, event) for i, event in enumerate(events))
    return replace(
        view,
        history=(*view.history, *kept)[-HISTORY:],
        arrived=view.arrived + len(kept),
        missed=view.missed + missed,
        figures=fold(view.figures, (event for event in events if view.filter.takes(event))),
        plain_ms=(*view.plain_ms, *plain_samples(events))[-PLAIN:],
    )


def narrow(view: View, wanted: Filter) -> View:
    """Show a part of the feed, or all of it; the figures are those of the events that are still kept."""
    figures = fold(Figures(), (kept.event for kept in view.history if wanted.takes(kept.event)))
    return replace(view, filter=wanted, figures=figures, selected=None)


def connected(view: View, link: Link, sentence: str = "") -> View:
    """Take in how the connection stands; what a daemon that went away said of itself is forgotten."""
    return replace(view, link=link, sentence=sentence, status=view.status if link is Link.LIVE else None)


def steps(view: View) -> tuple[Kept, ...]:
    """The steps that are shown, oldest first."""
    return tuple(kept for kept in view.history if isinstance(kept.event, Observed) and view.filter.takes(kept.event))


def current(view: View) -> Observed | None:
    """The step that is looked at: the selected one, or the newest, or None before there is any."""
    shown = steps(view)
    for kept in reversed(shown):
        if view.selected is None or kept.number <= view.selected:
            assert isinstance(kept.event, Observed)
            return kept.event
    return shown[0].event if shown and isinstance(shown[0].event, Observed) else None


def move(view: View, by: int) -> View:
    """Look at another step; moving past the newest goes on with it."""
    shown = steps(view)
    if not shown:
        return view
    at = place(view, shown) + by
    return replace(view, selected=None if at >= len(shown) else shown[max(at, 0)].number)


def place(view: View, shown: Sequence[Kept]) -> int:
    """The index of the step that is looked at among those shown."""
    if view.selected is None:
        return len(shown) - 1
    before = [index for index, kept in enumerate(shown) if kept.number <= view.selected]
    return before[-1] if before else 0


def select_completion(view: View, by: int) -> View:
    """Look at the last step of another completion, `by` completions on."""
    shown = steps(view)
    last: dict[str, int] = {}
    for kept in shown:
        assert isinstance(kept.event, Observed)
        last[kept.event.step.request] = kept.number
    looked_at = current(view)
    if looked_at is None:
        return view
    order = list(last)
    at = order.index(looked_at.step.request) + by
    if at >= len(order):
        return replace(view, selected=None)
    return replace(view, selected=last[order[max(at, 0)]])


def completion(view: View) -> tuple[Observed, ...]:
    """The steps of the completion that is looked at, up to the step that is looked at."""
    whole, end = whole_completion(view), current(view)
    at = next((index for index, observed in enumerate(whole) if observed is end), -1)
    return whole[: at + 1]


def whole_completion(view: View) -> tuple[Observed, ...]:
    """The steps of the completion that is looked at, those after the step that is looked at too."""
    looked_at = current(view)
    request = None if looked_at is None else looked_at.step.request
    events = (kept.event for kept in view.history)
    return tuple(event for event in events if isinstance(event, Observed) and event.step.request == request)


def figures_of(observed: Iterable[Observed]) -> Figures:
    """The figures of these steps alone."""
    return fold(Figures(), observed)
