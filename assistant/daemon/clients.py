"""Who uses the daemon: names, and what came of the suggestions that each was given."""

import re
import secrets
from collections import OrderedDict
from dataclasses import dataclass, field

from assistant import protocol
from assistant.errors import RefusedError

MAX_CLIENTS = 256
"""the one that was silent longest makes room"""
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


class Clients:
    """The clients that are known, the most recently heard last."""

    def __init__(self, limit: int = MAX_CLIENTS) -> None:
        self._known: OrderedDict[str, Client] = OrderedDict()
        self._owners: OrderedDict[str, str] = OrderedDict()
        self._limit = limit

    def welcome(self, hello: protocol.Hello) -> tuple[Client, tuple[str, ...]]:
        """A new client, and the ids of those that had to make room."""
        name = _ODD.sub("_", hello.client)[:40] or "unnamed"
        client = Client(secrets.token_hex(8), name)
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
        self._known.move_to_end(client)
        return found

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

    def all(self) -> tuple[Client, ...]:
        """Every known client."""
        return tuple(self._known.values())
