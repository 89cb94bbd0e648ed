"""Tiny random models that mostly agree: a target, and a head or a smaller model that is often right about it.

A random head is never right about a random target, so nothing would ever be accepted. Here embeddings are long against
what the layers add to them, so that the last token decides most of the next one, and drafters know the same embeddings.
"""

from typing import Any

import torch

from models.decoder import LeanDecoder
from models.draft_head import DraftHead
from tests.support.tiny import tiny_config, tiny_head_config, tiny_head_state, tiny_state


def agreeing_target(
    precision: str = "float32", *, seed: int = 0, layers_seed: int = 0, agreement: float = 80.0, **changes: Any
) -> LeanDecoder:
    """Targets of one `seed` share embeddings and output head; those of one `layers_seed` their layers too."""
    config = tiny_config(**changes)
    shared, layers = tiny_state(config, seed), tiny_state(config, layers_seed)
    state = {name: layers[name] if name.startswith("model.layers.") else tensor for name, tensor in shared.items()}
    state["model.embed_tokens.weight"] = state["model.embed_tokens.weight"] * agreement
    state["model.norm.weight"] = torch.ones(config.hidden_size)
    return LeanDecoder.from_state(config, state, name="agreeing", precision=precision)


def agreeing_head(
    target: LeanDecoder, precision: str = "float32", *, seed: int = 1, draft_vocab: int | None = None
) -> DraftHead:
    """A head that passes the token's embedding on, nearly ignores the feature, and adds what its random layer says."""
    state = tiny_head_state(target, seed=seed, draft_vocab=draft_vocab)
    hidden = target.spec.hidden_size
    state["fc.weight"] = torch.cat([torch.eye(hidden), 0.005 * state["fc.weight"][:, hidden:]], dim=1)
    state["fc.bias"] = torch.zeros(hidden)
    for part in ("q", "k", "v"):
        # The first layer has no input norm: long rows would make their attention loud.
        state[f"layers.0.self_attn.{part}_proj.weight"] = state[f"layers.0.self_attn.{part}_proj.weight"] / 20
    return DraftHead.from_state(tiny_head_config(), state, target, precision)
