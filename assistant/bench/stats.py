"""The few statistics that every table shows beside its figures."""

import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from random import Random
from typing import TypeVar

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Spread:
    """How values lie: the extremes, the quartiles and the median between them."""

    least: float
    q1: float
    median: float
    q3: float
    most: float

    def to_json(self) -> dict[str, float]:
        """A JSON object under the same names."""
        return asdict(self)


def spread(values: Sequence[float]) -> Spread:
    """The spread of one value or more (quartiles by linear interpolation, the inclusive method)."""
    ordered = sorted(values)
    if len(ordered) == 1:
        return Spread(*ordered * 5)
    q1, median, q3 = statistics.quantiles(ordered, n=4, method="inclusive")
    return Spread(ordered[0], q1, median, q3, ordered[-1])


def wilson(passed: int, tried: int) -> tuple[float, float]:
    """Wilson's 95 % interval of a share, for `tried` > 0."""
    z = 1.96
    share = passed / tried
    middle = share + z * z / (2 * tried)
    reach = z * math.sqrt(share * (1 - share) / tried + z * z / (4 * tried * tried))
    scale = 1 + z * z / tried
    return max(0.0, (middle - reach) / scale), min(1.0, (middle + reach) / scale)


def expected_chain_tokens(acceptance: float, drafts: int) -> float:
    """Tokens a step of a chain of `drafts` drafts that are each accepted with probability `acceptance`.

    (1 - a^(K+1)) / (1 - a): Leviathan et al. 2023, equation 1.
    """
    if acceptance >= 1.0:
        return drafts + 1.0
    return float((1 - acceptance ** (drafts + 1)) / (1 - acceptance))


def percentile(values: Sequence[float], percent: float) -> float:
    """The value below which `percent` % of one value or more lie, linearly interpolated."""
    ordered = sorted(values)
    place = (len(ordered) - 1) * percent / 100
    low = math.floor(place)
    return ordered[low] + (ordered[min(low + 1, len(ordered) - 1)] - ordered[low]) * (place - low)


def bootstrap(items: Sequence[_T], figure: Callable[[Sequence[_T]], float], draws: int = 2000) -> tuple[float, float]:
    """Where 95 % of a figure lie when one item or more are drawn anew, as many, with replacement; always the same."""
    random = Random(0)  # noqa: S311 - nothing secret
    figures = [figure(random.choices(items, k=len(items))) for _ in range(draws)]
    return percentile(figures, 2.5), percentile(figures, 97.5)
