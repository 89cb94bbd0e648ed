"""The first words between a program and the daemon; an older daemon makes room for the program's own."""

import re
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from assistant import protocol
from assistant.client import launch, wire
from assistant.endpoint import Endpoint
from assistant.errors import RefusedError, VersionMismatchError
from eagle_assist import __version__

if TYPE_CHECKING:
    import httpx

_GONE_S = 10.0
_DYING_S = 3.0
_LOOK_S = 0.02


def greet(
    endpoint: Endpoint, hello: protocol.Hello, *, start: bool, command: Sequence[str] | None = None
) -> protocol.Welcome:
    """Find a daemon, or start one, and say hello.

    A daemon of an older version is asked to drain and replaced; a newer one that speaks the same protocol is used, so
    that two editors of different versions never end each other's daemon in turn.

    Raises:
        VersionMismatchError: a newer daemon speaks another protocol, or an older one runs and none was to be started.
        DaemonError: there is none, or it does not answer.
    """
    import httpx

    deadline = time.monotonic() + _DYING_S
    while True:
        try:
            return _greet(endpoint, hello, start=start, command=command)
        except httpx.HTTPError as error:
            # A daemon that is being killed accepts connections until the very end: look whether it is still there.
            found = wire.translated(error)
            if not wire.passing(found) or time.monotonic() > deadline:
                raise found from error
        time.sleep(_LOOK_S)


def _greet(
    endpoint: Endpoint, hello: protocol.Hello, *, start: bool, command: Sequence[str] | None
) -> protocol.Welcome:
    launch.ensure(endpoint, start=start, command=command)
    with wire.Line.to(endpoint).sync() as http:
        welcome = _hello(http, hello)
        if welcome is not None and not (start and _older(welcome.version)):
            return welcome
        _dismiss(http, may_end=start)
        launch.gone(endpoint, _GONE_S)
    launch.ensure(endpoint, start=start, command=command)
    with wire.Line.to(endpoint).sync() as http:
        welcome = _hello(http, hello)
    if welcome is None:
        raise VersionMismatchError("the daemon keeps speaking another version; run `eagle-assist daemon stop`.")
    return welcome


def _hello(http: "httpx.Client", hello: protocol.Hello) -> protocol.Welcome | None:
    """What the daemon answers; None where it speaks another version of the protocol."""
    response = http.post("/v1/hello", content=msgspec.json.encode(hello))
    try:
        wire.check(response.status_code, response.content)
    except RefusedError as error:
        if error.code == "version":
            return None
        raise
    return wire.decode(response.content, protocol.Welcome)


def _dismiss(http: "httpx.Client", *, may_end: bool) -> None:
    """Ask an older daemon to end once it has done what it is doing."""
    about = msgspec.json.decode(http.get("/v1/status").content)
    version = str(about.get("version", "0")) if isinstance(about, dict) else "0"
    if not may_end or not (_older(version) or about.get("protocol", 0) < protocol.VERSION):
        raise VersionMismatchError(
            f"the daemon that runs is eagle-assist {version}, this is {__version__}; "
            "stop it with `eagle-assist daemon stop`, or update this program."
        )
    http.post("/v1/shutdown", content=msgspec.json.encode(protocol.Shutdown()))


def _older(version: str) -> bool:
    return _numbers(version) < _numbers(__version__)


def _numbers(version: str) -> list[int]:
    return [int(digits[:9]) for digits in re.findall(r"[0-9]+", version)]
