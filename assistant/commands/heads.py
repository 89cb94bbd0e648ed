"""`eagle-assist heads`: the draft heads that come with the program."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from assistant.commands import output


@dataclass(frozen=True, slots=True)
class HeadEntry:
    """One line of the list."""

    name: str
    target: str | None
    """the registry name of the model that it drafts for"""
    path: Path
    size: int
    """bytes"""

    def plain(self) -> dict[str, Any]:
        """The entry for JSON."""
        return {"name": self.name, "target": self.target, "size": self.size, "path": str(self.path)}


def find_heads() -> list[HeadEntry]:
    """The shipped heads, by name."""
    from models.checkpoints import find_head, shipped_heads

    found = []
    for name, target in shipped_heads().items():
        folder = find_head(name)
        size = sum(file.stat().st_size for file in folder.iterdir() if file.is_file())
        found.append(HeadEntry(name, target, folder, size))
    return found


@click.group()
def heads() -> None:
    """List the draft heads."""
    output.prepare()


@heads.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def list_command(*, as_json: bool) -> None:
    """List the draft heads that come with the program, and the models that they draft for."""
    entries = find_heads()
    if as_json:
        output.write_json({"heads": [entry.plain() for entry in entries]})
        return
    from rich.table import Table

    from assistant.commands.terminal import console_for

    table = Table("head", "drafts for", "size", "folder", box=None, pad_edge=False)
    for entry in entries:
        table.add_row(entry.name, entry.target or "not said", f"{entry.size / 1e6:.0f} MB", str(entry.path))
    console_for(stderr=False).print(table)
