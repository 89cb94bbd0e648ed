"""What both clients share and no socket is needed for: answers as values, refusals and broken connections as errors."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from assistant import protocol
from assistant.endpoint import LOOPBACK, Endpoint
from assistant.errors import (
    BusyError,
    DaemonDiedError,
    DaemonError,
    DaemonSilentError,
    DaemonUnavailableError,
    RefusedError,
)

if TYPE_CHECKING:
    import httpx

SILENCE_S = 30.0
"""a daemon that says nothing for so long, in a stream or before an answer, is taken for dead (it beats every 5 s)"""
CONNECT_S = 5.0
ABSENT = "no daemon runs; `eagle-assist daemon start` starts one."
_BUSY = frozenset({"busy", "draining"})
_PASSING = frozenset({"unknown_client", "draining"})
M = TypeVar("M", bound=msgspec.Struct)
A = TypeVar("A")


@dataclass(frozen=True, slots=True)
class Line:
    """How HTTP reaches the daemon."""

    socket: str | None
    """None: by loopback"""
    base: str
    headers: tuple[tuple[str, str], ...]

    @staticmethod
    def to(endpoint: Endpoint) -> "Line":
        """The line to a place.

        Raises:
            DaemonUnavailableError: a loopback daemon has written down no port.
        """
        headers = ((protocol.HEADER, str(protocol.VERSION)), ("content-type", "application/json"))
        if endpoint.socket is not None:
            return Line(str(endpoint.socket), "http://eagle-assist", headers)
        port = endpoint.port()
        if port is None:
            raise DaemonUnavailableError(ABSENT)
        return Line(None, f"http://{LOOPBACK}:{port.port}", (*headers, ("authorization", f"Bearer {port.token}")))

    def sync(self) -> "httpx.Client":
        """A client that never looks at proxies or other settings of the environment."""
        import httpx

        transport = httpx.HTTPTransport(uds=self.socket, limits=_limits(), trust_env=False)
        return httpx.Client(
            transport=transport, base_url=self.base, headers=dict(self.headers), timeout=_timeout(), trust_env=False
        )

    def aio(self) -> "httpx.AsyncClient":
        """The same for asyncio."""
        import httpx

        transport = httpx.AsyncHTTPTransport(uds=self.socket, limits=_limits(), trust_env=False)
        return httpx.AsyncClient(
            transport=transport, base_url=self.base, headers=dict(self.headers), timeout=_timeout(), trust_env=False
        )


class EventParser:
    """Server-sent events from the pieces of a body, however it was cut."""

    def __init__(self, kind: Any) -> None:
        self._decoder: msgspec.json.Decoder[Any] = msgspec.json.Decoder(kind)
        self._rest = b""

    def feed(self, data: bytes) -> Iterator[Any]:
        """The events that became complete; those of a type that this version does not know are left out."""
        *blocks, self._rest = (self._rest + data).split(b"\n\n")
        for block in blocks:
            lines = [line[6:] for line in block.split(b"\n") if line.startswith(b"data: ")]
            if lines:
                try:
                    yield self._decoder.decode(b"\n".join(lines))
                except msgspec.ValidationError:
                    continue
                except msgspec.DecodeError as error:
                    raise DaemonDiedError(
                        "the daemon sent something that is no event; stop it and try again."
                    ) from error


def check(status: int, body: bytes) -> None:
    """Raise the error that an answer stands for, if it does.

    Raises:
        RefusedError: the daemon refused the request.
    """
    if status < 400:
        return
    try:
        refusal = msgspec.json.decode(body, type=protocol.Refusal)
    except msgspec.DecodeError:
        refusal = protocol.Refusal(code="internal", message=f"the daemon answered {status} without a reason.")
    if refusal.code in _BUSY:
        raise BusyError(refusal.message, refusal.code)
    raise RefusedError(refusal.code, refusal.message)


def decode(body: bytes, kind: type[A]) -> A:
    """The message that an answer holds.

    Raises:
        DaemonDiedError: it is none.
    """
    try:
        return msgspec.json.decode(body, type=kind)
    except msgspec.DecodeError as error:
        raise DaemonDiedError("the daemon's answer is no message; stop it and try again.") from error


def translated(error: "httpx.HTTPError") -> DaemonError:
    """A broken connection as an error of ours."""
    import httpx

    if isinstance(error, httpx.ConnectError):
        return DaemonUnavailableError(ABSENT)
    if isinstance(error, httpx.TimeoutException):
        return DaemonSilentError("the daemon does not answer; end it with `eagle-assist daemon stop`.")
    return DaemonDiedError("the daemon went away in the middle of an answer; `eagle-assist logs` may say why.")


def passing(error: DaemonError) -> bool:
    """Whether a daemon that is started, or said hello to, again may well do what this one did not."""
    if isinstance(error, RefusedError):
        return error.code in _PASSING
    return isinstance(error, DaemonUnavailableError | DaemonDiedError)


def signed(message: M, client: str) -> M:
    """A message with its sender's id, where it has a place for one."""
    return msgspec.structs.replace(message, client=client) if hasattr(message, "client") else message


def _timeout() -> "httpx.Timeout":
    import httpx

    return httpx.Timeout(SILENCE_S, connect=CONNECT_S, pool=None)


def _limits() -> "httpx.Limits":
    import httpx

    return httpx.Limits(max_connections=None, max_keepalive_connections=4, keepalive_expiry=30.0)
