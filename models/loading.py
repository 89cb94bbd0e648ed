"""From a model's name to a target that runs, its tokenizer, and the draft head that fits.

What takes long is done once and kept in the cache: a GGUF's tokenizer, and weights in the form of their precision.
float32 is not kept: it would take five times the model's size on disk, and is made anew in seconds.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from assistant.errors import ArchitectureError, ModelNotFoundError
from models import checkpoints, converted, registry, tokenizer_folder, tokenizer_gguf
from models.calibration import Calibrations
from models.calibration_text import CALIBRATION_TEXTS
from models.decoder import DecoderConfig, LeanDecoder
from models.devices import choose_device, choose_precision
from models.draft_head import DraftHead
from models.folder_weights import FolderState, read_config
from models.gguf_files import open_gguf
from models.gguf_weights import GgufState, hf_config
from models.hashes import Progress, silent
from models.registry import ModelSource
from models.target import Target
from models.tokenizer import Tokenizer

_NOT_KEPT = "float32"


@dataclass(frozen=True, slots=True)
class LoadedModel:
    """A model that is ready to run."""

    target: Target
    tokenizer: Tokenizer
    source: ModelSource


def load(
    name: str, precision: str = "auto", device: str = "auto", *, wide: bool = False, progress: Progress | None = None
) -> LoadedModel:
    """Load a model and its tokenizer.

    Args:
        name: a registry name, a folder of safetensors, a GGUF file, or a repository in the Hugging Face cache.
        precision: float32, bfloat16, float16, int8, or auto: see `models.devices.choose_precision`.
        device: cpu, cuda, cuda:N, mps, or auto: see `models.devices.choose_device`.
        wide: run through transformers even where the lean forward could.
        progress: called with a stage (join, verify, tokenizer, convert, load), how much is done and how much there is.

    Raises:
        ModelNotFoundError: nothing here answers to the name.
        ModelCorruptError: files are truncated, altered or missing.
        ArchitectureError: neither the lean forward nor transformers runs this family.
        StorageError: the model has to be joined and the cache is read-only or full.
        UsageError: the precision or device is unknown or not to be had here.
    """
    report = progress or silent
    place = choose_device(device)
    choose_precision(precision, place)
    source = registry.resolve(name, report)
    tokenizer = load_tokenizer(source, report)
    target = None if wide else _lean(source, tokenizer, precision, place, report)
    return LoadedModel(target or _wide(source, precision, place, report), tokenizer, source)


def load_tokenizer(source: ModelSource, progress: Progress = silent) -> Tokenizer:
    """A model's tokenizer alone; after the first time from its kept form.

    Raises:
        ArchitectureError, ModelCorruptError: as `load`.
    """

    def build() -> Tokenizer:
        if source.kind == "gguf":
            return tokenizer_gguf.from_gguf(open_gguf(source.path), source.name)
        return tokenizer_folder.from_folder(source.path, source.name)

    progress("tokenizer", 0, 1)
    tokenizer = converted.kept_tokenizer(source, build)
    progress("tokenizer", 1, 1)
    return tokenizer


def load_head(name_or_path: str | None, target: Target, precision: str = "auto") -> DraftHead:
    """Load a draft head and fit it to its target.

    Args:
        name_or_path: a shipped head, a folder, or a repository in the Hugging Face cache; None is the one shipped for
            this target.
        target: the model that it drafts for.
        precision: as `load`; auto is the target's own.

    Raises:
        ModelNotFoundError: nothing answers to the name, or no head ships for this target.
        ModelCorruptError: the head's files are damaged.
        HeadMismatchError: its shapes do not fit the target.
    """
    wanted = name_or_path or checkpoints.head_for(target.spec.name)
    if wanted is None:
        raise ModelNotFoundError(
            f"No draft head ships for {target.spec.name}; name one, or choose a method that needs none (plain, ngram)."
        )
    head = checkpoints.read_head(wanted)
    chosen = target.spec.precision if precision == "auto" else precision
    fitted = DraftHead.from_state(head.config, head.state, target, chosen, name=head.name)
    fitted.calibrations = Calibrations.load(head.path).of(target.spec.name, target.spec.precision)
    return fitted


def original_weights(source: ModelSource) -> tuple[DecoderConfig, Mapping[str, Tensor]] | None:
    """A model's shape and tensors as its files have them, read one by one; None for what is no lean decoder."""
    return _open(source)


