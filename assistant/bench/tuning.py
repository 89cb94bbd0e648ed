"""What `eagle-assist tune` measures: this machine's costs, and one user's completions by methods in turn."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from assistant.bench.advice import Advice, Findings, advise, name_of, speeds_of
from assistant.bench.contenders import Contender, EngineContender
from assistant.bench.decode import compare, document, method_rows
from assistant.bench.reasons import missing, reasons, where
from assistant.bench.rows import method_row, tree_options
from assistant.bench.specs import MethodSpec, parse_methods, with_plain
from assistant.bench.tables import IDENTICAL, METHOD, SPEEDUP, Column, number, typical
from assistant.bench.usage import Trace, trace_of
from assistant.config import Settings
from assistant.config.overrides import Value
from assistant.engine import cost
from assistant.engine.cost import Costs
from assistant.engine.measure import SIZES, measure
from assistant.engine.methods import bounds_of, make_drafter
from assistant.engine.session import Session
from assistant.engine.tree import TreeShape
from assistant.engine.types import Sampling
from assistant.errors import UsageError
from models.draft_head import DraftHead
from models.loading import LoadedModel, find_head, load
from models.target import Target

COLUMNS = (
    METHOD,
    Column("tokens/step", number("tokens_per_step")),
    Column("ms/step", number("ms_per_step", ".0f")),
    SPEEDUP,
    IDENTICAL,
)
_CONTEXT = 256
_DRAWN = 0.8
"""the temperature that is tried where none is configured"""
Count = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class Order:
    """What is to be tuned, and how thoroughly."""

    folder: Path
    """of the project; absolute"""
    settings: Settings
    """that hold in it, with what the command line gave"""
    given: Mapping[str, Value]
    """dotted key -> what the command line gave and the configuration does not say"""
    methods: str | None
    """a list as `bench decode` takes it; None: what the model, head and draft model allow"""
    places: int
    max_tokens: int

    def bounds(self, method: str) -> TreeShape:
        """A method's own tree, with what advice leaves as it is configured."""
        tree = self.settings.tree
        return replace(bounds_of(method), threshold=tree.threshold, calibrated=tree.calibrated)

    @property
    def sampling(self) -> Sampling:
        """How tokens are drawn, to see what that costs."""
        written = self.settings.completion
        return Sampling(written.temperature or _DRAWN, written.top_p, written.top_k, written.seed)


@dataclass(frozen=True, slots=True)
class Means:
    """What methods work with."""

    loaded: LoadedModel
    head: DraftHead | None
    draft: Target | None
    """of `sps`"""

    @classmethod
    def of(cls, loaded: LoadedModel, settings: Settings) -> "Means":
        """A loaded model with the head that fits it and the draft model that is configured.

        Raises:
            UserError: one that is named is missing or unusable.
        """
        named, spec = settings.model, loaded.target.spec
        head = find_head(named.head or None, loaded.target)
        draft = load(named.draft, spec.precision, str(spec.device)).target if named.draft else None
        return cls(loaded, head, draft)

    @property
    def methods(self) -> str:
        """What is compared unless somebody chooses."""
        headed = ("eagle2@8", "eagle2@16", "hybrid@8") if self.head else ()
        return ",".join(("plain", "ngram", *headed, *(("sps",) if self.draft else ()), "adaptive"))

    def line_up(self, specs: Sequence[tuple[MethodSpec, Sampling | None]]) -> list[Contender]:
        """Those that are to be compared; two of one method share its session, which reads each prompt once."""
        target, tokenizer, head, draft = self.loaded.target, self.loaded.tokenizer, self.head, self.draft
        names = {spec.name for spec, _ in specs}
        sessions = {name: Session(target, make_drafter(name, target, head=head, draft=draft)) for name in names}
        return [
            EngineContender(
                spec, target, tokenizer, head=head, draft=draft, sampling=drawn, session=sessions[spec.name]
            )
            for spec, drawn in specs
        ]


