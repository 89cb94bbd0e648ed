"""What a project's file may set. It comes with a cloned repository, so it is somebody else's word.

It may shape completions (tree, window, lengths, languages, what is read as context). It may not touch what belongs to
the person or the machine: the service, learning, devices, how the editor behaves. It names models as the registry does
and never as a path, and it may add to the files that are left alone, never take from them.
"""

import re
from pathlib import Path

from assistant.config.keys import Key
from assistant.config.overrides import Value

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_OWN_FILE = "set it in your own configuration (`eagle-assist config show` names the file)"


def check(key: Key, value: Value) -> None:
    """Raise ValueError where a project's file may not give `key` this value; the message is a sentence."""
    if key.project == "never":
        raise ValueError(f"a project's file may not set {key.dotted}; {_OWN_FILE}.")
    if key.project == "name" and value and not _NAME.fullmatch(str(value)):
        raise ValueError(f"a project's file may give {key.dotted} a registry's name alone, no path; {_OWN_FILE}.")
    if key.project == "add" and any(str(item).startswith("!") for item in _items(value)):
        raise ValueError(f"a project's file may only add to {key.dotted}, so no pattern in it may begin with !.")


def anchored(key: Key, value: Value, folder: Path) -> Value:
    """A path of a file's `./`, `../` or `~/`, made absolute: what reads it runs in another folder."""
    if key.project != "name" or not isinstance(value, str) or not value.startswith(("./", "../", "~/")):
        return value
    return str((folder / Path(value).expanduser()).absolute())


def _items(value: Value) -> tuple[str, ...]:
    return value if isinstance(value, tuple) else ()
