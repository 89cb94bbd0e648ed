"""Draft heads on disk: the ones that ship with the package, and any folder with a config and weights."""

import json
import pickle
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor

from assistant.errors import ModelCorruptError, ModelNotFoundError
from models import hub

SHIPPED = Path(__file__).parent / "heads"


@dataclass(frozen=True, slots=True)
class HeadCheckpoint:
    """A draft head as it is stored."""

    name: str
    path: Path
    config: Mapping[str, Any]
    state: Mapping[str, Tensor]

    @property
    def target(self) -> str | None:
        """The registry name of the model that it drafts for, where the config says."""
        return target_of(self.config)


def target_of(config: Mapping[str, Any]) -> str | None:
    """The registry name of the model that a head's config says it drafts for."""
    target = config.get("target")
    return target if isinstance(target, str) else None


def shipped_heads() -> dict[str, str | None]:
    """The heads that come with the package: name to the registry name of their target."""
    folders = sorted(path.parent for path in SHIPPED.glob("*/config.json"))
    return {folder.name: target_of(_read_config(folder)) for folder in folders}


def head_for(target: str) -> str | None:
    """The name of a shipped head for a registry model; of several, the last by name."""
    fitting = [name for name, wanted in shipped_heads().items() if wanted == target]
    return fitting[-1] if fitting else None


def find_head(name_or_path: str) -> Path:
    """The folder of a shipped head, of a local one, or of one in the Hugging Face cache.

    Raises:
        ModelNotFoundError: nothing answers to the name; the message lists the shipped ones.
    """
    if name_or_path in shipped_heads():
        return SHIPPED / name_or_path
    local = Path(name_or_path).expanduser()
    if (local / "config.json").is_file():
        return local
    if local.is_dir():
        raise ModelCorruptError(
            f"{local} holds no config.json; name a folder with a draft head's config.json and weights."
        )
    cached = hub.cached_folder(name_or_path)
    if cached is not None:
        return cached
    shipped = ", ".join(shipped_heads()) or "none"
    raise ModelNotFoundError(
        f"No draft head answers to {name_or_path!r}: name a shipped one ({shipped}), or a folder with config.json and "
        "weights."
    )


def read_head(name_or_path: str) -> HeadCheckpoint:
    """Read a head's config and weights; nothing in the files is executed.

    Raises:
        ModelNotFoundError: as `find_head`.
        ModelCorruptError: a file is missing, truncated or holds more than tensors.
    """
    folder = find_head(name_or_path)
    return HeadCheckpoint(folder.resolve().name, folder, _read_config(folder), _read_state(folder))


def _read_config(folder: Path) -> dict[str, Any]:
    path = folder / "config.json"
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ModelCorruptError(f"{path} is damaged; fetch the draft head again.") from error
    if not isinstance(config, dict):
        raise ModelCorruptError(f"{path} holds no JSON object; fetch the draft head again.")
    return config


def _read_state(folder: Path) -> dict[str, Tensor]:
    safe, pickled = folder / "model.safetensors", folder / "pytorch_model.bin"
    if not safe.is_file() and not pickled.is_file():
        raise ModelCorruptError(f"{folder} holds neither {safe.name} nor {pickled.name}; fetch the draft head again.")
    path = safe if safe.is_file() else pickled
    try:
        state = load_file(path) if path is safe else torch.load(path, map_location="cpu", weights_only=True)
    except (SafetensorError, OSError, RuntimeError, ValueError, EOFError, pickle.UnpicklingError) as error:
        raise ModelCorruptError(
            f"{path} is truncated or damaged, or holds more than tensors; fetch the draft head again."
        ) from error
    if not isinstance(state, dict) or not all(isinstance(value, Tensor) for value in state.values()):
        raise ModelCorruptError(f"{path} holds no plain table of tensors; fetch the draft head again.")
    return state