def find_head(name_or_path: str | None, target: Target) -> DraftHead | None:
    """`load_head`, or None where no head was named and none ships for the target.

    Raises:
        ModelNotFoundError: nothing answers to the name that was given.
        ModelCorruptError, HeadMismatchError: as `load_head`.
    """
    try:
        return load_head(name_or_path, target)
    except ModelNotFoundError:
        if name_or_path is not None:
            raise
        return None


def _lean(
    source: ModelSource, tokenizer: Tokenizer, precision: str, device: torch.device, progress: Progress
) -> LeanDecoder | None:
    """The lean forward of a model; None where its family is none that it runs."""
    precision = choose_precision(precision, device)
    progress("load", 0, 1)
    decoder = converted.restore(source, precision, device)
    if decoder is None:
        with converted.alone(converted.weights_folder(source, precision)):
            # Another process may have kept them while this one waited.
            decoder = converted.restore(source, precision, device) or _convert(
                source, tokenizer, precision, device, progress
            )
    progress("load", 1, 1)
    return decoder


def _convert(
    source: ModelSource, tokenizer: Tokenizer, precision: str, device: torch.device, progress: Progress
) -> LeanDecoder | None:
    opened = _open(source)
    if opened is None:
        return None
    config, state = opened
    decoder = LeanDecoder.from_state(
        config,
        _Watched(state, progress),
        name=source.name,
        precision=precision,
        device=device,
        calibration=_calibration(tokenizer) if precision == "int8" else None,
    )
    if precision != _NOT_KEPT:
        converted.keep(source, precision, decoder)
    return decoder


def _open(source: ModelSource) -> tuple[DecoderConfig, Mapping[str, Tensor]] | None:
    try:
        if source.kind == "gguf":
            file = open_gguf(source.path)
            return DecoderConfig.from_hf(hf_config(file)), GgufState(file)
        config = read_config(source.path)
        if "quantization_config" in config:
            return None
        return DecoderConfig.from_hf(config), FolderState(source.path)
    except ArchitectureError:
        return None


def _calibration(tokenizer: Tokenizer) -> Tensor:
    """(N,) ids of code in several languages."""
    return torch.tensor([token for text in CALIBRATION_TEXTS for token in tokenizer.encode(text)])


def _wide(source: ModelSource, precision: str, device: torch.device, progress: Progress) -> Target:
    from models.hf import HFTarget

    progress("load", 0, 1)
    folder, file = (source.path, None) if source.kind == "folder" else (source.path.parent, source.path.name)
    chosen = choose_precision(precision, device, lean=False)
    target: Target = HFTarget.from_folder(folder, gguf_file=file, precision=chosen, device=device, name=source.name)
    progress("load", 1, 1)
    return target


class _Watched(Mapping[str, Tensor]):
    """A model's tensors, counted as they are read."""

    def __init__(self, state: Mapping[str, Tensor], progress: Progress) -> None:
        self._state = state
        self._progress = progress
        self._read: set[str] = set()

    def __getitem__(self, name: str) -> Tensor:
        tensor = self._state[name]
        self._read.add(name)
        self._progress("convert", len(self._read), len(self._state))
        return tensor

    def __iter__(self) -> Iterator[str]:
        return iter(self._state)

    def __len__(self) -> int:
        return len(self._state)

    def __contains__(self, name: object) -> bool:
        return name in self._state
