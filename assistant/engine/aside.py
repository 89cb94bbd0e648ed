"""Rows beside a session's own: texts that are looked at and never kept.

They form a forest behind the rows of the session. A root follows any beginning of the session's text, so that a target
can be asked what it would have written elsewhere in it, or how a text reads without a part that stands before it in the
prompt. Nothing else sees these rows: the session's next completion writes over them.
"""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from assistant.engine.session import Session


def after(rows: int) -> int:
    """The parent, for `Aside.grow`, of a node that follows the session's first `rows` tokens."""
    return ~rows


class Aside:
    """A forest over one session. It is over when the session goes on, or another is begun."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._base = len(session.ids)
        self._rows: list[int] = []
        """of the session, that each node sees"""
        self._paths: list[tuple[int, ...]] = []
        """of each node, itself the last"""
        with session.moving():
            session.cache.rewind(self._base)

    @property
    def text(self) -> Sequence[int]:
        """The session's tokens."""
        return self._session.ids

    @property
    def size(self) -> int:
        """Nodes."""
        return len(self._paths)

    @property
    def room(self) -> int:
        """Nodes that the context still holds."""
        return self._session.cache.limit - self._base - len(self._paths)

    @torch.inference_mode()
    def grow(self, tokens: Sequence[int], parents: Sequence[int]) -> Tensor:
        """Run n new nodes in one forward: (n, V) logits of what follows each.

        Args:
            tokens: the new nodes'.
            parents: of each, its parent's number (nodes count from 0 in the order that they were grown, these ones
                included), or `after(rows)`.

        Raises:
            ContextOverflowError: there are more than `room`.
        """
        first = len(self._paths)
        for parent in parents:
            self._rows.append(~parent if parent < 0 else self._rows[parent])
            self._paths.append((*(() if parent < 0 else self._paths[parent]), len(self._paths)))
        device = self._session.target.spec.device
        ids = torch.tensor(tokens, device=device)
        new = range(first, len(self._paths))
        positions = torch.tensor([self._rows[n] + len(self._paths[n]) - 1 for n in new], device=device)
        with self._session.moving():
            self._session.cache.reserve(self._base + len(self._paths))
            return self._session.target.forward(ids, positions, self._session.cache, self._mask(new).to(device)).logits

    def _mask(self, new: range) -> Tensor:
        """What new nodes see of the rows behind those that all of them see."""
        common = min(self._rows[node] for node in new)
        mask = np.zeros((len(new), self._base + new.stop - common), dtype=np.bool_)
        for row, node in enumerate(new):
            mask[row, : self._rows[node] - common] = True
            mask[row, np.array(self._paths[node]) + self._base - common] = True
        return torch.from_numpy(mask)
