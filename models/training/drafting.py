"""A stored head in the form that training and its judges run."""

from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor

from assistant.errors import HeadMismatchError
from models import checkpoints
from models.decoder_config import DecoderConfig
from models.target import Target
from models.training.dataset import Embed
from models.training.head import TrainableHead, head_shape, load_state
from models.training.simulate import Drafting


def drafting_with(target: Target, draft_vocab: Tensor, dtype: torch.dtype) -> Drafting:
    """The frozen things that a head of `target` drafts with."""
    chosen = draft_vocab.to(target.spec.device)
    return Drafting(target.head_rows(chosen).to(dtype), chosen, embedding_of(target, dtype))


def embedding_of(target: Target, dtype: torch.dtype) -> Embed:
    """The target's input embedding, on its device; takes ids from anywhere."""
    device = target.spec.device
    table = target.embed(torch.arange(target.spec.vocab_size, device=device)).to(dtype)

    def embed(ids: Tensor) -> Tensor:
        return F.embedding(ids.to(device), table)

    return embed


def load_drafting(folder: Path, target: Target) -> tuple[TrainableHead, Drafting]:
    """A head of one layer, in float32, and what it drafts with.

    Raises:
        HeadMismatchError: its tensors do not fit the target, or it is of another layout.
    """
    state = checkpoints.read_head(str(folder)).state
    config = getattr(target, "config", None)
    gate = state.get("layers.0.mlp.gate_proj.weight")
    if not isinstance(config, DecoderConfig) or gate is None:
        raise HeadMismatchError(f"{folder} is no EAGLE-1/2 head of one layer for {target.spec.name}.")
    head = TrainableHead(head_shape(config, gate.shape[0]))
    load_state(head, state)
    vocab = state.get("draft_vocab_ids")
    chosen = torch.arange(target.spec.vocab_size) if vocab is None else vocab.long()
    return head.eval(), drafting_with(target, chosen, torch.float32)
