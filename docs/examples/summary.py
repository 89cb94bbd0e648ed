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


def outliers(values: list[float], limit: float = 3.0) -> list[float]:
    """The values that lie more than `limit` standard deviations away from the mean."""
    summary = summarize(values)
    return [value for value in values if (value - summary.mean) ** 2 > limit**2 * summary.variance]
