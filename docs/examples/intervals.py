"""Closed intervals of integers: joined, intersected and measured."""

from dataclasses import dataclass


@dataclass(frozen=True, order=True)
class Interval:
    """All integers from `start` to `end`, both included."""

    start: int
    end: int

    def __len__(self) -> int:
        return self.end - self.start + 1

    def touches(self, other: "Interval") -> bool:
        """Whether the two overlap or lie side by side, so that one interval can hold both."""
        return self.start <= other.end + 1 and other.start <= self.end + 1


def intersect(first: Interval, second: Interval) -> Interval | None:
    """The integers that both intervals hold, or None where there are none."""
    start = max(first.start, second.start)
    end = min(first.end, second.end)
    return Interval(start, end) if start <= end else None


def merge(intervals: list[Interval]) -> list[Interval]:
    """Join the intervals that touch one another; the result is sorted and has gaps between its intervals."""


def total_length(intervals: list[Interval]) -> int:
    """How many integers lie in at least one of the intervals."""
    return sum(len(interval) for interval in merge(intervals))
