"""What an editor says of itself in `initialize`, whatever it leaves out or gets wrong."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lsp.positions import Encoding

UNNAMED = "editor"


@dataclass(frozen=True, slots=True)
class Editor:
    """The program at the other end."""

    name: str = UNNAMED
    encoding: Encoding = Encoding.UTF16
    """of columns: the first of the editor's own that is known here"""
    ghost: bool = False
    """asks for inline completions, so it needs no menu entries"""
    progress: bool = False
    """shows progress that a server begins"""
    pulls: bool = False
    """answers `workspace/configuration`"""
    folders: tuple[str, ...] = ()
    """URIs of the workspace's roots"""
    options: Any = None
    """`initializationOptions`, unchecked"""


def read_editor(params: Mapping[str, Any]) -> Editor:
    """The editor that sent these parameters of `initialize`."""
    capabilities = _at(params, "capabilities")
    name = _at(params, "clientInfo", "name")
    return Editor(
        name=name if isinstance(name, str) and name else UNNAMED,
        encoding=_encoding(_at(capabilities, "general", "positionEncodings")),
        ghost=isinstance(_at(capabilities, "textDocument", "inlineCompletion"), Mapping),
        progress=_at(capabilities, "window", "workDoneProgress") is True,
        pulls=_at(capabilities, "workspace", "configuration") is True,
        folders=_folders(params),
        options=params.get("initializationOptions"),
    )


def _encoding(offered: Any) -> Encoding:
    known = {encoding.value: encoding for encoding in Encoding}
    if not isinstance(offered, list):
        return Encoding.UTF16
    return next((known[name] for name in offered if isinstance(name, str) and name in known), Encoding.UTF16)


def _folders(params: Mapping[str, Any]) -> tuple[str, ...]:
    listed = params.get("workspaceFolders")
    if isinstance(listed, list):
        uris = [_at(folder, "uri") for folder in listed]
        return tuple(uri for uri in uris if isinstance(uri, str))
    root = params.get("rootUri") or params.get("rootPath")
    return (root,) if isinstance(root, str) else ()


def _at(value: Any, *names: str) -> Any:
    """What lies at a path of keys; None where something on the way is missing or no object."""
    for name in names:
        if not isinstance(value, Mapping):
            return None
        value = value.get(name)
    return value
