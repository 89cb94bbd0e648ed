"""AdamW whose steps fit each weight's place: they change outputs by a share of their size, whatever the inputs' size.

Adam moves every weight by about the learning rate. A target's features have channels hundreds of times larger than
others, and embeddings are hundreds of times smaller: one rate is too large for some weights and too small for others.
Here a weight moves by the rate times (size of its output channel / size of its input channel), which is what Adam would
do if all channels had been scaled to size 1 beforehand.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from models.training.dataset import Embed
from models.training.features import FeatureText
from models.training.head import TrainableHead

_SMALLEST = 0.05
"""of the median: channels below are treated as if they had this size"""
_RESIDUAL = ("fc", "self_attn.o_proj", "mlp.down_proj")
"""layers whose outputs add up to the feature, and are to be judged by its size"""
_SHARE = 0.5


@torch.no_grad()
def head_scales(head: TrainableHead, texts: Sequence[FeatureText], embed: Embed) -> dict[str, Tensor]:
    """For each parameter of a head, by name, what a step of size 1 is there.

    Args:
        head: as it starts.
        texts: some, with features, over which channels' sizes are taken.
        embed: the target's embedding.
    """
    sizes = _Sizes(head)
    for text in texts:
        embeddings = embed(text.ids).float()[None]
        features = text.features.to(embeddings.device).float()[None]
        end = len(text.ids) - 2
        head(embeddings[:, 1:-1], features[:, :-2], torch.arange(end, device=embeddings.device)[None])
        sizes.add("features", features[:, 1:-1])
    sizes.stop()
    feature = _SHARE * sizes.of("features")
    scales: dict[str, Tensor] = {}
    for name, parameter in head.named_parameters():
        module, _, kind = name.rpartition(".")
        if not sizes.knows(f"{module} in"):
            scales[name] = parameter.abs().mean()  # a norm's weight
            continue
        out = feature if module.removeprefix("layers.0.") in _RESIDUAL else sizes.of(f"{module} out")
        scales[name] = out if kind == "bias" else out[:, None] / sizes.of(f"{module} in")[None]
    return scales


class _Sizes:
    """Root mean squares of channels: of every linear layer's inputs and outputs, and of what is added."""

    def __init__(self, model: nn.Module) -> None:
        self._squares: dict[str, list[Tensor]] = {}
        self._hooks = [
            module.register_forward_hook(self._hook(name))
            for name, module in model.named_modules()
            if isinstance(module, nn.Linear)
        ]

    def _hook(self, name: str) -> Callable[[nn.Module, tuple[Tensor, ...], Tensor], None]:
        def note(_: nn.Module, given: tuple[Tensor, ...], out: Tensor) -> None:
            self.add(f"{name} in", given[0])
            self.add(f"{name} out", out)

        return note

    def add(self, name: str, values: Tensor) -> None:
        self._squares.setdefault(name, []).append(values.float().flatten(0, -2).square().mean(0))

    def knows(self, name: str) -> bool:
        return name in self._squares

    def of(self, name: str) -> Tensor:
        sizes = torch.stack(self._squares[name]).mean(0).sqrt()
        return sizes.clamp_min(_SMALLEST * float(sizes.median()) + 1e-9)

    def stop(self) -> None:
        for hook in self._hooks:
            hook.remove()


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
