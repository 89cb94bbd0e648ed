"""`eagle-assist heads`: the draft heads that come with the program, and whether a head fits a model."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from assistant.commands import output
from assistant.commands.opening import loading
from assistant.commands.options import PRECISIONS, Device

_TEST_TEXTS, _TEST_TOKENS, _FEWEST_TOKENS = 4, 160, 24


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
    """List and test draft heads."""
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


@heads.command()
@click.argument("head", metavar="HEAD")
@click.option("--model", metavar="NAME|PATH", help="The model that it drafts for; by default the one that it names.")
@click.option("--precision", type=click.Choice(PRECISIONS), default="auto", help="Of the model.")
@click.option("--device", type=Device(), default="auto", metavar="auto|cpu|cuda[:N]|mps", help="Where to compute.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def verify(*, head: str, model: str | None, precision: str, device: str, as_json: bool) -> None:
    """Test whether a head predicts a model, and whether another reading of it would do better.

    The model reads some code and the head guesses each next token. A wrong convention (a shift by one, another rotary
    base) shows in nothing but this.
    """
    from dataclasses import asdict

    from models.checkpoints import read_head
    from models.head_check import check_head

    with loading(show=not as_json) as progress:
        from assistant.engine.kv_cache import KVCache
        from models.calibration_text import CALIBRATION_TEXTS
        from models.catalog import DEFAULT_MODEL
        from models.loading import load

        stored = read_head(head)
        loaded = load(model or stored.target or DEFAULT_MODEL, precision, device, progress=progress)
    texts = [loaded.tokenizer.encode(text)[:_TEST_TOKENS] for text in CALIBRATION_TEXTS]
    texts = [ids for ids in texts if len(ids) >= _FEWEST_TOKENS][:_TEST_TEXTS]
    found = check_head(stored.config, stored.state, loaded.target, texts, KVCache.of)
    if as_json:
        output.write_json({"head": stored.name, "model": loaded.source.name, **asdict(found)})
        return
    click.echo(f"{stored.name} for {loaded.source.name}: {found.verdict}")
    click.echo("right guesses by own features: " + ", ".join(f"{share:.0%}" for share in found.top1_by_depth))
    click.echo("\n".join(f"  {share:>4.0%}  {name}" for name, share in found.conventions.items()))
    if found.better_convention:
        click.echo(f"It is read better with: {found.better_convention}.")
