"""The options that every command with a model shares, and the value that they become."""

import functools
import math
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from assistant.engine.tree import TreeShape

PRECISIONS = ("auto", "float32", "bfloat16", "float16", "int8")
R = TypeVar("R")
_DEVICE = re.compile(r"auto|cpu|cuda(:[0-9]{1,3})?|mps")


@dataclass(frozen=True, slots=True)
class ModelOptions:
    """Which model, where, and how its drafts are grown. None leaves a choice to the program."""

    model: str | None
    head: str | None
    precision: str
    device: str
    nodes: int | None
    depth: int | None
    width: int | None
    threshold: float | None
    calibrated: bool | None
    seed: int

    def shape(self, method: str = "eagle2") -> "TreeShape":
        """The tree's bounds: the given ones, and a method's own for the rest."""
        from assistant.engine.methods import bounds_of

        bounds = {name: getattr(self, name) or None for name in ("nodes", "depth", "width")}
        given = bounds | {"threshold": self.threshold, "calibrated": self.calibrated}
        return replace(bounds_of(method), **{name: value for name, value in given.items() if value is not None})


class Number(click.FloatRange):
    """A range of finite numbers: click lets `nan` pass every comparison."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        number = float(super().convert(value, param, ctx))
        if not math.isfinite(number):
            self.fail(f"{value!r} is not a finite number", param, ctx)
        return number


class Device(click.ParamType[str]):
    """`auto`, `cpu`, `cuda`, `cuda:N` or `mps`."""

    name = "device"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if not _DEVICE.fullmatch(str(value)):
            self.fail(f"{value!r} is not one of auto, cpu, cuda, cuda:N, mps", param, ctx)
        return str(value)


_WHICH = (
    click.option("--model", metavar="NAME|PATH", help="Registry name, GGUF file or model folder."),
    click.option("--head", metavar="NAME|PATH", help="Draft head; by default the one shipped for the model."),
    click.option(
        "--precision", type=click.Choice(PRECISIONS), default="auto", help="auto: int8 on a CPU, bfloat16 on a GPU."
    ),
    click.option("--device", type=Device(), default="auto", metavar="auto|cpu|cuda[:N]|mps", help="Where to compute."),
)
_OPTIONS = (
    *_WHICH,
    click.option(
        "--nodes", type=click.IntRange(0, 512), metavar="N", help="Most draft tokens to verify in a step; 0: as fits."
    ),
    click.option("--depth", type=click.IntRange(0, 64), metavar="N", help="Most draft tokens on one path; 0: as fits."),
    click.option("--width", type=click.IntRange(0, 64), metavar="N", help="Most nodes expanded at once; 0: as fits."),
    click.option("--threshold", type=Number(0, 1), metavar="P", help="Least path value of a node (0 to 1)."),
    click.option(
        "--calibrated/--no-calibrated", default=None, help="Rank nodes by the head's calibration, where it has one."
    ),
    click.option("--seed", type=click.IntRange(0, 2**63 - 1), default=0, metavar="N", help="Of sampling."),
)


def model_options(command: Callable[..., R]) -> Callable[..., R]:
    """Add the shared options to a command, which receives them as one `options: ModelOptions`."""
    names = ModelOptions.__slots__

    @functools.wraps(command)
    def gathered(*args: Any, **values: Any) -> R:
        options = ModelOptions(**{name: values.pop(name) for name in names})
        return command(*args, options=options, **values)

    decorated: Callable[..., R] = gathered
    for option in reversed(_OPTIONS):
        decorated = option(decorated)
    return decorated


def which_model(command: Callable[..., R]) -> Callable[..., R]:
    """Add the options that name a model, its head and where it computes; the command receives each by its name."""
    for option in reversed(_WHICH):
        command = option(command)
    return command
