"""`window/workDoneProgress`: a bar in the editor while something takes long."""

import asyncio
import uuid
from collections.abc import Awaitable, Callable
from typing import Any

Ask = Callable[[str, dict[str, Any]], Awaitable[Any]]
Notify = Callable[[str, dict[str, Any]], None]
_TITLE = "eagle-assist"


class Progress:
    """One bar at a time; `update` opens it and `end` closes it, as often as one likes.

    Args:
        shown: whether the editor can show it.
        ask: sends a request and waits for the answer.
        notify: sends a notification.
    """

    def __init__(self, ask: Ask, notify: Notify, *, shown: bool) -> None:
        self._ask = ask
        self._notify = notify
        self._shown = shown
        self._value: dict[str, Any] | None = None
        """what it should show now; None: nothing"""
        self._changed = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def update(self, message: str, share: float | None) -> None:
        """Show a message, and how far it is (0 to 1) where that is known."""
        if not self._shown:
            return
        self._value = {"message": message, **({} if share is None else {"percentage": round(100 * share)})}
        self._changed.set()
        if self._task is None:
            self._task = asyncio.create_task(self._run())

    def end(self) -> None:
        """Close it."""
        self._value = None
        self._changed.set()

    async def _run(self) -> None:
        token = uuid.uuid4().hex
        try:
            await self._ask("window/workDoneProgress/create", {"token": token})
        except Exception:  # noqa: BLE001 - an editor that refuses gets none
            self._shown = False
            return
        begun = False
        while (value := self._value) is not None:
            kind = {"kind": "report"} if begun else {"kind": "begin", "title": _TITLE, "cancellable": False}
            self._notify("$/progress", {"token": token, "value": {**kind, **value}})
            begun = True
            self._changed.clear()
            await self._changed.wait()
        if begun:
            self._notify("$/progress", {"token": token, "value": {"kind": "end"}})
        self._task = None
