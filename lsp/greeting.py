"""The answer to `initialize`: what this server can do.

It stands apart from the server because loading pygls and the types of the protocol takes longer than an editor should
wait; the tests hold it against what pygls would answer for the features that the server registers.
"""

from typing import Any

from eagle_assist import __version__
from lsp.editor import Editor

NAME = "eagle-assist"
COMMANDS = ("eagle-assist.accept", "eagle-assist.reject")
"""what an editor may run; `lsp.items` says what they are for"""
TRIGGERS = (".", "(", "[", "{", ",", ":", "=")
"""characters after which an editor fills its menu, besides those of words"""


def greeting(editor: Editor) -> dict[str, Any]:
    """The result of `initialize`."""
    return {"capabilities": _capabilities(editor), "serverInfo": {"name": NAME, "version": __version__}}


def _capabilities(editor: Editor) -> dict[str, Any]:
    return {
        "positionEncoding": editor.encoding.value,
        "textDocumentSync": {"openClose": True, "change": 2, "save": False},
        # Advertised to everyone: some editors ask only for this. Where there is ghost text the answers are empty, so
        # no character need trigger them.
        "completionProvider": {} if editor.ghost else {"triggerCharacters": list(TRIGGERS)},
        "inlineCompletionProvider": {},
        "executeCommandProvider": {"commands": list(COMMANDS)},
        "workspace": {"workspaceFolders": {"supported": True, "changeNotifications": True}, "fileOperations": {}},
    }
