"""pygls's protocol, made to survive whatever arrives and to keep quiet about what it carries.

pygls logs the bodies of messages, puts tracebacks into answers, lets a request with broken parameters go unanswered and
keeps texts of its own whose lines end at characters where an editor's do not. Here a message is read without its parts
being interpreted, errors are one sentence, and documents are `lsp.documents`' affair.
"""

import json
import logging
from collections.abc import Callable
from typing import Any

import attrs
from lsprotocol import types
from pygls.lsp.server import LanguageServer
from pygls.protocol import JsonRPCNotification, JsonRPCRequestMessage, LanguageServerProtocol

from assistant import faults

_PARSE, _INVALID, _PARAMS, _INTERNAL = -32700, -32600, -32602, -32603
_SENTENCES = {
    _PARAMS: "the parameters do not fit the method",
    _INTERNAL: "internal fault; it was written into eagle-assist's faults.log",
    types.LSPErrorCodes.RequestCancelled.value: "cancelled",
    types.ErrorCodes.MethodNotFound.value: "there is no such method",
}


Handler = Callable[[Any], Any]


def quiet() -> None:
    """Let the libraries log nothing: what they log may quote the user's code."""
    for name in ("pygls", "asyncio", "lsprotocol", "httpx", "httpcore"):
        logger = logging.getLogger(name)
        logger.setLevel(logging.CRITICAL + 1)
        logger.propagate = False


class Wire(LanguageServerProtocol):
    """The protocol, from after `initialize`."""

    def __init__(self, server: LanguageServer, converter: Any) -> None:
        super().__init__(server, converter)
        self._raw: set[str] = set()

    @property
    def shut_down(self) -> bool:
        """Whether the editor asked for it."""
        return bool(self._shutdown)

    def on(self, method: str, handler: Handler) -> None:
        """Handle a method in place of pygls, whose own documents and workspace are not used."""
        self.fm.add_builtin_feature(method, handler)

    def raw(self, method: str, handler: Handler) -> None:
        """Handle a method whose parameters stay plain JSON."""
        self._raw.add(method)
        self.on(method, handler)

    def receive(self, body: bytes) -> None:
        """Handle a message; nothing is raised, and every request is answered."""
        try:
            message = json.loads(body)
        except (ValueError, RecursionError):
            self._refuse(None, _PARSE, "the message is no JSON")
            return
        if not isinstance(message, dict) or message.get("jsonrpc") != self.VERSION:
            self._refuse(_id(message), _INVALID, "the message is no JSON-RPC 2.0")
            return
        method, identity = message.get("method"), _id(message)
        if identity is None and message.get("id") is not None:
            self._refuse(None, _INVALID, "the message's id is neither a number nor a string")
            return
        if method is None and not isinstance(identity, str):  # an answer to nothing: our requests have names for ids
            return
        if identity is not None and isinstance(method, str) and self._out_of_turn(identity, method):
            return
        try:
            structured = self.structure_message(message)
        except Exception:  # noqa: BLE001 - whatever cattrs finds wrong
            if isinstance(method, str) and identity is not None:
                self._refuse(identity, _PARAMS, _SENTENCES[_PARAMS])
            return
        try:
            self.handle_message(structured)
        except Exception as error:  # noqa: BLE001 - a fault of ours must not end the process
            faults.describe(error, debug=False)
            if isinstance(method, str) and identity is not None:
                self._refuse(identity, _INTERNAL, _SENTENCES[_INTERNAL])

    def structure_message(self, data: dict[str, Any]) -> Any:
        """A message as its type; parameters of our own methods stay JSON."""
        method = data.get("method")
        if isinstance(method, str) and (method in self._raw or not self.get_message_type(method)):
            params = data.get("params")
            if "id" in data:
                return JsonRPCRequestMessage(data["id"], method, self.VERSION, params)
            return JsonRPCNotification(method, self.VERSION, params)
        return super().structure_message(data)

    def _out_of_turn(self, identity: Any, method: str) -> bool:
        if method == types.INITIALIZE:
            self._refuse(identity, _INVALID, "the server is initialized already")
        elif self._shutdown:
            self._refuse(identity, _INVALID, "the server is shutting down")
        elif (kind := self.get_message_type(method)) is not None and "id" not in attrs.fields_dict(kind):
            self._refuse(identity, _INVALID, "the method is a notification, so its message has no id")
        else:
            return False
        return True

    def _refuse(self, identity: Any, code: int, sentence: str) -> None:
        self._send_data({"jsonrpc": self.VERSION, "id": identity, "error": {"code": code, "message": sentence}})

    def _send_response(self, msg_id: Any, result: Any = None, error: types.ResponseError | None = None) -> None:
        """Answer; an error loses its traceback."""
        if error is not None:
            error = types.ResponseError(error.code, _SENTENCES.get(error.code, "the request failed"))
        super()._send_response(msg_id, result, error)


def _id(message: Any) -> Any:
    identity = message.get("id") if isinstance(message, dict) else None
    return identity if isinstance(identity, str | int) and not isinstance(identity, bool) else None
