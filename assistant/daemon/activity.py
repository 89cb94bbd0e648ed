"""What goes on in the service, as its lifecycle sees it: whether anybody uses it, and since when nobody does."""

import time
from dataclasses import dataclass, field


@dataclass(slots=True)
class Activity:
    """What the lifecycle watches."""

    streams: int = 0
    """completions and feeds that are being sent"""
    completing: int = 0
    """of which completions"""
    last: float = field(default_factory=time.monotonic)
    """when a stream last began or ended, or a client came or went"""
    last_completion: float = field(default_factory=time.monotonic)
    """when a completion last began or ended"""

    def began(self, *, completing: bool = False) -> None:
        """A stream began."""
        self.streams += 1
        self.completing += completing
        self.touch(completing=completing)

    def ended(self, *, completing: bool = False) -> None:
        """A stream ended."""
        self.streams -= 1
        self.completing -= completing
        self.touch(completing=completing)

    def touch(self, *, completing: bool = False) -> None:
        """Something went on."""
        self.last = time.monotonic()
        if completing:
            self.last_completion = self.last

    @property
    def idle_s(self) -> float:
        """Seconds since anything went on; 0 during a stream."""
        return 0.0 if self.streams else time.monotonic() - self.last

    @property
    def since_completion_s(self) -> float:
        """Seconds since the last completion; 0 during one."""
        return 0.0 if self.completing else time.monotonic() - self.last_completion
