"""What `--methods` may say: methods, each with its own tree, in one small grammar.

    METHODS = SPEC {"," SPEC}
    SPEC    = NAME ["@" NODES] [":" OPTION {"," OPTION}]
    OPTION  = KEY "=" VALUE

    plain,ngram,eagle2@60,eagle2:nodes=8,rerank=off,best-first@16,transformers:precision=bfloat16

A piece that holds "=" and no ":" is one more option of the spec before it. `@60` is short for `nodes=60`.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from assistant.engine.methods import METHODS
from assistant.engine.tree import TreeShape
from assistant.errors import UsageError

_T = TypeVar("_T")
PEERS = ("transformers", "transformers-lookup", "llama.cpp")
_NAME = re.compile(r"(?P<name>[a-z][a-z0-9.-]*)(@(?P<nodes>\d+))?(:(?P<option>.+))?")
_NUMBERS: Mapping[str, Callable[[str], float]] = {
    "nodes": int,
    "depth": int,
    "width": int,
    "threshold": float,
    "top_p": float,
    "margin": float,
}
_SWITCHES: Mapping[str, Mapping[str, bool | str]] = {
    "rerank": {"on": True, "off": False},
    "calibrated": {"on": True, "off": False},
    "rank": {"value": "value", "confidence": "confidence"},
}
_PRECISIONS = ("float32", "bfloat16", "float16")


@dataclass(frozen=True, slots=True)
class MethodSpec:
    """One competitor of a comparison."""

    label: str
    """as it was written: the row's name"""
    name: str
    shape: TreeShape
    precision: str | None = None
    """a transformers peer's own; None is the run's"""

    @property
    def is_peer(self) -> bool:
        """Whether another program decodes."""
        return self.name in PEERS


def parse_methods(text: str, base: TreeShape, own: Callable[[str], TreeShape] | None = None) -> tuple[MethodSpec, ...]:
    """The specs of `text` in order; what a spec leaves open is `base`'s, or where it is given its method's `own`.

    Raises:
        UsageError: an unknown method or option, a value out of range, or the same spec twice.
    """
    specs = tuple(_parse(spec, own or (lambda _: base)) for spec in _split(text))
    labels = [spec.label for spec in specs]
    for label in labels:
        if labels.count(label) > 1:
            raise UsageError(f"--methods names {label} twice.")
    return specs


def with_plain(specs: Sequence[MethodSpec], base: TreeShape) -> tuple[MethodSpec, ...]:
    """The specs with plain decoding among them: speed-up and identity are measured against it in the same run."""
    if any(spec.name == "plain" for spec in specs):
        return tuple(specs)
    return (MethodSpec("plain", "plain", base), *specs)


def _split(text: str) -> list[str]:
    specs: list[str] = []
    for piece in (piece.strip() for piece in text.split(",")):
        if "=" in piece and ":" not in piece:
            if not specs:
                raise UsageError(f"--methods begins with the option {piece}: a method's name comes first.")
            specs[-1] += ("," if ":" in specs[-1] else ":") + piece
        elif piece:
            specs.append(piece)
    if not specs:
        raise UsageError(f"--methods is empty: choose from {', '.join((*METHODS, *PEERS))}.")
    return specs


def _parse(spec: str, base: Callable[[str], TreeShape]) -> MethodSpec:
    match = _NAME.fullmatch(spec)
    if match is None or match["name"] not in (*METHODS, *PEERS):
        name = match["name"] if match else spec
        raise UsageError(f"--methods: {name} is not a method; choose from {', '.join((*METHODS, *PEERS))}.")
    options = [f"nodes={match['nodes']}"] if match["nodes"] else []
    options += match["option"].split(",") if match["option"] else []
    result = MethodSpec(spec, match["name"], base(match["name"]))
    for option in options:
        result = _with_option(result, option)
    return result


def _with_option(spec: MethodSpec, option: str) -> MethodSpec:
    key, _, value = option.partition("=")
    if spec.is_peer:
        return replace(spec, precision=_chosen(spec, key, value, {"precision": {name: name for name in _PRECISIONS}}))
    if key in _NUMBERS:
        changed: float | bool | str = _number(spec, key, value)
    else:
        changed = _chosen(spec, key, value, _SWITCHES)
    return replace(spec, shape=replace(spec.shape, **{key: changed}))  # type: ignore[arg-type]  # by table, checked


def _chosen(spec: MethodSpec, key: str, value: str, options: Mapping[str, Mapping[str, _T]]) -> _T:
    if key not in options:
        known = ", ".join(options if spec.is_peer else (*_NUMBERS, *options))
        raise UsageError(f"--methods: {spec.label}: there is no option {key}; the options are {known}.")
    if value not in options[key]:
        raise UsageError(f"--methods: {spec.label}: {key} is one of {', '.join(options[key])}.")
    return options[key][value]


def _number(spec: MethodSpec, key: str, value: str) -> float:
    try:
        number = _NUMBERS[key](value)
    except ValueError:
        raise UsageError(f"--methods: {spec.label}: {key}={value} is not a number.") from None
    if number < (1 if key in {"nodes", "depth", "width"} else 0):
        raise UsageError(f"--methods: {spec.label}: {key}={value} is too small.")
    return number
