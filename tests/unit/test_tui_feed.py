"""Following the daemon: batches, a flood, and daemons that come and go."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace

from textual.message import Message

from assistant.protocol import Observed
from tests.support.scripted import Scripted, completion, observed, status, step
from tui import state
from tui.feed import LIMIT, Feed
from tui.messages import Arrived, LinkChanged, StatusCame
from tui.state import HISTORY, Link, View

FLOOD = 10_000


class Reader:
    """Takes messages as the application does, if it is to."""

    def __init__(self, *, slow: bool = False) -> None:
        self.links: list[Link] = []
        self.batches: list[int] = []
        self.view = View()
        self.waiting: list[Arrived] = []
        self._slow = slow

    def post(self, message: Message) -> None:
        match message:
            case LinkChanged():
                self.links.append(message.link)
            case Arrived():
                self.batches.append(len(message.events))
                self.view = state.take(self.view, message.events)
                if self._slow:
                    self.waiting.append(message)
                else:
                    message.taken.set()
            case StatusCame():
                self.view = replace(self.view, status=message.status)


async def eventually(condition: Callable[[], object]) -> None:
    for _ in range(2000):
        if condition():
            return
        await asyncio.sleep(0.005)
    raise AssertionError("never")


def follow(source: Scripted, reader: Reader, scenario: Callable[[], Awaitable[None]]) -> None:
    async def run() -> None:
        feed = asyncio.create_task(Feed(source, reader.post, retry_s=0.01, status_s=0.01).run())
        try:
            await scenario()
        finally:
            feed.cancel()

    asyncio.run(run())


def test_a_flood_arrives_whole_in_few_batches_and_bounded_memory() -> None:
    source, reader = Scripted(), Reader()
    source.say(*(observed(step(i + 1, f"r{i // 20}")) for i in range(FLOOD)))

    async def scenario() -> None:
        await eventually(lambda: reader.view.arrived == FLOOD)

    follow(source, reader, scenario)
    assert max(reader.batches) <= LIMIT
    assert len(reader.batches) <= 2 * FLOOD / LIMIT
    assert len(reader.view.history) == HISTORY
    last = state.current(reader.view)
    assert isinstance(last, Observed)
    assert last.step.index == FLOOD
    assert reader.view.figures.steps == FLOOD


def test_a_reader_that_takes_nothing_holds_the_feed_up_instead_of_filling_memory() -> None:
    source, reader = Scripted(), Reader(slow=True)
    source.say(*(observed(step(i + 1)) for i in range(FLOOD)))

    async def scenario() -> None:
        await eventually(lambda: reader.waiting)
        await asyncio.sleep(0.3)

    follow(source, reader, scenario)
    assert len(reader.batches) == 1
    assert source.unread >= FLOOD - 2 * LIMIT


def test_a_daemon_that_dies_is_said_and_its_successor_found() -> None:
    source, reader = Scripted(), Reader()

    async def scenario() -> None:
        source.say(*completion())
        await eventually(lambda: reader.view.arrived == 5)
        source.die()
        await eventually(lambda: Link.LOST in reader.links)
        source.alive = True
        await eventually(lambda: reader.links[-1] is Link.LIVE)
        source.say(*completion("r2"))
        await eventually(lambda: reader.view.arrived == 10)

    follow(source, reader, scenario)
    assert reader.links[0] is Link.LIVE
    assert set(reader.links) == {Link.LIVE, Link.LOST}


def test_where_no_daemon_ever_was_none_is_lost() -> None:
    source, reader = Scripted(alive=False), Reader()

    async def scenario() -> None:
        await eventually(lambda: len(reader.links) > 2)

    follow(source, reader, scenario)
    assert set(reader.links) == {Link.ABSENT}


def test_the_status_is_asked_for_again_and_again() -> None:
    source, reader = Scripted(), Reader()

    async def scenario() -> None:
        await eventually(lambda: reader.view.status is source.said)
        source.said = status(queue=3)
        await eventually(lambda: reader.view.status is source.said)

    follow(source, reader, scenario)
