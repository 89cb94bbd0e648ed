"""A decoder layer as it is trained: batched, differentiable, with Hugging Face's tensor names below its own."""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from models.decoder_config import DecoderConfig
from models.rope import inverse_frequencies


@dataclass(frozen=True, slots=True)
class Keys:
    """Keys and values of rows that later rows look at, (B, G, n, D) each, keys rotated."""

    keys: Tensor
    values: Tensor

    def join(self, other: "Keys") -> "Keys":
        """These rows, then the other's."""
        return Keys(torch.cat((self.keys, other.keys), 2), torch.cat((self.values, other.values), 2))


class Layer(nn.Module):
    """Attention and gated MLP, each added to what it read; the norm before the attention is a matter of layout."""

    def __init__(self, config: DecoderConfig, *, input_norm: bool) -> None:
        super().__init__()
        self.self_attn = Attention(config)
        self.mlp = Mlp(config)
        self.post_attention_layernorm = nn.RMSNorm(config.hidden_size, eps=config.rms_norm_eps)
        self.input_layernorm = nn.RMSNorm(config.hidden_size, eps=config.rms_norm_eps) if input_norm else None

    def forward(
        self, x: Tensor, positions: Tensor, past: Keys | None = None, mask: Tensor | None = None
    ) -> tuple[Tensor, Keys]:
        """(B, n, H) rows at (B, n) positions; see `Attention.forward` for what they see."""
        normed = x if self.input_layernorm is None else self.input_layernorm(x.float())
        attended, rows = self.self_attn(normed, positions, past, mask)
        x = x + attended
        return x + self.mlp(self.post_attention_layernorm(x.float())), rows


class Attention(nn.Module):
    """Grouped-query attention with rotary positions; q/k norms and biases where the config has them."""

    def __init__(self, config: DecoderConfig) -> None:
        super().__init__()
        hidden, width = config.hidden_size, config.head_dim
        queries, keys = config.heads * width, config.kv_heads * width
        self._config = config
        self.q_proj = nn.Linear(hidden, queries, bias=config.qkv_bias)
        self.k_proj = nn.Linear(hidden, keys, bias=config.qkv_bias)
        self.v_proj = nn.Linear(hidden, keys, bias=config.qkv_bias)
        self.o_proj = nn.Linear(queries, hidden, bias=False)
        self.q_norm = nn.RMSNorm(width, eps=config.rms_norm_eps) if config.qk_norm else None
        self.k_norm = nn.RMSNorm(width, eps=config.rms_norm_eps) if config.qk_norm else None
        frequencies, self._factor = inverse_frequencies(config)
        self._frequencies: Tensor
        self.register_buffer("_frequencies", frequencies, persistent=False)

    def forward(self, x: Tensor, positions: Tensor, past: Keys | None, mask: Tensor | None) -> tuple[Tensor, Keys]:
        """Run rows of B sequences.

        Args:
            x: (B, n, H).
            positions: (B, n).
            past: rows that these may see besides themselves.
            mask: (B, n, past + n) bool, what each row sees; None is causal and takes no past.

        Returns:
            (B, n, H), and the rows that later ones see: the past and these.
        """
        cos, sin = self._angles(positions)
        queries = _turn(_normed(self._heads(self.q_proj(x)), self.q_norm), cos, sin)
        keys = _turn(_normed(self._heads(self.k_proj(x)), self.k_norm), cos, sin)
        new = Keys(keys, self._heads(self.v_proj(x)))
        rows = new if past is None else past.join(new)
        group = self._config.group
        out = F.scaled_dot_product_attention(
            queries,
            rows.keys.to(queries.dtype).repeat_interleave(group, 1),
            rows.values.to(queries.dtype).repeat_interleave(group, 1),
            None if mask is None else mask[:, None],
            is_causal=mask is None,
        )
        return self.o_proj(out.transpose(1, 2).flatten(2)), rows

    def _heads(self, x: Tensor) -> Tensor:
        heads: Tensor = x.unflatten(-1, (-1, self._config.head_dim))
        return heads.transpose(1, 2)

    def _angles(self, positions: Tensor) -> tuple[Tensor, Tensor]:
        angles = positions[..., None].float() * self._frequencies
        return (angles.cos() * self._factor)[:, None], (angles.sin() * self._factor)[:, None]


class Mlp(nn.Module):
    """SwiGLU."""

    def __init__(self, config: DecoderConfig) -> None:
        super().__init__()
        hidden, inner = config.hidden_size, config.intermediate_size
        self.gate_proj = nn.Linear(hidden, inner, bias=False)
        self.up_proj = nn.Linear(hidden, inner, bias=False)
        self.down_proj = nn.Linear(inner, hidden, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        """(B, n, H) -> (B, n, H)."""
        out: Tensor = self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))
        return out


def _normed(x: Tensor, norm: nn.RMSNorm | None) -> Tensor:
    if norm is None:
        return x
    normed: Tensor = norm(x.float())
    return normed


def _turn(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    first, second = x.float().chunk(2, -1)
    return torch.cat((first * cos - second * sin, second * cos + first * sin), -1).to(x.dtype)
