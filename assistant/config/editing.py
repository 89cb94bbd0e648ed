"""A project's file with some of its keys set anew: everything else, its comments too, stays as somebody wrote it."""

import codecs
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import tomlkit
from tomlkit.exceptions import TOMLKitError
from tomlkit.items import Table

from assistant.config.example import value_text
from assistant.config.files import present, read_text, text_layer
from assistant.config.keys import find, split
from assistant.config.layers import Rank
from assistant.config.overrides import Value
from assistant.errors import ConfigError, Problem, StorageError
from assistant.files import write_atomic


def edited(path: Path, values: Mapping[str, Value]) -> str:
    """The text of a project's file, which need not exist, once keys have new values.

    Args:
        path: of the file.
        values: dotted key, such as `model.method`, -> value.

    Raises:
        ConfigError: the file is wrong as it is, or would be; all problems of the one or the other.
    """
    before = read_text(path) if present(path) else ""
    known = {key: entry.value for key, entry in text_layer(path, before, Rank.PROJECT).entries.items()}
    try:
        text = with_values(before, values)
    except TOMLKitError as error:  # it reads an older TOML than files may be written in
        raise _unedited(path, values) from error
    found = {key: entry.value for key, entry in text_layer(path, text, Rank.PROJECT).entries.items()}
    if found != known | {split(key): find(split(key)).convert(value) for key, value in values.items()}:
        raise _unedited(path, values)
    return text


def with_values(text: str, values: Mapping[str, Value]) -> str:
    """Valid TOML with values set under their dotted keys."""
    document = tomlkit.parse(text if text.endswith("\n") or not text else f"{text}\n")
    for key, value in values.items():
        section, name = split(key)
        if section not in document:
            document[section] = tomlkit.table()
        table: Any = document[section]
        if name not in table and isinstance(table, Table):
            _append(table, name, value)
        elif table.get(name) != value:  # one that stays keeps its spelling
            table[name] = value
    return document.as_string()


def save(path: Path, text: str) -> None:
    """Put a text into a project's file, whole or not at all, with the line ends that the file has.

    Raises:
        StorageError: the folder cannot be written.
    """
    data = text.encode()
    try:
        before = path.read_bytes() if present(path) else b""
        if b"\r\n" in before:
            data = data.replace(b"\n", b"\r\n")
        write_atomic(path, (codecs.BOM_UTF8 if before.startswith(codecs.BOM_UTF8) else b"") + data)
    except (OSError, StorageError) as error:
        cause = error.__cause__ or error
        reason = cause.strerror if isinstance(cause, OSError) else cause
        raise StorageError(
            f"{path} cannot be written ({reason}): make its folder writable, or set the keys that are shown yourself."
        ) from error


def _unedited(path: Path, values: Mapping[str, Value]) -> ConfigError:
    wanted = ", ".join(f"{key} = {value_text(value)}" for key, value in values.items())
    return ConfigError([Problem(str(path), 1, 1, f"it is written in a way that only you can edit: set {wanted}.")])


def _append(table: Table, name: str, value: Value) -> None:
    """Add a key below the last one: comments and blanks at the end of a table mostly belong to the next."""
    body = table.value.body
    behind: list[Any] = []
    while body and body[-1][0] is None:
        behind.append(body.pop()[1])
    table.add(name, value)
    for item in reversed(behind):
        table.add(item)
