"""Small charts of characters."""

from collections.abc import Sequence

BARS = "▁▂▃▄▅▆▇█"
_EIGHTHS = "▏▎▍▌▋▊▉"
_LOW = len(BARS) - 1
"""a strip keeps a gap below the one above it"""


def spark(values: Sequence[float], width: int) -> str:
    """The last `width` values, as bars from 0 to the largest of them."""
    shown = values[-width:] if width > 0 else ()
    top = max(shown, default=0)
    return "".join(BARS[min(int(value / top * _LOW), _LOW - 1)] if top and value else " " for value in shown)


def bar(part: float, width: int) -> str:
    """A bar of `part` (0 to 1) of `width` cells, in eighths of a cell."""
    full, rest = divmod(round(min(max(part, 0.0), 1.0) * width * 8), 8)
    return "█" * full + (_EIGHTHS[rest - 1] if rest else "")


def needle(part: float, at: float, width: int) -> str:
    """A bar of `part` in a field of `width` cells, with a mark where `at` (0 to 1) lies."""
    field = list(bar(part, width).ljust(width))
    field[min(int(at * width), width - 1)] = "◆"
    return "".join(field)
