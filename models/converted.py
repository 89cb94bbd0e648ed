"""Weights and tokenizers in the form that loads quickly, kept under the cache folder and made again at need."""

import json
import logging
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
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

WEIGHTS_VERSION = 1
"""counts up when the converted form changes, so that older ones are not read"""
TEXT_VERSION = 1
_WEIGHTS = "model.safetensors"
_DIGITS = 16
_TEXT_SIZE = 20_000_000
"""bytes that the largest vocabularies may take"""

log = logging.getLogger(__name__)


def weights_folder(source: ModelSource, precision: str) -> Path:
    """Where a model's weights of one precision are kept."""
    return paths.converted_dir() / f"{source.fingerprint[:_DIGITS]}-{precision}-v{WEIGHTS_VERSION}"


def text_folder(source: ModelSource) -> Path:
    """Where a model's tokenizer is kept."""
    return paths.converted_dir() / f"{source.fingerprint[:_DIGITS]}-text-v{TEXT_VERSION}"


def kept_tokenizer(source: ModelSource, build: Callable[[], Tokenizer]) -> Tokenizer:
    """The kept tokenizer, or the one that `build` makes, which is kept from then on."""
    folder = text_folder(source)
    with alone(folder):
        if folder.is_dir():
            try:
                return Tokenizer.load(folder)
            except ModelCorruptError:
                shutil.rmtree(folder, ignore_errors=True)
        made = build()
        _keep(folder, _TEXT_SIZE, made.save)
        return made


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
        log.warning("the converted weights in %s are damaged or of an older form; they are made again", folder)
        shutil.rmtree(folder, ignore_errors=True)
        return None


def keep(source: ModelSource, precision: str, decoder: LeanDecoder) -> None:
    """Keep a decoder's weights for the next start."""
    tensors = {name: tensor.contiguous() for name, tensor in decoder.export().items()}
    size = sum(tensor.nbytes for tensor in tensors.values())
    folder = weights_folder(source, precision)
    for older in folder.parent.glob(f"{source.fingerprint[:_DIGITS]}-{precision}-v*"):
        shutil.rmtree(older, ignore_errors=True)
    facts = {"config": json.dumps(asdict(decoder.config))}
    _keep(folder, size, lambda temporary: save_file(tensors, temporary / _WEIGHTS, facts))


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
    """Fill `folder` with what `write` writes; a cache that cannot be written only costs time at the next start."""
    try:
        remove_leftovers(folder)
        require_space(ensure_dir(folder.parent), size)
        with atomic_folder(folder) as temporary:
            write(temporary)
    except (StorageError, SafetensorError) as error:  # safetensors has an error of its own for a full disk
        log.warning("%s The model runs all the same, and is converted again at the next start.", error)
