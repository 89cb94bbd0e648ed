"""The keys and values that are kept between completions, a session a document, within a budget of memory."""

from collections.abc import Callable
from dataclasses import dataclass

from assistant.daemon.anchor import Anchor
from assistant.engine.session import Session


@dataclass(slots=True, eq=False)
class Kept:
    """A session, whose it is, and the anchor of its prompts."""

    session: Session
    client: str
    path: str
    method: str
    anchor: Anchor | None = None
    used: int = 0
    """when it was leased last, by the pool's own count"""
    leased: bool = False
    unwanted: bool = False
    """its document went away while it was leased"""


class SessionPool:
    """Leases a session to one completion at a time and drops the least recently used ones when memory is short.

    A leased session is never dropped, so the bounds hold for what lies idle and are exceeded by what runs.

    Args:
        make: a fresh session for a method.
        budget_bytes: of keys and values.
        most: sessions kept.
    """

    def __init__(self, make: Callable[[str], Session], budget_bytes: int, most: int) -> None:
        self.budget_bytes = budget_bytes
        self.most = most
        self._make = make
        self._kept: list[Kept] = []
        self._clock = 0

    @property
    def cache_bytes(self) -> int:
        """Size of all keys and values, leased ones included."""
        return sum(kept.session.memory_bytes for kept in self._kept)

    def __len__(self) -> int:
        return len(self._kept)

    def lease(self, client: str, path: str, method: str) -> Kept:
        """The document's own idle session, else another client's of the same file, else a new one."""
        idle = [kept for kept in self._kept if not kept.leased and kept.method == method and kept.path == path]
        own = [kept for kept in idle if kept.client == client]
        found = max(own or idle, key=lambda kept: kept.used, default=None)
        if found is None:
            found = Kept(self._make(method), client, path, method)
            self._kept.append(found)
        self._clock += 1
        found.client, found.used, found.leased = client, self._clock, True
        self.fit()
        return found

    def release(self, kept: Kept) -> None:
        """A completion is done with its session."""
        kept.leased = False
        if kept.unwanted:
            self.drop(kept)
        self.fit()

    def drop(self, kept: Kept) -> None:
        """Forget one session."""
        if kept in self._kept:
            self._kept.remove(kept)

    def fit(self) -> None:
        """Drop idle sessions, the least recently used first, until the bounds hold."""
        for kept in sorted((kept for kept in self._kept if not kept.leased), key=lambda kept: kept.used):
            if self.cache_bytes <= self.budget_bytes and len(self) <= self.most:
                return
            self.drop(kept)

    def forget(self, client: str, path: str | None = None) -> None:
        """Drop the sessions of a document, or of a whole client."""
        for kept in [k for k in self._kept if k.client == client and path in {None, k.path}]:
            if kept.leased:
                kept.unwanted = True
            else:
                self.drop(kept)

    def clear(self) -> None:
        """Drop every session that nothing runs on."""
        self._kept = [kept for kept in self._kept if kept.leased]
