"""Who may use the daemon.

A Unix socket in a closed folder keeps other accounts and every browser out by itself. By loopback each request must
carry the token that only the user can read, and must name this machine as its host: a page in a browser can neither
read the token nor hide that it comes from elsewhere.
"""

import hmac
from dataclasses import dataclass

from starlette.requests import HTTPConnection
from starlette.types import ASGIApp, Receive, Scope, Send

from assistant.daemon.decoding import refusal
from assistant.endpoint import LOOPBACK
from assistant.errors import RefusedError


@dataclass(frozen=True, slots=True)
class Access:
    """The rule; without a token, that of a Unix socket."""

    token: str | None = None

    def guard(self, app: ASGIApp) -> ASGIApp:
        """The application behind the rule."""

        async def guarded(scope: Scope, receive: Receive, send: Send) -> None:
            reason = self._objection(HTTPConnection(scope)) if scope["type"] == "http" else None
            if reason is not None:
                await refusal(RefusedError("forbidden", reason))(scope, receive, send)
            else:
                await app(scope, receive, send)

        return guarded

    def _objection(self, request: HTTPConnection) -> str | None:
        if "origin" in request.headers:
            return "pages in a browser may not use the daemon."
        if self.token is None:
            return None
        given = request.headers.get("authorization", "").encode()
        if not hmac.compare_digest(given, f"Bearer {self.token}".encode()):
            return "the token is missing or wrong; it lies in the daemon's runtime folder."
        if request.headers.get("host", "").partition(":")[0] not in {LOOPBACK, "localhost"}:
            return "the host is not this machine."
        return None
