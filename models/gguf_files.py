"""Reading GGUF files: metadata, the list of tensors, and one tensor at a time as float32.

The header is parsed here, because the `gguf` package's reader takes several seconds for a vocabulary of 150,000 tokens.
"""

import mmap
import struct
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from assistant.errors import ModelCorruptError
from models.gguf_blocks import block_sizes, dequantize

_MAGIC = b"GGUF"
_VERSIONS = (2, 3)
_ALIGNMENT = 32
_STRING, _ARRAY = 8, 9
_SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
_CHUNK_VALUES = 1 << 18
"""values dequantized at once, so that the steps in between stay in a core's cache"""


@dataclass(frozen=True, slots=True)
class GgufTensor:
    """Where one tensor lies."""

    name: str
    shape: tuple[int, ...]
    """outermost axis first, as torch counts"""
    kind: int
    """ggml's number of the block format"""
    offset: int
    size: int


@dataclass(frozen=True, slots=True)
class GgufFile:
    """An open GGUF file."""

    path: Path
    metadata: dict[str, Any]
    """scalars, strings, lists of strings, and numpy arrays for lists of numbers"""
    tensors: dict[str, GgufTensor]
    data: mmap.mmap

    @property
    def architecture(self) -> str:
        """llama.cpp's name of the model's family, such as `qwen2`."""
        return str(self.metadata.get("general.architecture", "unknown"))

    def parameter(self, key: str, default: Any = None) -> Any:
        """A value of the architecture's own section, such as `block_count`."""
        return self.metadata.get(f"{self.architecture}.{key}", default)

    def tensor(self, name: str) -> NDArray[np.float32]:
        """The tensor's values, dequantized; the array is the caller's own.

        Raises:
            ModelCorruptError: its block format is unknown.
        """
        entry = self.tensors[name]
        rows = int(np.prod(entry.shape[:-1], dtype=np.int64))
        raw = np.frombuffer(self.data, np.uint8, entry.size, entry.offset).reshape(rows, -1)
        out = np.empty((rows, entry.shape[-1]), np.float32)
        step = max(1, _CHUNK_VALUES // entry.shape[-1])

        def fill(start: int) -> None:
            out[start : start + step] = dequantize(raw[start : start + step], entry.kind)

        try:
            with ThreadPoolExecutor() as pool:
                list(pool.map(fill, range(0, rows, step)))
        except NotImplementedError as error:
            raise ModelCorruptError(
                f"{self.path} stores {name} in a format that cannot be read here; use another quantization."
            ) from error
        return out.reshape(entry.shape)


def open_gguf(path: Path) -> GgufFile:
    """Read the header of `path` and check that every tensor lies inside the file.

    Raises:
        ModelCorruptError: no GGUF file, an unknown version, or a truncated one.
    """
    try:
        with path.open("rb") as file:
            data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except (OSError, ValueError) as error:
        raise ModelCorruptError(
            f"{path} cannot be read as a GGUF file: {getattr(error, 'strerror', None) or 'it is empty'}."
        ) from error
    if data[:4] != _MAGIC:
        raise ModelCorruptError(f"{path} is not a GGUF file.")
    try:
        metadata, tensors = _parse(_Reader(data), len(data))
    except (struct.error, ValueError, KeyError, OverflowError, MemoryError) as error:
        raise ModelCorruptError(
            f"{path} is truncated or damaged: its GGUF header cannot be read; fetch the file again."
        ) from error
    for entry in tensors.values():
        if entry.offset + entry.size > len(data):
            raise ModelCorruptError(
                f"{path} is truncated: {entry.name} ends at byte {entry.offset + entry.size} "
                f"but the file has {len(data)}; fetch the file again."
            )
    return GgufFile(path, metadata, tensors, data)


class _Reader:
    """A cursor over the header's little-endian values."""

    def __init__(self, data: mmap.mmap) -> None:
        self._data = data
        self.position = 0

    def scalar(self, code: str) -> Any:
        (value,) = struct.unpack_from("<" + code, self._data, self.position)
        self.position += struct.calcsize("<" + code)
        return value

    def string(self) -> str:
        size = self.scalar("Q")
        start = self.position
        self._require(size)
        self.position = start + size
        return self._data[start : start + size].decode("utf-8", "replace")

    def value(self, kind: int) -> Any:
        if kind == _STRING:
            return self.string()
        if kind != _ARRAY:
            return self.scalar(_SCALARS[kind])
        item, count = self.scalar("I"), self.scalar("Q")
        if item in {_STRING, _ARRAY}:
            self._require(count)
            return [self.value(item) for _ in range(count)]
        code = np.dtype("<" + _SCALARS[item])
        self._require(count * code.itemsize)
        array = np.frombuffer(self._data, code, count, self.position)
        self.position += array.nbytes
        return array

    def _require(self, size: int) -> None:
        if self.position + size > len(self._data):
            raise ValueError("the file ends in the middle of its header")


def _parse(reader: _Reader, file_size: int) -> tuple[dict[str, Any], dict[str, GgufTensor]]:
    reader.position = len(_MAGIC)
    version = reader.scalar("I")
    if version not in _VERSIONS:
        raise ValueError(f"unknown version {version}")
    tensor_count, value_count = reader.scalar("Q"), reader.scalar("Q")
    if max(tensor_count, value_count) > file_size:
        raise ValueError("impossible counts")
    metadata = {reader.string(): reader.value(reader.scalar("I")) for _ in range(value_count)}
    headers = [_tensor_header(reader) for _ in range(tensor_count)]
    alignment = int(metadata.get("general.alignment", _ALIGNMENT))
    start = -(-reader.position // alignment) * alignment
    return metadata, {name: _place(name, shape, kind, start + offset) for name, shape, kind, offset in headers}


def _tensor_header(reader: _Reader) -> tuple[str, tuple[int, ...], int, int]:
    name = reader.string()
    shape = tuple(reversed([int(reader.scalar("Q")) for _ in range(reader.scalar("I"))]))
    return name, shape, int(reader.scalar("I")), int(reader.scalar("Q"))


def _place(name: str, shape: tuple[int, ...], kind: int, offset: int) -> GgufTensor:
    block, size = block_sizes(kind)
    return GgufTensor(name, shape, kind, offset, int(np.prod(shape, dtype=np.int64)) // block * size)
