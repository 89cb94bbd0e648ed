"""From a request's bytes to a message, and from whatever goes wrong to a refusal."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import ASGIApp

from assistant import protocol
from assistant.errors import RefusedError, UserError
from assistant.faults import record

BODY_LIMIT = 8 << 20
"""bytes; more than any source file that an editor completes in"""
BODY_S = 30.0
"""a body that takes longer is given up"""
STATUSES = {
    "bad_message": 400,
    "forbidden": 403,
    "not_found": 404,
    "unknown_client": 404,
    "unknown_document": 404,
    "method": 405,
    "stale": 409,
    "version": 409,
    "too_large": 413,
    "config": 422,
    "internal": 500,
    "busy": 503,
    "draining": 503,
}
"""refusal code -> HTTP status"""
_CLOSES = frozenset({"too_large", "forbidden", "draining"})
_log = logging.getLogger(__name__)
M = TypeVar("M")
Handler = Callable[[Request], Awaitable[ASGIApp]]


async def read_message(request: Request, kind: type[M], limit: int = BODY_LIMIT) -> M:
    """The message in a request's body.

    Raises:
        RefusedError: too long (the rest is not read), too slow, or no such message.
    """
    check_version(request)
    data = await _body(request, limit)
    try:
        return msgspec.json.decode(data, type=kind)
    except msgspec.ValidationError as error:
        raise RefusedError("bad_message", f"the body is no {kind.__name__}: {error}.") from error
    except (msgspec.DecodeError, RecursionError) as error:
        raise RefusedError("bad_message", f"the body is no valid JSON: {_place(error)}.") from error


def check_version(request: Request) -> None:
    """Refuse a client that names another version of the protocol; one that names none is taken at its word.

    Raises:
        RefusedError: the versions differ.
    """
    spoken = request.headers.get(protocol.HEADER)
    if spoken is not None and spoken != str(protocol.VERSION):
        raise RefusedError("version", f"this daemon speaks version {protocol.VERSION} of the protocol.")


def refusal(error: Exception) -> Response:
    """The answer that tells a client what went wrong; what was no mistake of its own is logged, without its values."""
    if isinstance(error, RefusedError):
        code, message = error.code, str(error)
    elif isinstance(error, UserError):
        code, message = "config", str(error)
    else:
        _log.error("fault: %s", record(error))
        code, message = "internal", f"internal fault ({type(error).__name__}); `eagle-assist logs` says where."
    body = msgspec.json.encode(protocol.Refusal(code=code, message=message))
    headers = {"connection": "close"} if code in _CLOSES else {}
    return Response(
        body, STATUSES.get(code, 400), {protocol.HEADER: str(protocol.VERSION), **headers}, "application/json"
    )


def answer(message: msgspec.Struct | None = None) -> Response:
    """A message as an answer; None is an empty object."""
    headers = {protocol.HEADER: str(protocol.VERSION)}
    return Response(b"{}" if message is None else msgspec.json.encode(message), 200, headers, "application/json")


def mannered(handler: Handler) -> Handler:
    """The handler with whatever it raises turned into a refusal."""

    async def answered(request: Request) -> ASGIApp:
        try:
            return await handler(request)
        except Exception as error:  # noqa: BLE001 - the daemon's edge: nothing may escape as a traceback
            return refusal(error)

    return answered


async def no_endpoint(_request: Request, error: Exception) -> Any:
    """The refusal of a request that no endpoint takes."""
    assert isinstance(error, HTTPException)
    code = "method" if error.status_code == 405 else "not_found"
    return refusal(RefusedError(code, f"there is no such endpoint ({error.detail}); see assistant/protocol.py."))


async def _body(request: Request, limit: int) -> bytes:
    too_large = RefusedError("too_large", f"the body is larger than {limit} bytes.")
    declared = request.headers.get("content-length", "0")
    if not declared.isdecimal() or len(declared) > 18 or int(declared) > limit:
        raise too_large
    chunks = bytearray()
    try:
        async with asyncio.timeout(BODY_S):
            async for chunk in request.stream():
                chunks += chunk
                if len(chunks) > limit:
                    raise too_large
    except TimeoutError as error:
        raise RefusedError("bad_message", f"the body did not arrive within {BODY_S:.0f} s.") from error
    except ClientDisconnect as error:
        raise RefusedError("bad_message", "the connection ended within the body.") from error
    return bytes(chunks)


def _place(error: Exception) -> str:
    return "too deeply nested" if isinstance(error, RecursionError) else str(error)
