"""GGUF's block formats: rows of bytes to float32.

The `gguf` package knows them all; the two that make up most of the default model have a faster way here.
"""

import numpy as np
from gguf import quants
from gguf.constants import GGML_QUANT_SIZES, GGMLQuantizationType
from numpy.typing import NDArray


def block_sizes(kind: int) -> tuple[int, int]:
    """(values, bytes) of one block of ggml's format number `kind`; ValueError for an unknown number."""
    return GGML_QUANT_SIZES[GGMLQuantizationType(kind)]


def dequantize(rows: NDArray[np.uint8], kind: int) -> NDArray[np.float32]:
    """(rows, bytes) of a format -> (rows, values); NotImplementedError where the format cannot be read."""
    match GGMLQuantizationType(kind):
        case GGMLQuantizationType.F32:
            return rows.view(np.float32)
        case GGMLQuantizationType.F16:
            return rows.view(np.float16).astype(np.float32)
        case GGMLQuantizationType.Q5_0:
            return _q5_0(rows)
        case GGMLQuantizationType.Q8_0:
            return _q8_0(rows)
        case other:
            return quants.dequantize(rows, other)


def _q5_0(rows: NDArray[np.uint8]) -> NDArray[np.float32]:
    """Blocks of 32: a float16 scale, 32 high bits, then 16 bytes whose halves are the values i and i + 16; minus 16."""
    blocks = rows.reshape(rows.shape[0], -1, 22)
    scales = blocks[..., :2].copy().view(np.float16).astype(np.float32)
    high = np.unpackbits(blocks[..., 2:6], axis=-1, bitorder="little")
    low = blocks[..., 6:]
    whole = np.concatenate((low & 15, low >> 4), axis=-1)
    whole |= high << 4
    values = whole.astype(np.float32)
    values -= 16.0
    values *= scales
    return values.reshape(rows.shape[0], -1)


def _q8_0(rows: NDArray[np.uint8]) -> NDArray[np.float32]:
    """Blocks of 32: a float16 scale, then 32 signed bytes."""
    blocks = rows.reshape(rows.shape[0], -1, 34)
    scales = blocks[..., :2].copy().view(np.float16).astype(np.float32)
    values = blocks[..., 2:].view(np.int8).astype(np.float32)
    values *= scales
    return values.reshape(rows.shape[0], -1)
