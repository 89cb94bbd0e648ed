"""The real daemon as a `Source`: a thin cover of `assistant.client`, which finds it again after it went away."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Literal, cast

from assistant.client import AsyncClient
from assistant.protocol import Complete, CompletionEvent, Feedback, FeedEvent, Status

NAME = "tui"
"""what it is called in the list of clients"""
Outcome = Literal["shown", "accepted", "partly", "rejected", "kept"]


class Daemon:
    """Connects when it is first asked something; only `start` starts a daemon."""

    def __init__(self) -> None:
        self._client: AsyncClient | None = None
        self._connecting = asyncio.Lock()

    async def feed(self) -> AsyncIterator[FeedEvent]:
        """Everything that happens."""
        client = await self._connected()
        async with contextlib.aclosing(client.steps()) as events:
            async for event in events:
                yield event

    async def status(self) -> Status:
        """What the daemon says of itself."""
        return await (await self._connected()).status()

    async def complete(self, request: Complete) -> AsyncIterator[CompletionEvent]:
        """One completion."""
        client = await self._connected()
        async with contextlib.aclosing(client.complete(request)) as events:
            async for event in events:
                yield event

    async def feedback(self, request: str, outcome: str, characters: int) -> None:
        """Say what became of a suggestion."""
        message = Feedback(request=request, outcome=cast(Outcome, outcome), characters=characters)
        await (await self._connected()).feedback(message)

    async def start(self) -> None:
        """Start a daemon; the client that did takes its leave, since it would start others whenever one ends."""
        async with await AsyncClient.connect(NAME, start=True):
            pass

    async def shutdown(self) -> None:
        """End the daemon."""
        await (await self._connected()).shutdown()

    async def load(self, model: str | None, head: str | None) -> None:
        """Load the model."""
        await (await self._connected()).load(model, head)

    async def unload(self) -> None:
        """Free the model."""
        await (await self._connected()).unload()

    async def close(self) -> None:
        """Take leave."""
        if self._client is not None:
            await self._client.close()

    async def _connected(self) -> AsyncClient:
        async with self._connecting:
            if self._client is None:
                self._client = await AsyncClient.connect(NAME, start=False)
            return self._client
