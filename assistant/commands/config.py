"""`eagle-assist config`: which settings hold for a file and where each came from, and what is wrong with them."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from assistant.commands import output
from assistant.config import Merged, Origin, Settings, files, load
from assistant.config.keys import KEYS, dotted
from assistant.config.overrides import Value, in_force
from assistant.errors import ConfigError, DocumentError, UserError

path_argument = click.argument("path", required=False)
as_json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")


@dataclass(frozen=True, slots=True)
class Setting:
    """One line of `show`."""

    key: str
    value: Value
    origin: Origin

    def plain(self) -> dict[str, Any]:
        """The setting for JSON."""
        origin = self.origin
        source = origin.rank.name.lower().replace("_", " ")
        return {"value": self.value, "source": source, "place": origin.place, "line": origin.line}


@click.group()
def config() -> None:
    """Show and check the configuration."""
    output.prepare()


@config.command()
@path_argument
@as_json_option
def show(*, path: str | None, as_json: bool) -> None:
    """Print all settings and where each came from.

    They are those that hold for PATH, a file or a folder (default: this folder). The output is valid TOML.
    """
    document = _document(path)
    merged = load(document)
    found = settings_of(merged, None if path is None or Path(path).is_dir() else str(document))
    if as_json:
        output.write_json({"files": _files(document), "settings": {item.key: item.plain() for item in found}})
        return
    from assistant.config.example import value_text

    for line in _file_lines(document):
        click.echo(line)
    width = max(len(f"{item.key} = {value_text(item.value)}") for item in found if len(str(item.value)) < 40)
    for item in found:
        click.echo(f"{f'{item.key} = {value_text(item.value)}':{width}}  # {item.origin}")


@config.command()
@path_argument
@as_json_option
def check(*, path: str | None, as_json: bool) -> None:
    """List what is wrong with the configuration.

    It is the one that holds for PATH, a file or a folder (default: this folder). Exit code 2 if anything is wrong.
    """
    document = _document(path)
    try:
        load(document)
    except ConfigError as error:
        problems = error.problems
    else:
        problems = ()
    if as_json:
        rows = [{"place": p.place, "line": p.line, "column": p.column, "message": p.sentence} for p in problems]
        output.write_json({"files": _files(document), "problems": rows})
    else:
        for line in [*map(str, problems)] or [*_file_lines(document), "no problems."]:
            click.echo(line)
    if problems:
        raise UserError(f"{len(problems)} problem{'s' * (len(problems) > 1)} in the configuration.")


@config.command()
def example() -> None:
    """Print a file of all keys, meanings and defaults."""
    from assistant.config.example import example

    output.write(example())


def settings_of(merged: Merged, path: str | None) -> list[Setting]:
    """The settings of a document, each with its origin; without a path also what is set for languages and globs."""
    overrides = merged.settings.overrides
    found = in_force(overrides, path, None) if path is not None else {}
    settings: Settings = merged.settings.for_document(path) if path is not None else merged.settings
    rows = []
    for section, name in KEYS:
        winner = found.get((section, name))
        origin = merged.origins[dotted(winner.path if winner else (section, name))]
        rows.append(Setting(dotted((section, name)), getattr(getattr(settings, section), name), origin))
    if path is None:
        rows += [Setting(dotted(o.path), o.value, merged.origins[dotted(o.path)]) for o in overrides]
    return rows


def _document(path: str | None) -> Path:
    """The document that a configuration is looked for; any name in a folder stands for the folder."""
    found = Path(path or os.curdir)
    if found.is_dir():
        return found / "any"
    if not found.parent.is_dir():
        raise DocumentError(f"there is no folder {found.parent}; check the path's spelling and the working directory.")
    return found


def _files(document: Path) -> dict[str, Any]:
    user, project = files.user_file(), files.project_file(document)
    return {
        "user": {"path": str(user), "exists": files.present(user)},
        "project": None if project is None else {"path": str(project), "exists": True},
    }


def _file_lines(document: Path) -> list[str]:
    user, project = files.user_file(), files.project_file(document)
    return [
        f"# your file: {user}{'' if files.present(user) else ' (none yet)'}",
        f"# the project's file: {project or f'none ({files.PROJECT_NAME})'}",
    ]
