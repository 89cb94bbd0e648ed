"""Advice in sentences: what was chosen and why, when to fall back, and what is missing."""

from collections.abc import Iterator

from assistant.bench.advice import NEARLY, Advice, Findings, can_be_set, drafts_with_head, name_of
from assistant.bench.specs import MethodSpec
from assistant.bench.usage import Trace
from assistant.config.example import value_text
from assistant.config.files import user_file

_SMALL = 0.005
"""path values below this are not told apart in two digits"""


def reasons(advice: Advice, findings: Findings, trace: Trace) -> list[str]:
    """Why, one sentence or two for each thing that is advised."""
    return [
        _method(advice.chosen, findings, len(trace.prompts)),
        *_drafts(advice.chosen, findings),
        *_tree(advice, findings),
        _temperature(findings),
        *_fallback(advice, findings),
        *_load(advice),
        *_own(advice),
    ]


def missing(findings: Findings) -> Iterator[str]:
    """What would make completions faster and is not there, with the command that makes it."""
    model, precision = findings.settings.model.name, findings.costs.precision
    if findings.head is None:
        yield (
            f"No draft head fits {findings.costs.model}: `eagle-assist train --model {model} --data FOLDER --out "
            "FOLDER` makes one, and tuning again says what it brings."
        )
    elif not findings.calibrated:
        named = f" --head {findings.settings.model.head}" if findings.settings.model.head else ""
        yield (
            f"The head {findings.head} has no calibration for {findings.costs.model} in {precision}: "
            f"`eagle-assist calibrate --model {model}{named} --precision {precision} --data FOLDER` fits one."
        )


def where(trace: Trace, folder: str) -> str:
    """Which completions methods were compared by."""
    count = len(trace.prompts)
    if trace.origin == "learned":
        return f"{count} of the completions that the daemon kept for learning"
    return f"{count} {'place' if count == 1 else 'places'} in {trace.files} {_files(trace.files)} of {folder}"


def _files(count: int) -> str:
    return "file" if count == 1 else "files"


def _method(chosen: MethodSpec, findings: Findings, places: int) -> str:
    speeds = findings.speeds
    rivals = (spec for spec in speeds if spec != chosen and can_be_set(spec))
    others = sorted(rivals, key=lambda spec: -speeds[spec])
    speed, next_best = speeds[chosen], others[0] if others else chosen
    reached = f"{next_best.label} reached {speeds[next_best]:.2f}"
    if chosen.name == "plain":
        return f"Method plain: nothing was faster{f'; the next, {reached} of its speed' if others else ''}."
    text = f"Method {name_of(chosen)}: {speed:.2f} times as fast as plain decoding, the median of {places} completions"
    if speeds[next_best] > speed:
        return f"{text}; {reached}, but within {100 * (1 - NEARLY):.0f} % what adapts is preferred."
    return f"{text}; the next, {reached}."


def _drafts(chosen: MethodSpec, findings: Findings) -> Iterator[str]:
    copies = chosen.name in {"ngram", "hybrid", "adaptive"}
    if drafts_with_head(chosen) and findings.head is not None:
        yield f"Drafts: by the head {findings.head}{', and copied from the text around the cursor' if copies else ''}."
    elif chosen.name == "sps":
        yield f"Drafts: by the model {findings.settings.model.draft}."
    elif copies:
        yield "Drafts: copied from the text around the cursor alone."


def _tree(advice: Advice, findings: Findings) -> Iterator[str]:
    chosen, used = advice.chosen, findings.rows[advice.chosen.label].get("nodes_per_step") or 0.0
    if chosen.name == "adaptive":
        yield f"Tree: no fixed size; a step took {used:.1f} drafts on average and may take {chosen.shape.nodes}."
    elif chosen.name != "plain":
        yield f"Tree: at most {chosen.shape.nodes} drafts a step; one took {used:.1f} on average."


def _temperature(findings: Findings) -> str:
    kept = findings.settings.completion.temperature
    text = f"Temperature: {kept:g}, as configured"
    greedy = next((speed for spec, speed in findings.speeds.items() if spec.name == "adaptive"), None)
    if findings.drawn is None or greedy is None:
        return f"{text}; what drawing tokens costs was not measured."
    change = 1 - findings.drawn / greedy
    cost = f"costs {100 * change:.0f} % of the speed" if change >= _SMALL else "costs nothing"
    speeds = f"{findings.drawn:.2f} times plain decoding instead of {greedy:.2f}"
    return f"{text}; at {findings.temperature:g} drawing tokens {cost}: auto reached {speeds}."


def _fallback(advice: Advice, findings: Findings) -> Iterator[str]:
    found = advice.fallback
    yield (
        f"Fall back to plain: a plain step takes {found.plain_ms:.1f} ms and one with a draft {found.draft_ms:.1f} ms, "
        f"so a draft is worth its row where its path value is above {_value(found.first_draft)}; in a step as large as "
        f"usual, above {_value(found.one_more)}."
    )
    if found.head_level is not None:
        yield (
            f"Asking the head for one level takes {findings.costs.draft(1):.1f} ms, so a step has to win "
            f"{found.head_level:.2f} tokens by it."
        )
    if advice.chosen.name == "adaptive":
        yield "Where less is promised, auto takes plain steps by itself."
    elif advice.chosen.name != "plain":
        yield (
            "A fixed method verifies its drafts all the same; "
            f"tree.threshold = {found.first_draft:.2f} would leave out what is not worth its row (not measured)."
        )


def _value(value: float) -> str:
    return f"{value:.2f}" if value >= _SMALL else f"{_SMALL}"


def _load(advice: Advice) -> Iterator[str]:
    load = advice.load
    if not load.nodes:
        return
    if load.shrinks_from is None:
        yield f"Load: a step may take {load.nodes} drafts however many requests wait."
        return
    waiting = f"{load.shrinks_from} {'request waits' if load.shrinks_from == 1 else 'requests wait'}"
    text = f"Load: as soon as {waiting} a step may take {load.shrinks_to} drafts instead of {load.nodes}"
    yield f"{text}, and from {load.binds_from} on fewer than it usually takes." if load.binds_from else f"{text}."


def _own(advice: Advice) -> Iterator[str]:
    for key, value in advice.own.items():
        yield (
            f"This was measured with {key} = {value_text(value)}, which a project's file may not set: "
            f"set it in your own, {user_file()}."
        )
