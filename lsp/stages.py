"""Where the time of an answer went."""

from dataclasses import dataclass

from assistant.protocol import Done


@dataclass(frozen=True, slots=True)
class Stages:
    """One answer of the daemon's, from the editor's request to its last event, in milliseconds.

    The first three parts follow one another; the last three are the daemon's own account of the third.
    """

    wait_ms: float
    """from the editor's request until the daemon is to be asked: for the next key, and for a connection"""
    sync_ms: float
    """until it was told the document's text, where the edits do not come along with the request"""
    daemon_ms: float
    """from the request to the daemon to its last event, with the way there and back"""
    queue_ms: float
    prefill_ms: float
    decode_ms: float


@dataclass(slots=True)
class Times:
    """What a flight notes as it goes, in seconds of the monotonic clock; None: it did not come to that."""

    asked: float | None = None
    """there was a connection"""
    sent: float | None = None
    """the request left"""
    landed: float | None = None
    done: Done | None = None

    def since(self, received: float) -> Stages | None:
        """The stages of a request that came at `received`; None where no answer came, or was on its way by then."""
        if self.asked is None or self.sent is None or self.landed is None or self.done is None or received > self.asked:
            return None
        wait, sync, daemon = self.asked - received, self.sent - self.asked, self.landed - self.sent
        done = self.done
        parts = (done.queue_ms, done.prefill_ms, done.decode_ms)
        return Stages(1000 * wait, 1000 * sync, 1000 * daemon, *parts)
