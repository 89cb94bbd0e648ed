"""A lean decoder run on several sequences at once, for training data: one weight pass serves them all.

The tree forward of `models.decoder` has no batch dimension and pays for exactness; here features only have to be those
of the same weights, so that attention runs in torch's own kernel.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
import torch.nn.functional as F
from torch import Tensor

from models.attention import ExactAttention, FloatAttention, HeadShape, Rows, heads_of
from models.decoder import LeanDecoder

_PREFILL_ROWS = 768
"""rows that a CPU runs together: more would not fit its cache between operations"""
_PREFILL_ROWS_GPU = 32768


@dataclass(frozen=True, slots=True)
class Written:
    """What a target wrote after one prompt."""

    ids: list[int]
    """prompt and continuation; an end token, where one came, is the last"""
    prompt_tokens: int
    features: Tensor
    """(len(ids), H) float16; the last token's feature is there only if something was written after it, else zeros"""


class BatchedDecoder:
    """Runs a `LeanDecoder`'s weights on B sequences of unequal length, padded on the right."""

    def __init__(self, decoder: LeanDecoder) -> None:
        self._decoder = decoder
        self._blocks = [
            replace(block, attention=_BatchedAttention(block.attention))
            for block in decoder._blocks  # noqa: SLF001 - one model, another schedule
            if isinstance(block.attention, ExactAttention | FloatAttention)
        ]

    @torch.inference_mode()
    def features(self, sequences: Sequence[Sequence[int]]) -> list[Tensor]:
        """Features, (len, H) float16 each, of texts that are given."""
        ids, lengths = _padded(sequences, self._decoder.spec.device)
        out, _ = self._prefill(ids)
        return [row[:length].half() for row, length in zip(out, lengths, strict=True)]

    @torch.inference_mode()
    def write(
        self,
        prompts: Sequence[Sequence[int]],
        limit: int,
        stop_ids: frozenset[int],
        *,
        temperature: float = 0.0,
        generator: torch.Generator | None = None,
    ) -> list[Written]:
        """Continue every prompt by up to `limit` tokens, greedily or at a temperature."""
        device = self._decoder.spec.device
        ids, lengths = _padded(prompts, device)
        prompt_features, cache = self._prefill(ids)
        cache.reserve(limit)
        ends = torch.tensor(lengths, device=device)
        rows = torch.arange(len(prompts), device=device)
        last = prompt_features[rows, ends - 1]
        texts = [list(prompt) for prompt in prompts]
        kept = [[row[:n].half()] for row, n in zip(prompt_features, lengths, strict=True)]
        alive = rows
        stop = torch.tensor(sorted(stop_ids), device=device)
        for step in range(limit):
            token = self._choose(last, temperature, generator)
            for row, value in zip(alive.tolist(), token.tolist(), strict=True):
                texts[row].append(value)
            going = ~torch.isin(token, stop)
            if step + 1 == limit or not going.any():
                break
            if not going.all():
                alive, token, ends = alive[going], token[going], ends[going]
                cache.keep(going)
            last = self._step(token, ends, cache)
            ends = ends + 1
            for row, feature in zip(alive.tolist(), last.half(), strict=True):
                kept[row].append(feature[None])
        return [written(text, len(prompt), parts) for text, prompt, parts in zip(texts, prompts, kept, strict=True)]

    def _choose(self, features: Tensor, temperature: float, generator: torch.Generator | None) -> Tensor:
        logits = self._decoder._head(features).float()  # noqa: SLF001
        if temperature <= 0.0:
            return logits.argmax(-1)
        shares = (logits / temperature).softmax(-1).cpu()
        return torch.multinomial(shares, 1, generator=generator)[:, 0].to(features.device)

    def _prefill(self, ids: Tensor) -> tuple[Tensor, "_Cache"]:
        """(B, n) ids, padded on the right -> (B, n, H) features and the filled cache."""
        parts, caches = [], []
        rows = _PREFILL_ROWS if ids.device.type == "cpu" else _PREFILL_ROWS_GPU
        for some in ids.split(max(1, rows // ids.shape[1])):
            positions = torch.arange(some.shape[1], device=ids.device).expand(some.shape)
            caches.append(_Cache(len(self._blocks), positions))
            parts.append(self._run(some, caches[-1], None))
        return torch.cat(parts), _Cache.stack(caches)

    def _step(self, tokens: Tensor, positions: Tensor, cache: "_Cache") -> Tensor:
        """(B,) tokens at their own (B,) positions -> (B, H) features."""
        cache.positions = positions[:, None]
        reach = torch.arange(int(positions.max()) + 1, device=tokens.device)
        mask = (reach <= positions[:, None])[:, None, None, :]
        return self._run(tokens[:, None], cache, mask)[:, 0]

    def _run(self, ids: Tensor, cache: "_Cache", mask: Tensor | None) -> Tensor:
        decoder = self._decoder
        rows = Rows(*decoder._rope.at(cache.positions.reshape(-1)), cache, mask)  # noqa: SLF001
        x = decoder.embed(ids.reshape(-1))
        for index, block in enumerate(self._blocks):
            x = block(x, rows, index)
        norm = decoder._norm  # noqa: SLF001
        return F.rms_norm(x, norm.shape, norm, decoder.config.rms_norm_eps).view(*ids.shape, -1)


@dataclass(frozen=True, slots=True)
class _BatchedAttention:
    """A layer's attention over B sequences: causal among their new rows, or what the mask says of all rows."""

    single: ExactAttention | FloatAttention

    @property
    def shape(self) -> HeadShape:
        return self.single.shape

    def bias(self, mask: Tensor, past: int) -> Tensor:
        raise NotImplementedError

    def tensors(self) -> dict[str, Tensor]:
        return self.single.tensors()

    def __call__(self, qkv: Tensor, rows: Rows, layer: int) -> Tensor:
        """(B · n, fused) -> (B · n, heads · D)."""
        assert isinstance(rows.cache, _Cache)
        size = rows.cache.positions.shape
        queries, keys, values = (part.unflatten(0, size).transpose(1, 2) for part in heads_of(qkv, self.single, rows))
        keys, values = rows.cache.write(layer, keys, values)
        scale = self.single.scale if isinstance(self.single, ExactAttention) else None
        out = F.scaled_dot_product_attention(
            queries, keys, values, rows.bias, is_causal=rows.bias is None, scale=scale, enable_gqa=True
        )
        return out.transpose(1, 2).flatten(2).flatten(0, 1)


class _Cache:
    """Keys and values of B sequences, (B, G, room, D) a layer; `positions` (B, n) are those of the rows to come."""

    length = 0

    def __init__(self, layers: int, positions: Tensor) -> None:
        self.positions = positions
        self.keys: list[Tensor | None] = [None] * layers
        self.values: list[Tensor | None] = [None] * layers

    @classmethod
    def stack(cls, parts: Sequence["_Cache"]) -> "_Cache":
        """One cache of all the parts' sequences; empties the parts."""
        whole = cls(len(parts[0].keys), parts[0].positions)
        for layer in range(len(whole.keys)):
            whole.keys[layer] = torch.cat([k for part in parts if (k := part.keys[layer]) is not None])
            whole.values[layer] = torch.cat([v for part in parts if (v := part.values[layer]) is not None])
            for part in parts:
                part.keys[layer] = part.values[layer] = None
        return whole

    def write(self, layer: int, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """Store (B, G, n, D) rows, the first ones or one a sequence; return all up to the furthest position."""
        stored_keys, stored_values = self.keys[layer], self.values[layer]
        if stored_keys is None or stored_values is None:
            self.keys[layer], self.values[layer] = keys, values
            return keys, values
        rows, at = torch.arange(len(keys), device=keys.device), self.positions[:, 0]
        stored_keys[rows, :, at] = keys[:, :, 0]
        stored_values[rows, :, at] = values[:, :, 0]
        reach = int(at.max()) + 1
        return stored_keys[:, :, :reach], stored_values[:, :, :reach]

    def advance(self, rows: int) -> None:
        raise NotImplementedError

    def reserve(self, rows: int) -> None:
        """Make room for `rows` more positions."""
        self.keys = [None if k is None else F.pad(k, (0, 0, 0, rows)) for k in self.keys]
        self.values = [None if v is None else F.pad(v, (0, 0, 0, rows)) for v in self.values]

    def keep(self, going: Tensor) -> None:
        """Drop the sequences that (B,) bool `going` does not name."""
        self.keys = [None if k is None else k[going] for k in self.keys]
        self.values = [None if v is None else v[going] for v in self.values]


def _padded(sequences: Sequence[Sequence[int]], device: torch.device) -> tuple[Tensor, list[int]]:
    lengths = [len(sequence) for sequence in sequences]
    ids = torch.zeros((len(sequences), max(lengths)), dtype=torch.int64)
    for row, sequence in enumerate(sequences):
        ids[row, : len(sequence)] = torch.tensor(list(sequence))
    return ids.to(device), lengths


def written(ids: list[int], prompt_tokens: int, parts: Sequence[Tensor]) -> Written:
    """Join features of successive tokens; the tokens that nothing was written after get zeros."""
    features = torch.cat(list(parts))
    missing = len(ids) - len(features)
    return Written(ids, prompt_tokens, F.pad(features, (0, 0, 0, missing)))
