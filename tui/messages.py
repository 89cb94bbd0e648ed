"""What happens to the interface: workers post these, the app folds them into its view, widgets are told the view."""

import asyncio
from collections.abc import Sequence

from textual.message import Message

from assistant.protocol import FeedEvent, Status
from tui.state import Link


class Arrived(Message):
    """A batch of the feed. Whoever took it in sets `taken`; until then no other batch is posted."""

    def __init__(self, events: Sequence[FeedEvent]) -> None:
        super().__init__()
        self.events = events
        self.taken = asyncio.Event()


class LinkChanged(Message):
    """How the daemon can be reached now."""

    def __init__(self, link: Link, sentence: str = "") -> None:
        super().__init__()
        self.link = link
        self.sentence = sentence


class StatusCame(Message):
    """What the daemon says of itself."""

    def __init__(self, status: Status) -> None:
        super().__init__()
        self.status = status
