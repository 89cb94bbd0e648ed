"""What a list of measurements says: its mean, its variance, its extremes."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Summary:
    """The figures of one list of measurements."""

    count: int
    mean: float
    variance: float
    smallest: float
    largest: float

    def __str__(self) -> str:
        return f"{self.count} values, {self.mean:.2f} on average, {self.smallest:.2f} to {self.largest:.2f}"


def summarize(values: list[float]) -> Summary:
    """Count, mean, variance and extremes of at least one value."""
    if not values:
        raise ValueError("a summary needs at least one value")
    count = len(values)


def report(name: str, values: list[float]) -> str:
    """One line about the values, for a log."""
    return f"{name}: {summarize(values)}"
