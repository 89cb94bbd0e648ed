"""From what was measured to what a project should be set to: pure, so that the same figures give the same advice."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields

from assistant.bench.specs import MethodSpec
from assistant.bench.tables import Row, typical
from assistant.config import Settings, project
from assistant.config.keys import find, split
from assistant.config.overrides import Value
from assistant.daemon.budget import under_load
from assistant.engine.cost import Costs
from assistant.engine.methods import HEAD_METHODS, bounds_of
from assistant.engine.policy import Offer, Prices
from assistant.engine.tree import TreeShape
from assistant.errors import UsageError

NEARLY = 0.97
"""share of the fastest method's speed from which on `auto` is preferred: it goes on adapting"""
_BOUNDS = ("nodes", "depth", "width")
_SETTABLE = frozenset({*_BOUNDS, "threshold", "calibrated"})
"""properties of a tree that a configuration has keys for"""
_MOST_WAITING = 64


@dataclass(frozen=True, slots=True)
class Findings:
    """What advice rests on."""

    speeds: Mapping[MethodSpec, float]
    """median speed-up over plain decoding, of the methods that wrote anything; plain is among them"""
    rows: Mapping[str, Row]
    """a method's label -> its row of `bench decode`"""
    drawn: float | None
    """speed-up of `adaptive` where tokens are drawn; None where that was not measured"""
    temperature: float
    """at which they were drawn"""
    costs: Costs
    settings: Settings
    """that hold in the project, with what the command line gave"""
    given: Mapping[str, Value]
    """dotted key -> what the command line gave and the configuration does not say"""
    head: str | None
    calibrated: bool
    """whether the head has a calibration for the model, its precision and greedy decoding"""


@dataclass(frozen=True, slots=True)
class Fallback:
    """When a plain step is better than one with drafts, by this machine's costs."""

    plain_ms: float
    """of a step without drafts"""
    draft_ms: float
    """of a step that verifies one"""
    first_draft: float
    """path value above which one draft is worth its row"""
    one_more: float
    """and above which one more is, in a step of the usual size"""
    head_level: float | None
    """tokens that a step has to win where the head was asked for one level; None without a head"""


@dataclass(frozen=True, slots=True)
class Load:
    """What becomes of the tree while requests wait."""

    nodes: int
    """at most, while none does"""
    shrinks_from: int | None
    """waiting requests from which on it may have fewer; None where the tree never shrinks"""
    shrinks_to: int
    binds_from: int | None
    """waiting requests from which on it may have fewer than a step usually takes"""


@dataclass(frozen=True, slots=True)
class Advice:
    """What to set."""

    chosen: MethodSpec
    values: Mapping[str, Value]
    """dotted key -> value, for the project's file"""
    own: Mapping[str, Value]
    """those that only the user's own file may set"""
    fallback: Fallback
    load: Load


def speeds_of(specs: Sequence[MethodSpec], rows: Sequence[Row]) -> dict[MethodSpec, float]:
    """Median speed-ups by method; one that wrote nothing has none.

    Raises:
        UsageError: plain decoding wrote nothing, so nothing can be compared.
    """
    found = {spec: typical(row, "speedup") for spec, row in zip(specs, rows, strict=True)}
    speeds = {spec: speed for spec, speed in found.items() if speed is not None}
    if not any(spec.name == "plain" for spec in speeds):
        raise UsageError("the model wrote nothing at any place, so nothing can be compared: raise --places.")
    return speeds


def advise(findings: Findings) -> Advice:
    """What a project should be set to."""
    chosen = choose(findings.speeds)
    wanted = _wanted(chosen, findings)
    own = {key: value for key, value in wanted.items() if not _may_set(key, value)}
    row = findings.rows[chosen.label]
    return Advice(
        chosen,
        values={key: value for key, value in wanted.items() if key not in own},
        own=own,
        fallback=_fallback(row, findings.costs, headed=findings.head is not None),
        load=_load(chosen, row, adaptive=findings.settings.daemon.adaptive_load),
    )


