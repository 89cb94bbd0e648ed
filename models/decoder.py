"""The lean Llama-family forward: rows of one tree, no batch dimension, as few small operations as torch allows."""

from collections.abc import Mapping
from typing import Self

import torch
import torch.nn.functional as F
from torch import Tensor

from assistant.errors import ModelCorruptError, UsageError
from models.attention import Attention, ExactAttention, FloatAttention, Rows
from models.convert import float_blocks, head_shape, int8_head, int8_layers
from models.decoder_config import DecoderConfig
from models.layers import Block, FloatLinear, Linear, causal, gated_silu, gated_silu_exact
from models.quant import Int8Linear, require_int8
from models.rope import RopeTable
from models.target import Cache, Forward, TargetSpec
from models.weights import StateReader

__all__ = ["DecoderConfig", "LeanDecoder"]

_DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16, "int8": torch.float32}
_FORM = "form.3"
"""an empty tensor's name: counts up when `export` changes its meaning"""
_PREFILL_ROWS = 256
"""rows of a long prompt that are run together: bounds the scores' memory"""


class LeanDecoder:
    """A Llama, Qwen2 or Qwen3 decoder; implements `models.target.Target`."""

    def __init__(
        self,
        config: DecoderConfig,
        spec: TargetSpec,
        embedding: Tensor,
        blocks: list[Block],
        norm: Tensor,
        head: Linear,
    ) -> None:
        self.config = config
        self.spec = spec
        self._embedding = embedding
        self._blocks = blocks
        self._norm = norm
        self._head = head
        self._attention: Attention = blocks[0].attention
        self._rope = RopeTable.build(config, spec.dtype, spec.device)

    @classmethod
    def from_state(
        cls,
        config: DecoderConfig,
        state: Mapping[str, Tensor],
        *,
        name: str,
        precision: str = "float32",
        device: torch.device | str = "cpu",
        calibration: Tensor | None = None,
    ) -> Self:
        """Build from Hugging Face's tensors (`model.layers.N.self_attn.q_proj.weight`, ...).

        Args:
            config: the model's shape.
            state: tensors of any float dtype; biases and q/k norms are used where they are there.
            name: for reports.
            precision: float32, bfloat16, float16 or int8.
            device: where the weights go; int8 runs on the CPU only.
            calibration: (N,) ids of a text like those to come, for int8; None takes ids at random.

        Raises:
            ModelCorruptError: a tensor is missing or has another shape than the config says.
            UsageError: int8 cannot run here, or the precision is unknown.
        """
        spec = _spec(config, name, precision, torch.device(device))
        reader = StateReader(state)
        shape = (config.vocab_size, config.hidden_size)
        embedding = reader.get("model.embed_tokens.weight", shape)
        norm = reader.get("model.norm.weight", (config.hidden_size,))
        weight = embedding if config.tied_head else reader.get("lm_head.weight", shape)
        if precision == "int8":
            ids = calibration if calibration is not None else _any_ids(config.vocab_size)
            with torch.inference_mode():
                blocks, x = int8_layers(reader, config, embedding, ids)
                head: Linear = int8_head(weight, F.rms_norm(x, norm.shape, norm, config.rms_norm_eps))
            return cls(config, spec, embedding.half(), blocks, norm, head)
        blocks = list(float_blocks(reader, config, spec.dtype, spec.device))
        placed = embedding.to(spec.device, spec.dtype)
        head = FloatLinear(placed if config.tied_head else weight.to(spec.device, spec.dtype))
        return cls(config, spec, placed, blocks, norm.to(spec.device, spec.dtype), head)

    @torch.inference_mode()
    def forward(
        self, ids: Tensor, positions: Tensor, cache: Cache, mask: Tensor | None = None, *, last_only: bool = False
    ) -> Forward:
        """See `models.target.Target.forward`."""
        n = ids.shape[0]
        if mask is None and n > _PREFILL_ROWS:
            parts = [
                self._features(i, p, cache, None)
                for i, p in zip(ids.split(_PREFILL_ROWS), positions.split(_PREFILL_ROWS), strict=True)
            ]
            features = torch.cat(parts)
        else:
            features = self._features(ids, positions, cache, mask)
        return Forward(self._head(features[-1:] if last_only else features).float(), features)

    def _features(self, ids: Tensor, positions: Tensor, cache: Cache, mask: Tensor | None) -> Tensor:
        """One forward of at most a chunk: (n,) ids -> (n, H) after the final norm."""
        n = ids.shape[0]
        if mask is None and n > 1:
            mask = causal(n, ids.device)
        bias = None if mask is None else self._attention.bias(mask, cache.length)
        rows = Rows(*self._rope.at(positions), cache, bias)
        x = self.embed(ids)
        for index, block in enumerate(self._blocks):
            x = block(x, rows, index)
        cache.advance(n)
        return F.rms_norm(x, self._norm.shape, self._norm, self.config.rms_norm_eps)

    def embed(self, ids: Tensor) -> Tensor:
        """(n,) ids -> (n, H) input embeddings in the features' dtype."""
        return F.embedding(ids, self._embedding).to(self.spec.dtype)

    def head_rows(self, ids: Tensor) -> Tensor:
        """(k,) ids -> (k, H): those rows of the output head, dequantized."""
        if isinstance(self._head, Int8Linear):
            return self._head.dequantized(ids)
        return self._head.tensors()["weight"][ids]

    def export(self) -> dict[str, Tensor]:
        """The converted tensors, flat, ready for a safetensors file; `restore` reads them back."""
        flat = {_FORM: torch.empty(0), "embedding": self._embedding, "norm": self._norm}
        if not (self.config.tied_head and isinstance(self._head, FloatLinear)):
            flat |= {f"head.{name}": tensor for name, tensor in self._head.tensors().items()}
        for index, block in enumerate(self._blocks):
            parts = {part: linear.tensors() for part, linear in block.linears().items()}
            for part, tensors in {**parts, "attention": block.attention.tensors()}.items():
                flat |= {f"layers.{index}.{part}.{name}": tensor for name, tensor in tensors.items()}
        return flat

    @classmethod
    def restore(
        cls,
        config: DecoderConfig,
        tensors: Mapping[str, Tensor],
        *,
        name: str,
        precision: str,
        device: torch.device | str = "cpu",
    ) -> Self:
        """Build from what `export` gave, without converting again.

        Raises:
            ModelCorruptError: a tensor is missing, or an older release exported them.
            UsageError: int8 cannot run here, or the precision is unknown.
        """
        spec = _spec(config, name, precision, torch.device(device))
        placed = {key: tensor.to(spec.device) for key, tensor in tensors.items()}
        linear = Int8Linear if precision == "int8" else FloatLinear
        eps = config.rms_norm_eps
        try:
            if _FORM not in tensors:
                raise ModelCorruptError(f"the converted copy of {name} is of another form: convert it again")
            blocks = [_restore_block(config, placed, index, precision) for index in range(config.layers)]
            tied = precision != "int8" and config.tied_head
            head = FloatLinear(placed["embedding"]) if tied else linear.restore(_under(placed, "head."), eps)
            return cls(config, spec, placed["embedding"], blocks, placed["norm"], head)
        except KeyError as error:
            raise ModelCorruptError(f"the converted copy of {name} lacks tensor {error}") from error


