"""`eagle-assist purge`: remove what the program keeps, after showing what that is."""

import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import click

from assistant import paths
from assistant.commands import output
from assistant.endpoint import default_endpoint
from assistant.errors import UsageError
from assistant.files import storage_errors


@dataclass(frozen=True, slots=True)
class Kept:
    """Something that is kept."""

    path: Path
    size: int


@click.command()
@click.option("--models", is_flag=True, help="Joined and converted models, measured costs: made again when needed.")
@click.option("--logs", is_flag=True, help="The daemon's logs and the record of faults.")
@click.option("--learned", is_flag=True, help="Steps kept for training.")
@click.option("--all", "everything", is_flag=True, help="All of these; your configuration stays.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document; needs --yes to remove anything.")
def purge(*, models: bool, logs: bool, learned: bool, everything: bool, yes: bool, as_json: bool) -> None:
    """List what is kept, with its size, ask, and remove it."""
    output.prepare()
    if not (models or logs or learned or everything):
        raise UsageError("say what to remove: --models, --logs, --learned or --all.")
    found = [
        *(_kept([paths.cache_dir()]) if models or everything else ()),
        *(_kept([paths.log_dir(), paths.state_dir() / "faults.log"]) if logs or everything else ()),
        *(_kept([paths.learned_dir()]) if learned or everything else ()),
    ]
    removed = False
    if not as_json:
        for kept in found:
            click.echo(f"{_size(kept.size):>9}  {kept.path}")
    if found:
        removed = yes or (not as_json and click.confirm(f"Remove {_size(sum(kept.size for kept in found))}?"))
    elif not as_json:
        click.echo("there is nothing to remove.")
    if removed:
        for kept in found:
            _remove(kept.path)
    if as_json:
        files = [{"path": str(kept.path), "bytes": kept.size} for kept in found]
        output.write_json({"removed": removed, "bytes": sum(kept.size for kept in found), "paths": files})


def _kept(places: Iterable[Path]) -> list[Kept]:
    """What lies in these folders, one entry for each thing in them, and these files."""
    found = []
    for place in places:
        entries = sorted(place.iterdir()) if place.is_dir() else [place] if place.exists() else []
        found += [Kept(entry, _bytes(entry)) for entry in entries]
    return found


def _bytes(path: Path) -> int:
    if path.is_dir() and not path.is_symlink():
        return sum(file.lstat().st_size for file in path.rglob("*") if not file.is_dir())
    return path.lstat().st_size


def _remove(path: Path) -> None:
    with storage_errors(path):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        elif path == paths.log_dir() / "daemon.log" and default_endpoint().reachable():
            path.write_bytes(b"")  # a daemon goes on writing to the file that it has open
        else:
            path.unlink(missing_ok=True)


def _size(count: float) -> str:
    for unit in ("B", "kB", "MB"):
        if count < 1000:
            return f"{count:.0f} {unit}"
        count /= 1000
    return f"{count:.1f} GB"