def choose(speeds: Mapping[MethodSpec, float]) -> MethodSpec:
    """The fastest method that a configuration can name; `adaptive` where it is nearly as fast, plain among equals."""
    settable = {spec: speed for spec, speed in speeds.items() if can_be_set(spec)}
    ranked = sorted(settable, key=lambda spec: (-settable[spec], spec.name != "plain"))
    adaptive = next((spec for spec in ranked if spec.name == "adaptive"), ranked[0])
    return adaptive if settable[adaptive] >= NEARLY * settable[ranked[0]] else ranked[0]


def name_of(spec: MethodSpec) -> str:
    """A method as a configuration names it."""
    return "auto" if spec.name == "adaptive" else spec.name


def drafts_with_head(spec: MethodSpec) -> bool:
    """Whether a method asks a draft head where there is one."""
    return spec.name in HEAD_METHODS or spec.name == "adaptive"


def can_be_set(spec: MethodSpec) -> bool:
    """Whether a configuration has keys for all that a method's tree differs in from the usual."""
    others = (field.name for field in fields(TreeShape) if field.name not in _SETTABLE)
    return all(getattr(spec.shape, name) == getattr(TreeShape(), name) for name in others)


def _may_set(key: str, value: Value) -> bool:
    try:
        project.check(find(split(key)), value)
    except ValueError:
        return False
    return True


def _wanted(chosen: MethodSpec, findings: Findings) -> dict[str, Value]:
    needs = {"model.head": drafts_with_head(chosen), "model.draft": chosen.name == "sps"}
    models = {key: value for key, value in findings.given.items() if needs.get(key, True)}
    return {**models, "model.method": name_of(chosen), **_tree(chosen, findings.settings)}


def _tree(chosen: MethodSpec, settings: Settings) -> dict[str, Value]:
    """Keys of the tree that are not as they were measured; a fixed method's nodes are always said."""
    if chosen.name == "plain":
        return {}
    own, shape, tree = bounds_of(chosen.name), chosen.shape, settings.tree
    fixed = chosen.name != "adaptive"
    said = {"nodes"} if fixed else set()
    meant: dict[str, Value] = {"threshold": shape.threshold, "calibrated": shape.calibrated}
    for name in _BOUNDS:
        as_usual = getattr(shape, name) == getattr(own, name) and name not in said
        meant[name] = 0 if as_usual else getattr(shape, name)
    return {f"tree.{name}": value for name, value in meant.items() if name in said or value != getattr(tree, name)}


def _fallback(row: Row, costs: Costs, *, headed: bool) -> Fallback:
    prices = Prices(costs)
    nodes = round(row.get("nodes_per_step") or 0)
    alone = prices.offer((), 0, 0)
    usual_ms = costs.verify(nodes + 1) + (row.get("draft_ms_per_step") or 0.0)
    usual = Offer(nodes, row["tokens_per_step"] or 1.0, usual_ms)
    worth = prices.worth_of_row(alone)
    return Fallback(
        plain_ms=prices.plain_ms,
        draft_ms=prices.plain_ms * (1 + worth),
        first_draft=worth,
        one_more=prices.worth_of_row(usual),
        head_level=prices.draft_ms(1) / prices.plain_ms if headed else None,
    )


def _load(chosen: MethodSpec, row: Row, *, adaptive: bool) -> Load:
    if chosen.name == "plain":
        return Load(0, None, 0, None)
    shape, usual = chosen.shape, row.get("nodes_per_step") or 0.0
    waiting = range(1, _MOST_WAITING if adaptive else 1)
    shrinks = next((queue for queue in waiting if under_load(shape, queue).nodes < shape.nodes), None)
    binds = next((queue for queue in waiting if under_load(shape, queue).nodes < usual), None)
    return Load(shape.nodes, shrinks, under_load(shape, shrinks or 0).nodes, binds)
