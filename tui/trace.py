"""Traces: what the feed said, as lines of JSON, to be looked at later. They hold the completed code itself.

The first line is `{"eagle-assist-trace": 1, "status": ...}`, every other
one an event of `assistant.protocol` as it came.
"""

from dataclasses import dataclass
from pathlib import Path

import msgspec

from assistant.errors import UserError
from assistant.files import write_atomic
from assistant.protocol import FeedEvent, Observed, Settled, Status

MARK = "eagle-assist-trace"
VERSION = 1
_REMEDY = "save it again with `s` in `eagle-assist tui`"


class TraceError(UserError):
    """A trace file that cannot be read."""


@dataclass(frozen=True, slots=True)
class Trace:
    """What was saved."""

    events: tuple[FeedEvent, ...]
    status: Status | None = None
    """what the daemon said of itself then"""


class _Head(msgspec.Struct, frozen=True, kw_only=True, rename={"version": MARK}):
    version: int
    status: Status | None = None


def save(path: Path, trace: Trace) -> None:
    """Write a trace to `path`, whole or not at all.

    Raises:
        StorageError: it cannot be written.
    """
    encode = msgspec.json.Encoder().encode
    lines = [encode(_Head(version=VERSION, status=trace.status)), *(encode(event) for event in trace.events)]
    write_atomic(path, b"\n".join(lines) + b"\n")


def load(path: Path) -> Trace:
    """Read a saved trace.

    Raises:
        TraceError: there is no such file, or it is no trace of a version that this program reads.
    """
    try:
        lines = path.read_bytes().splitlines()
    except OSError as error:
        raise TraceError(f"{path} cannot be read: {error.strerror or error}.") from error
    head = _head(path, lines[0] if lines else b"")
    decode = msgspec.json.Decoder(Observed | Settled).decode
    events: list[FeedEvent] = []
    for number, line in enumerate(lines[1:], 2):
        try:
            event = decode(line)
            _check(event)
        except ValueError as error:  # msgspec's errors are of that type too
            raise TraceError(f"{path}:{number} is no event of a trace; {_REMEDY}.") from error
        events.append(event)
    return Trace(tuple(events), head.status)


def _head(path: Path, line: bytes) -> _Head:
    try:
        head = msgspec.json.decode(line, type=_Head)
    except ValueError as error:
        raise TraceError(f"{path}:1 is not the head of a trace of eagle-assist; {_REMEDY}.") from error
    if head.version != VERSION:
        raise TraceError(f"{path}:1 is a trace of version {head.version}, not {VERSION}; {_REMEDY}.")
    return head


def _check(event: FeedEvent) -> None:
    """What the types do not say: lists of equal length, and a tree that is one. Raises ValueError."""
    if not isinstance(event, Observed):
        return
    step = event.step
    sound = len(step.tokens) == len(step.texts) == len(step.origins)
    if (tree := step.tree) is not None:
        size = len(tree.tokens)
        sound = (
            sound
            and size == len(tree.texts) == len(tree.parents) == len(tree.values) == len(tree.origins) > 0
            and all(0 <= parent < node for node, parent in enumerate(tree.parents) if node)
            and all(0 < node < size for node in tree.accepted)
        )
    if not sound:
        raise ValueError("a step whose parts do not fit together")