@dataclass(frozen=True, slots=True)
class Tuned:
    """What was measured, and what follows from it."""

    order: Order
    means: Means
    trace: Trace
    rows: Sequence[Mapping[str, Any]]
    """of `bench decode`; the one of drawn tokens comes last"""
    findings: Findings
    advice: Advice

    @property
    def where(self) -> str:
        """Which completions methods were compared by."""
        return where(self.trace, self.order.folder.name)

    @property
    def reasons(self) -> list[str]:
        """Why it is advised."""
        return reasons(self.advice, self.findings, self.trace)

    @property
    def missing(self) -> list[str]:
        """What is not there and would help."""
        return list(missing(self.findings))

    def to_json(self) -> dict[str, Any]:
        """The JSON document of `tune`."""
        advice, findings = self.advice, self.findings
        advised = {
            "method": name_of(advice.chosen),
            "measured_as": advice.chosen.label,
            "speedup": findings.speeds[advice.chosen],
            "settings": dict(advice.values),
            "own_settings": dict(advice.own),
            "fallback": asdict(advice.fallback),
            "load": asdict(advice.load),
            "reasons": self.reasons,
            "missing": self.missing,
        }
        return {
            **document(self.rows, self.means.loaded.target.spec),
            "project": self.order.folder.name,
            "head": findings.head,
            "calibrated": findings.calibrated,
            "trace": {"origin": self.trace.origin, "places": len(self.trace.prompts), "files": self.trace.files},
            "max_tokens": self.order.max_tokens,
            "costs": findings.costs.to_json(),
            "advice": advised,
        }


def tune(order: Order, loaded: LoadedModel, learned: Path, progress: Count) -> Tuned:
    """Measure, and say what follows.

    Args:
        order: what is to be tuned.
        loaded: the model that the project's settings name.
        learned: where the daemon keeps completions.
        progress: called with how many places are done, and of how many.

    Raises:
        UserError: there is nothing to complete, a method cannot be had, or costs cannot be kept.
    """
    means = Means.of(loaded, order.settings)
    specs = _specs(order.methods or means.methods, order.bounds)
    trace = trace_of(order.folder, order.settings, loaded, learned, order.places, order.max_tokens)
    costs = _measure_costs(means)
    rows, drawn = _measure_methods(specs, means, order, trace, progress)
    head = means.head
    findings = Findings(
        speeds=speeds_of(specs, rows),
        rows={row["method"]: row for row in rows},
        drawn=None if drawn is None else typical(drawn, "speedup"),
        temperature=order.sampling.temperature,
        costs=costs,
        settings=order.settings,
        given=order.given,
        head=None if head is None else head.spec.name,
        calibrated=head is not None and head.calibrations.at(0.0) is not None,
    )
    return Tuned(order, means, trace, [*rows, *([] if drawn is None else [drawn])], findings, advise(findings))


def _specs(methods: str, bounds: Callable[[str], TreeShape]) -> tuple[MethodSpec, ...]:
    specs = with_plain(parse_methods(methods, bounds("plain"), bounds), bounds("plain"))
    for spec in specs:
        if spec.is_peer:
            raise UsageError(f"--methods takes methods of this program, not {spec.name}: `bench decode` compares it.")
    return specs


def _measure_costs(means: Means) -> Costs:
    """Measured anew, and kept for every adaptive tree from now on."""
    target = means.loaded.target
    found = measure(target, means.head, context=min(_CONTEXT, target.spec.max_positions - max(SIZES)))
    cost.save(found)
    return found


def _measure_methods(
    specs: Sequence[MethodSpec], means: Means, order: Order, trace: Trace, progress: Count
) -> tuple[list[dict[str, Any]], dict[str, Any] | None]:
    """A row for each method, greedy; and one for `adaptive`, where it is among them, that draws its tokens."""
    adaptive = [spec for spec in specs if spec.name == "adaptive"][:1]
    drawn = [replace(spec, label=f"{spec.label}, temperature {order.sampling.temperature:g}") for spec in adaptive]
    contenders = means.line_up([*((spec, None) for spec in specs), *((spec, order.sampling) for spec in drawn)])
    runs = compare(contenders, trace.prompts, order.max_tokens, progress=progress)
    loaded = means.loaded
    rows = method_rows(specs, runs, trace.prompts, loaded.target, loaded.tokenizer.eos_ids)
    plain = next(runs[spec.label] for spec in specs if spec.name == "plain")
    drawing = [{**method_row(spec.label, runs[spec.label], plain, None), **tree_options(spec)} for spec in drawn]
    return [_decoding(row) for row in rows], next(map(_decoding, drawing), None)


def _decoding(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row without what includes the prefill, which a session that has read the prompt already does not need."""
    return {key: value for key, value in row.items() if not key.startswith(("total_", "prefill_"))}
