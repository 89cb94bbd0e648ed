"""Rows for forwards: random ids, caches that fit a model, trees and the paths through them."""

from collections.abc import Sequence

import torch
from torch import Tensor

from assistant.engine.kv_cache import KVCache
from models.target import TargetSpec


def cache_for(spec: TargetSpec) -> KVCache:
    """An empty cache of a target's or a head's shape."""
    return KVCache(
        spec.layers, spec.kv_heads, spec.head_dim, limit=spec.max_positions, dtype=spec.dtype, device=spec.device
    )


def random_ids(n: int, vocab_size: int, seed: int = 0) -> Tensor:
    """(n,) ids."""
    return torch.randint(vocab_size, (n,), generator=torch.Generator().manual_seed(seed))


def path_to(node: int, parents: Sequence[int]) -> list[int]:
    """The nodes from the root to `node`."""
    path = [node]
    while parents[path[0]] >= 0:
        path.insert(0, parents[path[0]])
    return path


def tree_mask(parents: Sequence[int]) -> Tensor:
    """(n, n) bool: each node sees its path."""
    mask = torch.zeros((len(parents), len(parents)), dtype=torch.bool)
    for node in range(len(parents)):
        mask[node, path_to(node, parents)] = True
    return mask


def depths(parents: Sequence[int]) -> Tensor:
    """(n,) levels below the root."""
    return torch.tensor([len(path_to(node, parents)) - 1 for node in range(len(parents))])
