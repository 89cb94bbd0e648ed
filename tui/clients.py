"""Who asked for completions, and for which documents: what the daemon lists and what the feed told."""

from dataclasses import dataclass

from assistant.protocol import Missed, Observed, Settled
from tui.state import Filter, View

_ENDS = 200


@dataclass(frozen=True, slots=True)
class Row:
    """A client, or one of its documents."""

    client: str
    document: str | None
    steps: int
    """of those kept"""
    requests: int = 0
    shown: int = 0
    accepted: int = 0

    @property
    def filter(self) -> Filter:
        """What to show of the feed for this row."""
        return Filter(self.client, self.document)


def rows(view: View) -> tuple[Row, ...]:
    """Every client, by name, each before its documents."""
    steps: dict[tuple[str, str], int] = {}
    for kept in view.history:
        event = kept.event
        if not isinstance(event, Missed):
            key = (event.client, event.document)
            steps[key] = steps.get(key, 0) + isinstance(event, Observed)
    infos = view.status.clients if view.status else ()
    for info in infos:
        for document in info.documents:
            steps.setdefault((info.name, document), 0)
    names = sorted({client for client, _ in steps} | {info.name for info in infos})
    found: list[Row] = []
    for name in names:
        own = sorted(key for key in steps if key[0] == name)
        same = [info for info in infos if info.name == name]  # two windows of one editor have one name
        counts = (sum(i.requests for i in same), sum(i.shown for i in same), sum(i.accepted for i in same))
        found.append(Row(name, None, sum(steps[key] for key in own), *counts))
        found += [Row(name, key[1], steps[key]) for key in own]
    return tuple(found)


def next_filter(view: View) -> Filter:
    """The filter after the present one: every client, then every document of it, then everything again."""
    order = [Filter(), *(row.filter for row in rows(view))]
    at = order.index(view.filter) if view.filter in order else 0
    return order[(at + 1) % len(order)]


@dataclass(frozen=True, slots=True)
class Ended:
    """A completion as a line of the list."""

    client: str
    document: str
    method: str
    tokens: int
    steps: int
    outcomes: tuple[str, ...]
    """how it ended, and what its client did with it"""
    total_ms: float


def ended(view: View, most: int) -> tuple[Ended, ...]:
    """The newest completions that are shown, the newest first."""
    order: dict[str, list[Observed | Settled]] = {}
    for kept in view.history:
        event = kept.event
        if isinstance(event, Missed) or not view.filter.takes(event):
            continue
        request = event.step.request if isinstance(event, Observed) else event.request
        order.setdefault(request, []).append(event)
    return tuple(_ended(events) for events in list(order.values())[: -min(most, _ENDS) - 1 : -1])


def _ended(events: list[Observed | Settled]) -> Ended:
    steps = [event.step for event in events if isinstance(event, Observed)]
    ends = [event for event in events if isinstance(event, Settled)]
    return Ended(
        client=events[0].client,
        document=events[0].document,
        method=next((event.method for event in events if isinstance(event, Observed)), ""),
        tokens=sum(len(step.tokens) for step in steps),
        steps=sum(step.index > 0 for step in steps),
        outcomes=tuple(event.outcome for event in ends),
        total_ms=max((event.total_ms for event in ends), default=0.0),
    )
