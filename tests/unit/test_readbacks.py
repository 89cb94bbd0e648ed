"""How often a step takes numbers off the device: each time a GPU would have to finish what it was given."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from assistant.engine.generate import generate
from assistant.engine.methods import make_drafter
from assistant.engine.session import Session
from assistant.engine.tree import TreeShape
from assistant.engine.types import GenerateOptions, Prompt, Sampling
from tests.support.tiny import tiny_head, tiny_target

_METHODS = {Tensor.tolist, Tensor.numpy, Tensor.cpu}
"""what reads a CPU tensor without an operation of its own"""
_OPERATIONS = {
    torch.ops.aten._local_scalar_dense.default,  # item, int, float, bool
    torch.ops.aten.nonzero.default,
    torch.ops.aten.equal.default,
}


class _Methods(TorchFunctionMode):
    def __init__(self) -> None:
        super().__init__()
        self.count = 0

    def __torch_function__(
        self, func: Callable[..., Any], types: Sequence[type], args: Any = (), kwargs: Any = None
    ) -> Any:
        self.count += func in _METHODS
        return func(*args, **(kwargs or {}))


class _Operations(TorchDispatchMode):
    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.count = 0

    def __torch_dispatch__(
        self, func: Callable[..., Any], types: Sequence[type], args: Any = (), kwargs: Any = None
    ) -> Any:
        self.count += func in _OPERATIONS
        return func(*args, **(kwargs or {}))


def readbacks(act: Callable[[], object]) -> int:
    """How many there are while `act` runs."""
    with _Methods() as methods, _Operations() as operations:
        act()
    return int(methods.count + operations.count)


@pytest.mark.parametrize(
    "read", [Tensor.tolist, Tensor.item, int, float, bool, Tensor.numpy, Tensor.cpu, Tensor.nonzero]
)
def test_each_way_of_reading_is_counted_once(read: Callable[[Tensor], object]) -> None:
    assert readbacks(lambda: read(torch.tensor(1))) == 1


@pytest.mark.parametrize(("method", "levels"), [("plain", 0), ("ngram", 0), ("eagle2", 4), ("eagle1", 4)])
@pytest.mark.parametrize("precision", ["float32", "int8"])
def test_a_greedy_step_reads_once_for_the_verdict_and_once_for_each_level(
    method: str, levels: int, precision: str
) -> None:
    target = tiny_target("qwen2", precision)
    session = Session(target, make_drafter(method, target, head=tiny_head(target)))
    options = GenerateOptions(max_tokens=30, sampling=Sampling(), tree=TreeShape(nodes=8, depth=4, width=3))
    steps = generate(session, Prompt((5, 6, 7, 5, 6)), options)
    next(steps)
    assert [readbacks(lambda: next(steps)) for _ in range(3)] == [1 + levels] * 3
