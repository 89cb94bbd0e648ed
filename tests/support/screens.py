"""Running the terminal interface without a terminal: scenarios, waiting for what they cause, the screen as text."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

from rich.style import Style
from textual.pilot import Pilot

from tests.support.scripted import Scripted
from tui.app import EagleApp
from tui.trace import Trace

Scenario = Callable[[EagleApp, "Pilot[None]", Scripted], Awaitable[None]]
SMALL, LARGE = (80, 24), (160, 50)
_PATIENCE = 300
"""looks at a condition before it counts as never true"""
_PAUSES_S = (0.01, 0.1)
"""between the first two of them, and at most between two: a look at the screen draws it"""


def play(
    scenario: Scenario,
    folder: Path,
    *,
    source: Scripted | None = None,
    trace: Trace | None = None,
    size: tuple[int, int] = SMALL,
) -> None:
    """Run the interface on a scripted daemon, or on a trace, and the scenario on it."""

    async def run() -> None:
        scripted = source or Scripted()
        app = _Patient(None if trace else scripted, trace, folder)
        async with app.run_test(size=size, notifications=True) as pilot:
            await scenario(app, pilot, scripted)

    asyncio.run(run())


class _Patient(EagleApp):
    NOTIFICATION_TIMEOUT = 60  # a busy machine may look late


async def until(pilot: "Pilot[None]", condition: Callable[[], bool]) -> None:
    """Wait until something is so; it failing to become so fails the test."""
    pause, longest = _PAUSES_S
    for _ in range(_PATIENCE):
        if condition():
            return
        await pilot.pause(pause)
        pause = min(pause * 1.5, longest)
    raise AssertionError(f"never: {screen(pilot.app)}")  # type: ignore[arg-type]


async def shows(pilot: "Pilot[None]", *texts: str) -> None:
    """Wait until all of that stands on the screen."""
    await until(pilot, lambda: all(text in screen(pilot.app) for text in texts))  # type: ignore[arg-type]


def screen(app: EagleApp) -> str:
    """What stands on the screen, a line each, without trailing blanks."""
    strips = app.screen._compositor.render_strips()
    return "\n".join("".join(segment.text for segment in strip).rstrip() for strip in strips)


def style_of(app: EagleApp, text: str) -> Style:
    """The style of the first segment that holds this text."""
    for strip in app.screen._compositor.render_strips():
        for segment in strip:
            if text in segment.text and segment.style is not None:
                return segment.style
    raise AssertionError(f"{text!r} is not on the screen")
