"""Measuring what a step costs: timed forwards of the target over trees, and timed drafts of the head."""

import contextlib
import math
import statistics
import time
from collections.abc import Callable, Sequence
from random import Random

import torch

from assistant.engine import builders, cost
from assistant.engine.cost import Costs, machine_name
from assistant.engine.eagle import EagleDrafter
from assistant.engine.kv_cache import KVCache
from assistant.engine.tree import DraftTree, TreeShape
from assistant.engine.types import Prompt, Sampling
from assistant.errors import StorageError
from models.decoder import LeanDecoder
from models.draft_head import DraftHead
from models.target import Target, TargetSpec

SIZES = (1, 2, 4, 8, 12, 16, 24, 32, 48, 64)
DEPTHS = (1, 2, 3, 4, 5, 6, 7, 8)
_BRANCHES = 2
_QUICK_SIZES = (1, 2, 4, 8, 12, 16, 24, 32)
_QUICK_DEPTHS = (1, 2, 4)
_QUICK_REPEATS = 3
_QUICK_CONTEXT = 256


def measure(
    target: Target,
    head: DraftHead | None,
    *,
    context: int = 256,
    width: int = 8,
    repeat: int = 7,
    sizes: Sequence[int] = SIZES,
    depths: Sequence[int] = DEPTHS,
) -> Costs:
    """Measure a target and its head; sizes and depths take turns, so that a busy moment strikes all alike.

    Raises:
        ContextOverflowError: `context` and the largest size do not fit in the model's context.
    """
    timers = {f"verify {n}": timer for n, timer in _verify_timers(target, context, sizes).items()}
    if head is not None:
        timers |= {f"draft {d}": timer for d, timer in _draft_timers(target, head, context, width, depths).items()}
    times: dict[str, list[float]] = {name: [] for name in timers}
    for turn in range(repeat + 1):
        for name, timer in timers.items():
            elapsed = timer()
            if turn:  # the first turn warms caches and thread pools up
                times[name].append(elapsed)
    medians = {name: statistics.median(values) for name, values in times.items()}
    spec = target.spec
    return Costs(
        machine=machine_name(spec.device),
        model=spec.name,
        precision=spec.precision,
        device=str(spec.device),
        threads=torch.get_num_threads(),
        context=context,
        width=width,
        weight_bytes=weight_bytes(target),
        head=label_of(head),
        verify_ms={n: medians[f"verify {n}"] for n in sizes},
        draft_ms={d: medians[f"draft {d}"] for d in depths} if head is not None else {},
        spread_ms={name: _quartiles(values) for name, values in times.items()},
    )


def costs_of(target: Target, head: DraftHead | None) -> Costs:
    """What is stored for this machine, target and head; where nothing is, a quick measurement, which is then kept."""
    known = cost.load(target.spec)
    if known is not None and (head is None or known.head == label_of(head)):
        return known
    context = min(_QUICK_CONTEXT, target.spec.max_positions // 2)
    sizes = [size for size in _QUICK_SIZES if size + context <= target.spec.max_positions]
    found = measure(target, head, context=context, repeat=_QUICK_REPEATS, sizes=sizes, depths=_QUICK_DEPTHS)
    with contextlib.suppress(StorageError):  # it is measured again next time
        cost.save(found)
    return found


def label_of(head: DraftHead | None) -> str:
    """What tells heads of different costs apart: the name, and how many tokens it drafts."""
    if head is None:
        return ""
    return f"{head.spec.name}, {head.spec.vocab_size if head.draft_vocab is None else len(head.draft_vocab)} tokens"


def plain_timer(target: Target, context: int = 16) -> Callable[[], float]:
    """Reads a short text; what is returned times one plain step after it, in milliseconds.

    Raises:
        ContextOverflowError: `context` does not fit in the model's context.
    """
    return _verify_timers(target, context, (1,))[1]


def weight_bytes(target: Target) -> int | None:
    """Bytes of the weights that one forward reads; None for a model that runs through transformers.

    An embedding table counts only where it is the output head as well.
    """
    if not isinstance(target, LeanDecoder):
        return None
    tensors = target.export()
    untied = any(name.startswith("head.") for name in tensors)
    read = [tensor for name, tensor in tensors.items() if not (untied and name == "embedding")]
    return sum(tensor.numel() * tensor.element_size() for tensor in read)


def _verify_timers(target: Target, context: int, sizes: Sequence[int]) -> dict[int, Callable[[], float]]:
    cache = KVCache.of(target.spec)
    cache.reserve(context + max(sizes))
    _fill(target, cache, _random_ids(target.spec, context))

    def timer(rows: int) -> Callable[[], float]:
        tree = _bushy_tree(_random_ids(target.spec, rows))
        device = target.spec.device
        ids, mask = torch.tensor(tree.tokens, device=device), torch.from_numpy(tree.mask()).to(device)
        positions = torch.tensor(tree.depths, device=device) + context

        def run() -> float:
            with torch.inference_mode():
                elapsed = _timed(target.spec, lambda: target.forward(ids, positions, cache, mask))
            cache.rewind(context)
            return elapsed

        return run

    return {rows: timer(rows) for rows in sizes}


def _draft_timers(
    target: Target, head: DraftHead, context: int, width: int, depths: Sequence[int]
) -> dict[int, Callable[[], float]]:
    ids = _random_ids(target.spec, context)
    features = _fill(target, KVCache.of(target.spec), ids)
    drafter = EagleDrafter(head, builders.dynamic)
    drafter.begin(Prompt(tuple(ids)), 0)
    drafter.observe(ids, features)

    def timer(depth: int) -> Callable[[], float]:
        # Without reranking nothing ends the expansion early, whatever the head thinks of random tokens.
        shape = TreeShape(nodes=depth * width, depth=depth, width=width, rerank=False)

        def run() -> float:
            with torch.inference_mode():
                elapsed = _timed(target.spec, lambda: drafter.draft(ids[0], shape, Sampling(), Random(0)))  # noqa: S311
                # As after a step that accepted nothing: the next draft has one new row to compute.
                drafter.observe(ids[:1], features[:1])
            return elapsed

        return run

    return {depth: timer(depth) for depth in depths}


def _fill(target: Target, cache: KVCache, ids: Sequence[int]) -> torch.Tensor:
    """Prefill a cache; (n, H) features."""
    device = target.spec.device
    with torch.inference_mode():
        rows = torch.tensor(ids, device=device)
        return target.forward(rows, torch.arange(len(ids), device=device), cache, last_only=True).features


def _random_ids(spec: TargetSpec, count: int) -> list[int]:
    rng = Random(count)  # noqa: S311 - any tokens do
    return [rng.randrange(spec.vocab_size) for _ in range(count)]


def _bushy_tree(tokens: Sequence[int]) -> DraftTree:
    size = len(tokens)
    parents = (-1, *((node - 1) // _BRANCHES for node in range(1, size)))
    values = [0.0]
    for parent in parents[1:]:
        values.append(values[parent] - math.log(_BRANCHES))
    return DraftTree(tuple(tokens), parents, tuple(values), ("",) * size)


def _timed(spec: TargetSpec, work: Callable[[], object]) -> float:
    _finish(spec)
    started = time.perf_counter()
    work()
    _finish(spec)
    return (time.perf_counter() - started) * 1e3


def _finish(spec: TargetSpec) -> None:
    if spec.device.type == "cuda":
        torch.cuda.synchronize(spec.device)


def _quartiles(values: Sequence[float]) -> tuple[float, float]:
    if len(values) == 1:
        return values[0], values[0]
    q1, _, q3 = statistics.quantiles(values, n=4, method="inclusive")
    return q1, q3
