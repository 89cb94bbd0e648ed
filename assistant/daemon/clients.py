"""Who uses the daemon: names, and what came of the suggestions that each was given."""

import re
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field

from assistant import protocol
from assistant.errors import RefusedError

MAX_CLIENTS = 256
"""the one that was silent longest makes room"""
LISTED_S = 15 * 60.0
"""a client that is silent for longer, without a stream, may have been killed: it is listed when it is heard again"""
KNOWN_S = 24 * 3600.0
"""and after this long it is forgotten; an editor that was left open overnight says hello again"""
MAX_REQUESTS = 4096
"""requests whose client is remembered for feedback"""
_ODD = re.compile(r"[^A-Za-z0-9._ +-]")


@dataclass(slots=True)
class Client:
    """One client since it said hello."""

    id: str
    name: str
    """fit for logs: letters, digits and a few signs"""
    settings: protocol.SettingValues = field(default_factory=dict)
    """by dotted key, as it configured them"""
    requests: int = 0
    shown: int = 0
    accepted: int = 0
    streams: int = 0
    """completions and feeds that are being sent to it"""
    heard: float = 0.0
    """when it last asked for anything"""


class Clients:
    """The clients that are known, the most recently heard last.

    Args:
        limit: how many are known at most.
        clock: seconds, monotonic.
    """

    def __init__(self, limit: int = MAX_CLIENTS, clock: Callable[[], float] = time.monotonic) -> None:
        self._known: OrderedDict[str, Client] = OrderedDict()
        self._owners: OrderedDict[str, str] = OrderedDict()
        self._limit = limit
        self._clock = clock

    def welcome(self, hello: protocol.Hello) -> tuple[Client, tuple[str, ...]]:
        """A new client, and the ids of those that had to make room."""
        name = _ODD.sub("_", hello.client)[:40] or "unnamed"
        client = Client(secrets.token_hex(8), name, heard=self._clock())
        self._known[client.id] = client
        gone = []
        while len(self._known) > self._limit:
            gone.append(self._known.popitem(last=False)[0])
        return client, tuple(gone)

    def get(self, client: str) -> Client:
        """A known client.

        Raises:
            RefusedError: there is none of that id.
        """
        found = self._known.get(client)
        if found is None:
            raise RefusedError("unknown_client", "this daemon does not know the client; say hello (again).")
        self.hear(client)
        return found

    def hear(self, client: str) -> None:
        """A client gave a sign of life; one that is not known is left alone."""
        if client in self._known:
            self._known[client].heard = self._clock()
            self._known.move_to_end(client)

    def streams(self, client: str, more: int) -> None:
        """So many streams to a client began, or (below 0) ended, which is a sign of life as well."""
        if client in self._known:
            self._known[client].streams += more
            self.hear(client)

    def expired(self) -> tuple[str, ...]:
        """The ids of those that were silent for so long that they are to be forgotten."""
        return tuple(client.id for client in self._known.values() if self._silent_s(client) > KNOWN_S)

    def leave(self, client: str) -> None:
        """Forget a client."""
        self._known.pop(client, None)

    def asked(self, request: str, client: str) -> None:
        """Count a completion."""
        if client in self._known:
            self._known[client].requests += 1
            self._owners[request] = client
            if len(self._owners) > MAX_REQUESTS:
                self._owners.popitem(last=False)

    def told(self, feedback: protocol.Feedback) -> None:
        """Count what became of a suggestion."""
        client = self._known.get(self._owners.get(feedback.request, ""))
        if client is not None:
            client.shown += feedback.outcome == "shown"
            client.accepted += feedback.outcome == "accepted"

    def present(self) -> tuple[Client, ...]:
        """The clients that are there, as far as one hears of them."""
        return tuple(client for client in self._known.values() if self._silent_s(client) <= LISTED_S)

    def _silent_s(self, client: Client) -> float:
        return 0.0 if client.streams else self._clock() - client.heard