def _restore_block(config: DecoderConfig, tensors: Mapping[str, Tensor], index: int, precision: str) -> Block:
    exact, eps = precision == "int8", config.rms_norm_eps
    linear = Int8Linear if exact else FloatLinear
    parts = {
        part: linear.restore(_under(tensors, f"layers.{index}.{part}."), eps)
        for part in ("qkv", "o", "gate_up", "down")
    }
    stored = _under(tensors, f"layers.{index}.attention.")
    norms = stored.get("q_norm"), stored.get("k_norm"), eps
    shape = head_shape(config)
    attention = ExactAttention(shape, float(stored["scale"]), *norms) if exact else FloatAttention(shape, *norms)
    return Block(
        parts["qkv"], attention, parts["o"], parts["gate_up"], parts["down"], gated_silu_exact if exact else gated_silu
    )


def _under(tensors: Mapping[str, Tensor], prefix: str) -> dict[str, Tensor]:
    return {name.removeprefix(prefix): tensor for name, tensor in tensors.items() if name.startswith(prefix)}


def _spec(config: DecoderConfig, name: str, precision: str, device: torch.device) -> TargetSpec:
    if precision not in _DTYPES:
        raise UsageError(f"unknown precision {precision!r}: choose one of {', '.join(_DTYPES)}")
    if precision == "int8":
        require_int8(device)
    return TargetSpec(
        name=name,
        vocab_size=config.vocab_size,
        hidden_size=config.hidden_size,
        layers=config.layers,
        kv_heads=config.kv_heads,
        head_dim=config.head_dim,
        max_positions=config.max_positions,
        precision=precision,
        dtype=_DTYPES[precision],
        device=device,
        batch_exact=precision == "int8",
    )


def _any_ids(vocab_size: int) -> Tensor:
    return torch.randint(vocab_size, (256,), generator=torch.Generator().manual_seed(0))
