"""The documented example of a configuration file, written from the declaration.

`python -m assistant.config.example` prints it; `config.example.toml` is what it printed.
"""

import textwrap
from collections.abc import Iterator

from assistant.config.declaration import SECTIONS, VERSION
from assistant.config.keys import KEYS, Key, quoted
from assistant.config.overrides import BASES, Value

_WIDTH = 100
_HEAD = """\
Every setting of eagle-assist, with its default. Copy what you change: to your own file, which
`eagle-assist config show` names, or to a project's `.eagle-assist.toml`. Edits apply when the file is saved.

A later source wins: defaults, your file, the nearest .eagle-assist.toml upward from the document, the environment
(EAGLE_ASSIST_TREE__NODES=16 is tree.nodes), the editor's settings, the command line. `eagle-assist config check` finds
what is wrong. A project's file comes with the project, so it may not set keys marked "not in a project's file".
"""
_OVERRIDES = """\
Some keys can be set for a language (as the Language Server Protocol names it), and for files whose path matches a
pattern as in .gitignore; one with a slash is relative to the folder of the project's file. Patterns win over languages,
later ones over earlier ones, and both over the same key for all files.
"""


def example() -> str:
    """The text of `config.example.toml`: valid, and equal to the defaults."""
    return "\n".join(_lines()) + "\n"


def value_text(value: Value) -> str:
    """A value as TOML writes it."""
    if isinstance(value, tuple):
        return f"[{', '.join(map(quoted, value))}]"
    if isinstance(value, bool):
        return "true" if value else "false"
    return quoted(value) if isinstance(value, str) else repr(value)


def _lines() -> Iterator[str]:
    yield from _comment(_HEAD)
    yield from ("", "# Of this file's keys; a file of an older version is still understood.", f"version = {VERSION}")
    for name, section in SECTIONS.items():
        yield from ("", *_comment(section.__doc__ or ""), f"[{name}]")
        for key in (key for key in KEYS.values() if key.section == name):
            yield from _comment(f"{key.meta.description}{_bounds(key, section.__doc__ or '')}")
            yield from _assignment(key)
    yield from ("", *_comment(_OVERRIDES))
    yield "# [languages.markdown]"
    for name, base in BASES.items():
        yield f"# {name} = {value_text(KEYS[base].default)}  # instead of {KEYS[base].dotted}"
    yield from ('# [files."tests/**"]', "# max_tokens = 64")


def _bounds(key: Key, heading: str) -> str:
    """What the description leaves open: the range or the choices, and what a project's file may not do."""
    found = f" ({key.range})" if key.range else ""
    if key.project == "never" and "project's file" not in heading:
        found += " Not in a project's file."
    return found


def _assignment(key: Key) -> Iterator[str]:
    line = f"{key.name} = {value_text(key.default)}"
    if len(line) <= _WIDTH or not isinstance(key.default, tuple):
        yield line
        return
    yield f"{key.name} = ["
    items = ", ".join(f"{quoted(item)}" for item in key.default)
    yield from textwrap.wrap(
        f"{items},", _WIDTH, initial_indent="    ", subsequent_indent="    ", break_on_hyphens=False
    )
    yield "]"


def _comment(text: str) -> Iterator[str]:
    for paragraph in text.strip().split("\n\n"):
        if paragraph != text.strip().split("\n\n", maxsplit=1)[0]:
            yield "#"
        yield from textwrap.wrap(paragraph, _WIDTH, initial_indent="# ", subsequent_indent="# ", break_on_hyphens=False)


if __name__ == "__main__":
    print(example(), end="")  # noqa: T201 - a program that prints
