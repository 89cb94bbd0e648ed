"""Weights and tokenizers in the form that loads quickly, kept under the cache folder and made again at need."""

import functools
import hashlib
import json
import logging
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from itertools import accumulate
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file

from assistant import paths
from assistant.errors import ModelCorruptError, StorageError
from assistant.files import atomic_folder, ensure_dir, lock, remove_leftovers, require_space
from models.decoder import DecoderConfig, LeanDecoder
from models.registry import ModelSource
from models.tokenizer import Tokenizer

_IMPORTED = re.compile(r"^from models(?:\.([\w.]+) import| import (\w+)$)", re.MULTILINE)
_WEIGHTS = "model.safetensors"
_DIGITS = 16
_TEXT_SIZE = 20_000_000
"""bytes that the largest vocabularies may take"""

log = logging.getLogger(__name__)


def weights_folder(source: ModelSource, precision: str) -> Path:
    """Where a model's weights of one precision are kept."""
    return paths.converted_dir() / f"{source.fingerprint[:_DIGITS]}-{precision}-{form('decoder', 'calibration_text')}"


def text_folder(source: ModelSource) -> Path:
    """Where a model's tokenizer is kept."""
    return paths.converted_dir() / f"{source.fingerprint[:_DIGITS]}-text-{form('tokenizer_gguf', 'tokenizer_folder')}"


@functools.cache
def form(*modules: str) -> str:
    """Eight digits that change with these modules of this package and with all that they import of it.

    Weights converted by other code must not be read: they would load, and be wrong.
    """
    here = Path(__file__).parent
    found: dict[str, str] = {}
    waiting = list(modules)
    while waiting:
        name = waiting.pop()
        if name not in found:
            found[name] = _source(here, name).read_text(encoding="utf-8")
            for module, package in _IMPORTED.findall(found[name]):
                waiting += [*accumulate(module.split("."), "{}.{}".format)] if module else [package]
    return hashlib.sha256(repr(sorted(found.items())).encode()).hexdigest()[:8]


def _source(here: Path, name: str) -> Path:
    path = here.joinpath(*name.split("."))
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


def kept_tokenizer(source: ModelSource, build: Callable[[], Tokenizer]) -> Tokenizer:
    """The kept tokenizer, or the one that `build` makes, which is kept from then on."""
    folder = text_folder(source)
    kept = _load_tokenizer(folder)
    if kept is not None:
        return kept
    with alone(folder):
        kept = _load_tokenizer(folder)
        if kept is not None:
            return kept
        made = build()
        _keep(folder, _TEXT_SIZE, made.save)
        return made


def _load_tokenizer(folder: Path) -> Tokenizer | None:
    try:
        return Tokenizer.load(folder) if folder.is_dir() else None
    except ModelCorruptError:
        log.warning("The tokenizer in %s is damaged; it is made again.", folder)
        return None


def restore(source: ModelSource, precision: str, device: torch.device) -> LeanDecoder | None:
    """The decoder from its kept weights, memory-mapped; None where they are not there or damaged."""
    folder = weights_folder(source, precision)
    try:
        with safe_open(folder / _WEIGHTS, framework="pt") as file:
            config = DecoderConfig(**json.loads(file.metadata()["config"]))
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - no mapping
        return LeanDecoder.restore(config, tensors, name=source.name, precision=precision, device=device)
    except FileNotFoundError:
        return None
    except (SafetensorError, OSError, ModelCorruptError, KeyError, TypeError, ValueError, RuntimeError):
        log.warning("The converted weights in %s are damaged; they are made again.", folder)
        return None


def keep(source: ModelSource, precision: str, decoder: LeanDecoder) -> None:
    """Keep a decoder's weights for the next start."""
    tensors = {name: tensor.contiguous() for name, tensor in decoder.export().items()}
    size = sum(tensor.nbytes for tensor in tensors.values())
    folder = weights_folder(source, precision)
    facts = {"config": json.dumps(asdict(decoder.config))}

    def write(temporary: Path) -> None:
        try:
            save_file(tensors, temporary / _WEIGHTS, facts)
        except SafetensorError as error:  # its own error for a full disk, which names no file
            raise StorageError(f"{folder} cannot be written: {error}.") from error

    _keep(folder, size, write)


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Let one process at a time make what belongs into `folder`; a read-only cache needs no guard."""
    try:
        guard = lock(folder)
        guard.acquire()
    except (OSError, StorageError):
        yield
        return
    try:
        yield
    finally:
        guard.release()


def _keep(folder: Path, size: int, write: Callable[[Path], None]) -> None:
    """Fill `folder` in place of older forms; a cache that cannot be written only costs time at the next start."""
    try:
        remove_leftovers(folder)
        for older in folder.parent.glob(f"{folder.name.rpartition('-')[0]}-*"):
            shutil.rmtree(older, ignore_errors=True)
        require_space(ensure_dir(folder.parent), size)
        with atomic_folder(folder) as temporary:
            write(temporary)
    except StorageError as error:
        log.warning("%s The model runs all the same, and is converted again at the next start.", error)
