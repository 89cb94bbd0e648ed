"""EAGLE-1 and EAGLE-2 draft heads in SafeAILab's layout: one or more decoder layers over embeddings and features."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Self

import torch
import torch.nn.functional as F
from torch import Tensor

from assistant.errors import HeadMismatchError, UsageError
from models.attention import Rows
from models.calibration import Calibrations
from models.decoder_config import DecoderConfig
from models.head_linears import HeadBuilder
from models.layers import Block, Linear, causal
from models.quant import require_int8
from models.rope import RopeTable
from models.target import Cache, Target, TargetSpec
from models.weights import StateReader, read_layer

_LAYER = re.compile(r"layers\.(\d+)\.")
_DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16, "int8": torch.float32}


@dataclass(frozen=True, slots=True)
class HeadForward:
    """One draft forward's result."""

    features: Tensor
    """(n, H): the predicted features of the next tokens"""
    logits: Tensor
    """(n, k), or (1, k) when only the last row was asked for; float32, over the draft vocabulary"""


class DraftHead:
    """Predicts the target's next feature and token from a token and the feature before it (EAGLE, Li et al. 2024, 4.1).

    Row i of a sequence takes the pair (embedding of token i + 1, feature of token i) at position i. The first layer has
    no input norm and the output no norm: it goes straight into the target's own output head, or into those rows of it
    that the draft vocabulary names.
    """

    def __init__(
        self,
        spec: TargetSpec,
        draft_vocab: Tensor | None,
        fc: Callable[[Tensor], Tensor],
        blocks: list[Block],
        head: Linear,
        rope: RopeTable,
        embedding: Tensor | None,
        target: Target,
    ) -> None:
        self.spec = spec
        """describes the head's own cache: layers, kv_heads, head_dim, dtype"""
        self.draft_vocab = draft_vocab
        """(k,) int64 target ids, or None where the head drafts over the whole vocabulary"""
        self.calibrations = Calibrations()
        """what its confidences are worth for this target and precision; none until they are laid beside it"""
        self._fc = fc
        self._blocks = blocks
        self._head = head
        self._rope = rope
        self._embedding = embedding
        self._target = target

    @classmethod
    def from_state(
        cls,
        config: Mapping[str, Any],
        state: Mapping[str, Tensor],
        target: Target,
        precision: str = "float32",
        *,
        name: str = "eagle",
    ) -> Self:
        """Fit a checkpoint to its target.

        Args:
            config: the head's config.json; a missing `rope_theta` means 10000. Layers, biases, q/k norms, the MLP's
                size and the vocabulary are read from the tensors.
            state: SafeAILab's names (`fc.weight`, `layers.0.self_attn.q_proj.weight`, ...), optionally
                `embed_tokens.weight` and `draft_vocab_ids`.
            target: whose features it takes, and whose output head (and embedding, unless it has its own) it uses.
            precision: float32, bfloat16, float16, or int8 linears (x86 CPU).
            name: for reports.

        Raises:
            HeadMismatchError: a tensor is missing or does not fit; names it, its shape and the wanted shape.
            UsageError: the precision is unknown or cannot run here.
        """
        if precision not in _DTYPES:
            raise UsageError(f"unknown precision {precision!r}: choose one of {', '.join(_DTYPES)}")
        shape = head_config(config, state, target.spec)
        dtype, device = _DTYPES[precision], target.spec.device
        if precision == "int8":
            require_int8(device)
        reader = StateReader(state, HeadMismatchError)
        hidden = shape.hidden_size
        layers = [read_layer(reader, shape, f"layers.{index}.") for index in range(shape.layers)]
        vocab = _draft_vocab(state, target.spec)
        rows = torch.arange(target.spec.vocab_size) if vocab is None else vocab
        build = HeadBuilder(shape, precision, dtype, device)
        embedding = reader.find("embed_tokens.weight", (target.spec.vocab_size, hidden))
        return cls(
            spec=_head_spec(shape, target.spec, name, precision, dtype),
            draft_vocab=None if vocab is None else vocab.to(device),
            fc=build.fusion(reader.get("fc.weight", (hidden, 2 * hidden)), reader.find("fc.bias", (hidden,))),
            blocks=[build.block(weights) for weights in layers],
            head=build.evened(target.head_rows(rows.to(device)), None),
            rope=RopeTable.build(shape, dtype, device),
            embedding=None if embedding is None else embedding.to(device, dtype),
            target=target,
        )

    @torch.inference_mode()
    def forward(
        self,
        ids: Tensor,
        features: Tensor,
        positions: Tensor,
        cache: Cache,
        mask: Tensor | None = None,
        *,
        last_only: bool = False,
    ) -> HeadForward:
        """Run n new rows and leave their keys and values at the cache's tail.

        Args:
            ids: (n,) tokens i + 1.
            features: (n, H) features of tokens i: the target's, or the head's own for drafted rows.
            positions: (n,) positions i.
            cache: every new row sees all rows that it holds.
            mask: (n, m) bool over the last m rows, as in `Target.forward`; None is causal.
            last_only: compute logits of the last row alone.

        Raises:
            ContextOverflowError: the rows do not fit (raised by the cache).
        """
        n = ids.shape[0]
        if mask is None and n > 1:
            mask = causal(n, ids.device)
        bias = None if mask is None else self._blocks[0].attention.bias(mask, cache.length)
        rows = Rows(*self._rope.at(positions), cache, bias)
        dtype = self.spec.dtype
        x = self._fc(torch.cat((self._embed(ids).to(dtype), features.to(dtype)), 1))
        for index, block in enumerate(self._blocks):
            x = block(x, rows, index)
        cache.advance(n)
        return HeadForward(x, self._head(x[-1:] if last_only else x).float())

    def to_target_ids(self, draft_ids: Tensor) -> Tensor:
        """Indices into the draft vocabulary, of any shape -> the target's token ids."""
        return draft_ids if self.draft_vocab is None else self.draft_vocab[draft_ids]

    def _embed(self, ids: Tensor) -> Tensor:
        return self._target.embed(ids) if self._embedding is None else F.embedding(ids, self._embedding)


