"""Frames of JSON-RPC over stdio; nothing else ever reaches standard output."""

import json
import os
import sys
import threading
from typing import Any, BinaryIO

MAX_BYTES = 256 << 20
"""of one message; a longer one is skipped"""
_HEADER_BYTES = 4096
_CHUNK = 1 << 20


class Output:
    """Where messages go. Any thread may write; once the editor is gone, what is written is dropped."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._lock = threading.Lock()
        self.broken = False

    def write(self, data: bytes) -> None:
        """Write a whole frame."""
        with self._lock:
            try:
                self._stream.write(data)
                self._stream.flush()
            except (OSError, ValueError):
                self.broken = True

    def send(self, message: dict[str, Any]) -> None:
        """Frame a message and write it."""
        body = json.dumps({"jsonrpc": "2.0", **message}, separators=(",", ":")).encode()
        self.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)

    def close(self) -> None:
        """Take no more."""
        self.broken = True


def take() -> tuple[BinaryIO, Output]:
    """Standard input and output for messages alone: what this process prints from now on goes to standard error."""
    source = os.fdopen(os.dup(sys.stdin.fileno()), "rb", buffering=1 << 16)
    target = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, sys.stdin.fileno())
    os.close(null)
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    return source, Output(target)


def read(stream: BinaryIO) -> bytes | None:
    """The next message's body; None at the end of the stream. Lines that are no headers are skipped."""
    length: int | None = None
    while line := stream.readline(_HEADER_BYTES):
        name, colon, value = line.partition(b":")
        if colon and name.strip().lower() == b"content-length" and value.strip().isdigit():
            length = int(value.strip()[:18])
        elif not line.strip() and length is not None:
            if length <= MAX_BYTES:
                return _body(stream, length)
            _skip(stream, length)
            length = None
    return None


def _body(stream: BinaryIO, length: int) -> bytes | None:
    data = stream.read(length)
    return data if len(data) == length else None


def _skip(stream: BinaryIO, length: int) -> None:
    while length > 0 and (data := stream.read(min(length, _CHUNK))):
        length -= len(data)
