"""Rotary position tables: plain, linear, llama3 and YaRN scaling."""

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from models.decoder_config import DecoderConfig


@dataclass(frozen=True, slots=True)
class RopeTable:
    """Cosines and sines of every position, in the shape that one rotation of (n, heads, 2, D/2) rows takes.

    The sines are signed, (P, 1, 2, D/2) with -sin for the first half: a rotation is then x * cos + swapped(x) * sin,
    whose products and sums are each rounded on their own, so that no row depends on its place in a batch.
    """

    cos: Tensor
    """(P, 1, 1, D/2)"""
    sin: Tensor
    """(P, 1, 2, D/2)"""

    @classmethod
    def build(cls, config: DecoderConfig, dtype: torch.dtype, device: torch.device) -> "RopeTable":
        """Tables for all of the model's positions; computed in float32, as transformers does, then cast."""
        frequencies, factor = inverse_frequencies(config)
        positions = torch.arange(config.max_positions, dtype=torch.float32)
        angles = torch.outer(positions, frequencies)
        cos, sin = (angles.cos() * factor).to(dtype), (angles.sin() * factor).to(dtype)
        return cls(cos[:, None, None, :].to(device), torch.stack((-sin, sin), 1)[:, None].to(device))

    def at(self, positions: Tensor) -> tuple[Tensor, Tensor]:
        """(n,) positions -> cosines (n, 1, 1, D/2) and signed sines (n, 1, 2, D/2)."""
        return self.cos[positions], self.sin[positions]


def rotate(rows: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Rotate (n, heads, D) rows by their positions' angles."""
    halves = rows.view(*rows.shape[:2], 2, -1)
    return (halves * cos).add_(halves.flip(-2).mul_(sin)).view(rows.shape)


def inverse_frequencies(config: DecoderConfig) -> tuple[Tensor, float]:
    """((D/2,) radians per position, the factor on cosines and sines) of a config's rope scaling."""
    exponents = torch.arange(0, config.head_dim, 2, dtype=torch.int64).float() / config.head_dim
    plain: Tensor = 1.0 / (config.rope_theta**exponents)
    scaling = config.rope_scaling
    if scaling is None:
        return plain, 1.0
    if scaling["rope_type"] == "linear":
        return plain / scaling["factor"], 1.0
    if scaling["rope_type"] == "llama3":
        return _llama3(plain, scaling), 1.0
    return _yarn(plain, config, scaling)


def _llama3(plain: Tensor, scaling: dict[str, Any]) -> Tensor:
    """Llama 3.1: long waves divided by the factor, short ones kept, a linear blend between."""
    low, high = scaling["low_freq_factor"], scaling["high_freq_factor"]
    turns = scaling["original_max_position_embeddings"] * plain / (2 * math.pi)
    keep = ((turns - low) / (high - low)).clamp(0.0, 1.0)
    mixed: Tensor = (1 - keep) * plain / scaling["factor"] + keep * plain
    return mixed


def _yarn(plain: Tensor, config: DecoderConfig, scaling: dict[str, Any]) -> tuple[Tensor, float]:
    """YaRN (Peng et al. 2023, sections 3.2 and 3.4): interpolate by turns over the original context, warm attention."""
    original = scaling.get("original_max_position_embeddings") or config.max_positions
    factor = scaling.get("factor") or config.max_positions / original

    def dimension(turns: float) -> float:
        return config.head_dim * math.log(original / (turns * 2 * math.pi)) / (2 * math.log(config.rope_theta))

    low, high = dimension(scaling.get("beta_fast") or 32), dimension(scaling.get("beta_slow") or 1)
    if scaling.get("truncate", True):
        low, high = math.floor(low), math.ceil(high)
    low, high = max(low, 0), min(high, config.head_dim - 1)
    index = torch.arange(config.head_dim // 2, dtype=torch.float32)
    interpolate = ((index - low) / max(high - low, 0.001)).clamp(0, 1)
    frequencies = plain / factor * interpolate + plain * (1 - interpolate)
    return frequencies, float(scaling.get("attention_factor") or _yarn_attention(factor, scaling))


def _yarn_attention(factor: float, scaling: dict[str, Any]) -> float:
    def warmth(scale: float) -> float:
        return 1.0 if factor <= 1 else 0.1 * scale * math.log(factor) + 1.0

    top, bottom = scaling.get("mscale"), scaling.get("mscale_all_dim")
    return warmth(top) / warmth(bottom) if top and bottom else warmth(1.0)
