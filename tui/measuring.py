"""Measuring plain decoding on this machine now: the yardstick of every speed-up that is shown."""

from collections.abc import Sequence

from assistant.protocol import Complete, Observed, Options
from tui.scratch import EXAMPLE
from tui.source import Source
from tui.state import MEASURING

MEASURED = 16


async def measure(source: Source, steps: Sequence[Observed]) -> None:
    """Let the daemon write MEASURED tokens one at a time after the text that is looked at, or after an example.

    The steps come in through the feed like everyone's.

    Raises:
        DaemonError: it cannot be asked.
    """
    before = (steps[0].before if steps else "") or EXAMPLE
    options = Options(method="plain", max_tokens=MEASURED + 1, policy=False)
    async for _ in source.complete(Complete(path=MEASURING, prefix=before, options=options, typed=False)):
        pass
