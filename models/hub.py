"""The Hugging Face cache, read without the network, and downloads into it when a user asks for one.

A model's name is `owner/repository`, or `owner/repository/file.gguf` for one file of a repository that holds several.
"""

import errno
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from assistant.errors import ModelCorruptError, ModelNotFoundError, StorageError, UserError

_NAME = re.compile(r"(?P<repository>[\w.-]+/[\w.-]+)(?:/(?P<file>[\w./-]+\.gguf))?")
_WANTED = ["*.safetensors", "*.json", "tokenizer.model", "merges.txt", "vocab.json"]
_DISK = {errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EPERM}
_SHA256 = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class CachedModel:
    """A causal language model that lies in the Hugging Face cache."""

    name: str
    path: Path
    size: int
    """bytes"""


def is_repository_name(name: str) -> bool:
    """Whether `name` could be a repository of the hub."""
    return _NAME.fullmatch(name) is not None


def find_cached(name: str) -> Path | None:
    """The snapshot folder of a cached repository, or its GGUF file; None where neither is in the cache.

    Raises:
        ModelCorruptError: the repository is cached and holds no weights, or several GGUF files to choose from.
    """
    match = _NAME.fullmatch(name)
    if match is None:
        return None
    snapshot = _snapshot(match["repository"])
    if snapshot is None:
        return None
    if match["file"]:
        return snapshot / match["file"] if (snapshot / match["file"]).is_file() else None
    if (snapshot / "config.json").is_file() and any(snapshot.glob("*.safetensors*")):
        return snapshot
    files = sorted(snapshot.rglob("*.gguf"))
    if len(files) == 1:
        return files[0]
    if not files:
        raise ModelCorruptError(
            f"{name} is in the Hugging Face cache without its weights; run `eagle-assist models fetch {name}`."
        )
    choices = ", ".join(f"{match['repository']}/{file.relative_to(snapshot).as_posix()}" for file in files[:8])
    raise ModelCorruptError(f"{name} holds several GGUF files; name one of {choices}.")


def cached_folder(name: str) -> Path | None:
    """The snapshot folder of a cached repository, whatever it holds; None where it is not in the cache."""
    match = _NAME.fullmatch(name)
    return _snapshot(match["repository"]) if match is not None and match["file"] is None else None


def _cache_folder() -> Path:
    from huggingface_hub import constants

    return Path(constants.HF_HUB_CACHE)


def _snapshot(repository: str) -> Path | None:
    folder = _cache_folder() / f"models--{repository.replace('/', '--')}"
    try:
        commit = (folder / "refs" / "main").read_text(encoding="utf-8").strip()
    except OSError:
        return None
    snapshot = folder / "snapshots" / commit
    return snapshot if snapshot.is_dir() else None


def list_cached() -> list[CachedModel]:
    """The repositories in the cache that could be used, by name."""
    found = []
    for folder in sorted(_cache_folder().glob("models--*--*")):
        name = folder.name.removeprefix("models--").replace("--", "/", 1)
        try:
            path = find_cached(name)
        except ModelCorruptError:
            continue
        if path is not None:
            files = [path] if path.is_file() else list(path.glob("*.safetensors"))
            found.append(CachedModel(name, path, sum(file.stat().st_size for file in files)))
    return found


def known_hash(path: Path) -> str | None:
    """The sha256 that the hub gave for a cached file: large files are stored under it."""
    if not path.is_symlink():
        return None
    blob = path.readlink().name
    return blob if _SHA256.fullmatch(blob) else None


def download(name: str) -> None:
    """Bring a repository's weights and tokenizer, or one GGUF file of it, into the Hugging Face cache.

    Raises:
        ModelNotFoundError: no such repository, no permission, no network, or HF_HUB_OFFLINE is set.
        StorageError: the Hugging Face cache cannot be written.
    """
    from huggingface_hub import constants, hf_hub_download, snapshot_download

    match = _NAME.fullmatch(name)
    if match is None:
        raise ModelNotFoundError(f"{name!r} is no repository name; the hub's have the form OWNER/NAME.")
    if constants.HF_HUB_OFFLINE:
        raise ModelNotFoundError(f"{name} cannot be fetched while HF_HUB_OFFLINE is set; unset it and try again.")
    with _translated(name):
        if match["file"]:
            hf_hub_download(match["repository"], match["file"])
        else:
            snapshot_download(match["repository"], allow_patterns=[*_WANTED, *_single_gguf(match["repository"])])


def _single_gguf(repository: str) -> list[str]:
    from huggingface_hub import list_repo_files

    files = list_repo_files(repository)
    quantized = [file for file in files if file.endswith(".gguf")]
    if any(file.endswith(".safetensors") for file in files) or not quantized:
        return []
    if len(quantized) > 1:
        choices = ", ".join(f"{repository}/{file}" for file in quantized[:8])
        raise ModelNotFoundError(f"{repository} holds several GGUF files; name one of {choices}.")
    return quantized


@contextmanager
def _translated(name: str) -> Iterator[None]:
    """The hub's and the network's errors as one sentence."""
    from huggingface_hub.errors import HfHubHTTPError

    try:
        yield
    except HfHubHTTPError as error:
        raise ModelNotFoundError(
            f"The hub does not give out {name} (status {error.response.status_code}); check the name and your access."
        ) from error
    except UserError:
        raise
    except Exception as error:  # its HTTP client, and with it the errors, change from release to release
        if isinstance(error, OSError) and error.errno in _DISK:
            raise StorageError(
                f"{name} cannot be stored in the Hugging Face cache ({error.strerror}); set HF_HOME to another folder."
            ) from error
        raise ModelNotFoundError(
            f"{name} cannot be fetched: the hub cannot be reached; check the network and try again."
        ) from error
