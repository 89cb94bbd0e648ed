"""A model folder's tensors, one or several safetensors files, read one tensor at a time."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open
from torch import Tensor

from assistant.errors import ModelCorruptError

_INDEX, _SINGLE = "model.safetensors.index.json", "model.safetensors"


def read_config(folder: Path) -> dict[str, Any]:
    """The folder's `config.json`.

    Raises:
        ModelCorruptError: it is missing or no JSON object.
    """
    path = folder / "config.json"
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ModelCorruptError(f"{path} is missing or damaged; fetch the model again.") from error
    if not isinstance(config, dict):
        raise ModelCorruptError(f"{path} holds no JSON object; fetch the model again.")
    return config


class FolderState(Mapping[str, Tensor]):
    """The folder's tensors by name, memory-mapped, in the precision that they are stored in."""

    def __init__(self, folder: Path) -> None:
        """Open every file.

        Raises:
            ModelCorruptError: a shard is missing or damaged, or there are no weights at all.
        """
        self._owner: dict[str, Any] = {}
        for path in _shards(folder):
            try:
                opened = safe_open(path, framework="pt")
                self._owner |= dict.fromkeys(opened.keys(), opened)
            except (SafetensorError, OSError, ValueError) as error:
                raise ModelCorruptError(f"{path} is truncated or damaged; fetch the model again.") from error

    def __getitem__(self, name: str) -> Tensor:
        tensor: Tensor = self._owner[name].get_tensor(name)
        return tensor

    def __iter__(self) -> Iterator[str]:
        return iter(self._owner)

    def __len__(self) -> int:
        return len(self._owner)

    def __contains__(self, name: object) -> bool:
        return name in self._owner


def _shards(folder: Path) -> list[Path]:
    if (folder / _SINGLE).is_file():
        return [folder / _SINGLE]
    index = folder / _INDEX
    if not index.is_file():
        raise ModelCorruptError(
            f"{folder} holds neither {_SINGLE} nor {_INDEX}; name a folder with safetensors weights."
        )
    try:
        names = sorted(set(json.loads(index.read_text(encoding="utf-8"))["weight_map"].values()))
    except (OSError, ValueError, KeyError, AttributeError, TypeError) as error:
        raise ModelCorruptError(f"{index} is damaged; fetch the model again.") from error
    missing = [name for name in names if not (folder / name).is_file()]
    if missing:
        raise ModelCorruptError(
            f"{folder} lacks {len(missing)} of its {len(names)} shards, {missing[0]} first; fetch the model again."
        )
    return [folder / name for name in names]
