"""AdamW whose steps fit each weight's place: they change outputs by a share of their size, whatever the inputs' size.

Adam moves every weight by about the learning rate. A target's features have channels hundreds of times larger than
others, and embeddings are hundreds of times smaller: one rate is too large for some weights and too small for others.
Here a weight moves by the rate times (size of its output channel / size of its input channel), which is what Adam would
do if all channels had been scaled to size 1 beforehand.
"""

import math
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor


class ScaledAdamW(torch.optim.Optimizer):
    """AdamW (Loshchilov & Hutter 2019) with a fixed scale for each element of each parameter."""

    def __init__(
        self,
        scales: Iterable[tuple[torch.nn.Parameter, Tensor | float]],
        lr: float,
        betas: tuple[float, float] = (0.9, 0.95),
        weight_decay: float = 0.0,
    ) -> None:
        """Each parameter comes with its scale, of its shape or broadcast to it."""
        groups: list[dict[str, Any]] = [{"params": [parameter], "scale": scale} for parameter, scale in scales]
        super().__init__(groups, {"lr": lr, "betas": betas, "weight_decay": weight_decay, "eps": 1e-12})

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> None:  # type: ignore[override]
        """Move every parameter that has a gradient."""
        assert closure is None
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.grad is not None:
                    self._move(parameter, parameter.grad, group)

    def _move(self, parameter: Tensor, gradient: Tensor, group: dict[str, Any]) -> None:
        state = self.state[parameter]
        if not state:
            state |= {
                "step": torch.zeros(()),
                "mean": torch.zeros_like(parameter),
                "square": torch.zeros_like(parameter),
            }
        first, second = group["betas"]
        state["step"] += 1
        count = float(state["step"])
        state["mean"].lerp_(gradient, 1 - first)
        state["square"].mul_(second).addcmul_(gradient, gradient, value=1 - second)
        size = math.sqrt(1 - second**count)
        direction = state["mean"] / state["square"].sqrt().add_(group["eps"])
        if group["weight_decay"]:
            parameter.mul_(1 - group["lr"] * group["weight_decay"])
        parameter.sub_(direction.mul_(group["scale"]), alpha=group["lr"] * size / (1 - first**count))