def head_config(config: Mapping[str, Any], state: Mapping[str, Tensor], target: TargetSpec) -> DecoderConfig:
    """The shape of a head: what its config says, checked against the target; what its tensors say where they decide."""
    hidden = int(config.get("hidden_size", target.hidden_size))
    if hidden != target.hidden_size:
        raise HeadMismatchError(f"the head has hidden size {hidden} and {target.name} has {target.hidden_size}")
    gate = _tensor(state, "layers.0.mlp.gate_proj.weight", ("intermediate", hidden))
    layers = 1 + max(int(found[1]) for name in state if (found := _LAYER.match(name)))
    heads = int(config.get("num_attention_heads") or hidden // target.head_dim)
    merged = {
        **config,
        "model_type": "llama",
        "hidden_size": hidden,
        "intermediate_size": gate.shape[0],
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "vocab_size": target.vocab_size,
        "max_position_embeddings": target.max_positions,
    }
    return DecoderConfig.from_hf(merged)


def _tensor(state: Mapping[str, Tensor], name: str, wanted: tuple[object, ...]) -> Tensor:
    if name not in state:
        raise HeadMismatchError(f"tensor {name} is missing; wanted shape {wanted}")
    if state[name].dim() != len(wanted):
        raise HeadMismatchError(f"tensor {name} has shape {tuple(state[name].shape)}; wanted {wanted}")
    return state[name]


def _draft_vocab(state: Mapping[str, Tensor], target: TargetSpec) -> Tensor | None:
    ids = state.get("draft_vocab_ids")
    if ids is None:
        return None
    ids = ids.long()
    if ids.dim() != 1 or ids.numel() == 0:
        raise HeadMismatchError(f"tensor draft_vocab_ids has shape {tuple(ids.shape)}; wanted (k,)")
    if not 0 <= int(ids.min()) <= int(ids.max()) < target.vocab_size:
        raise HeadMismatchError(
            f"tensor draft_vocab_ids holds ids from {int(ids.min())} to {int(ids.max())}; "
            f"{target.name} has {target.vocab_size} tokens"
        )
    return ids


def _head_spec(shape: DecoderConfig, target: TargetSpec, name: str, precision: str, dtype: torch.dtype) -> TargetSpec:
    return TargetSpec(
        name=name,
        vocab_size=target.vocab_size,
        hidden_size=shape.hidden_size,
        layers=shape.layers,
        kv_heads=shape.kv_heads,
        head_dim=shape.head_dim,
        max_positions=target.max_positions,
        precision=precision,
        dtype=dtype,
        device=target.device,
        batch_exact=False,
    )
