"""Figures and findings in words, for people who never heard of speculative decoding."""

from collections.abc import Sequence
from statistics import median

from assistant.protocol import Observed, Status, Step
from tui import drafts
from tui.figures import Figures, Speedup, speedup
from tui.state import View, figures_of

NOT_MEASURED = "not measured yet"
_SURE = 0.7
_UNSURE = 0.4
_APART = 1.5
"""times by which two figures of the same thing differ when something is the matter"""


def count(number: int, noun: str) -> str:
    """`1 step`, `2 steps`."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def milliseconds(value: float | None) -> str:
    """With three digits at most; a dash for what was not measured."""
    if value is None:
        return "–"
    if value >= 10_000:
        return f"{value / 1000:.0f} s"
    return f"{value:.0f} ms" if value >= 10 else f"{value:.1f} ms"


def megabytes(value: int) -> str:
    """10^6 bytes, or 10^9 from there on."""
    return f"{value / 1e9:.2f} GB" if value >= 1e9 else f"{value / 1e6:.0f} MB"


def percent(part: float | None) -> str:
    """A share; a dash for one that is not known."""
    return "–" if part is None else f"{part:.0%}"


def times(speed: Speedup | None) -> str:
    """How much faster than plain decoding, and how that is known."""
    if speed is None:
        return NOT_MEASURED
    return f"{speed.times:.2f}x plain ({milliseconds(speed.plain_ms)}, {speed.basis})"


def yardstick(view: View) -> str:
    """What a plain step costs: by the cost model, and by the plain steps that were seen, which check it."""
    sampled, modelled = (median(view.plain_ms) if view.plain_ms else 0.0), view.modelled_ms
    if not sampled:
        return f"{milliseconds(modelled)} by cost model; m samples some" if modelled else f"{NOT_MEASURED}, m does"
    seen = f"{milliseconds(sampled)} sampled"
    if not modelled:
        return seen
    apart = max(sampled, modelled) / min(sampled, modelled) > _APART
    return f"{seen}, {milliseconds(modelled)} by cost model{': is the machine busy?' if apart else ''}"


def story(view: View, steps: Sequence[Observed], whole: Sequence[Observed] = ()) -> tuple[str, str]:
    """Two sentences on a completion: who wrote it, and how much faster that went.

    Args:
        view: what there is to compare with.
        steps: the completion's, up to the one that is looked at.
        whole: all of them, where those are more.
    """
    figures = figures_of(steps)
    read = sum(len(observed.step.tokens) for observed in steps if observed.step.index == 0)
    pace = _pace(figures, speedup(figures, view.plain_ms, view.modelled_ms))
    if len(whole) <= len(steps):
        return _authors(figures, read), pace
    all_steps = figures_of(whole)
    speed = speedup(all_steps, view.plain_ms, view.modelled_ms)
    end = "" if speed is None else f", {speed.times:.2f} times"
    per_step = all_steps.tokens / all_steps.forwards if all_steps.forwards else 0.0
    return _authors(figures, read), f"Up to here: {pace[:-1]}; the whole text: {per_step:.2f} a step{end}."


def _authors(figures: Figures, read: int) -> str:
    written = sum(figures.origins.values()) + figures.plain_tokens
    parts = {
        "guessed by the draft head": figures.origins.get("head", 0),
        "guessed by the draft model": figures.origins.get("draft", 0),
        "copied from nearby text": figures.origins.get("retrieval", 0),
    }
    drafted = sum(parts.values())
    named = [f"{number} {name}" for name, number in parts.items() if number]
    if not drafted:
        reason = "no guess was right" if figures.drafting_steps else "nothing was drafted"
        return f"{count(written, 'token')}, all written by the model itself: {reason}."
    first = f" ({read} while it read the prompt)" if read else ""
    own = f"{written - drafted} by the model itself{first}"
    return f"Of {count(written, 'token')}, {', '.join(named)} and kept, {own}."


def _pace(figures: Figures, speed: Speedup | None) -> str:
    if not figures.forwards:
        return "The model has read the text; the first step comes next."
    pace = f"{figures.tokens / figures.forwards:.2f} tokens a step"
    if speed is None:
        return f"{pace}; speed-up {NOT_MEASURED}, m measures it." if figures.drafting_steps else f"{pace}."
    known = f"{milliseconds(speed.plain_ms)}, {speed.basis}"
    return f"{pace}, {speed.times:.2f} times as fast as one at a time ({known})."


def headline(step: Step) -> str:
    """What a step did."""
    if step.index == 0 or step.prompt_tokens:
        kept = f", {step.reused} of them kept from before" if step.reused else ""
        return f"Prefill: read {count(step.prompt_tokens, 'token')}{kept}, {milliseconds(step.prefill_ms)}"
    if step.tree is None or len(step.tree.tokens) < 2:
        return f"Step {step.index}: nothing drafted, one forward, {milliseconds(step.verify_ms)}"
    drafted, accepted = len(step.tree.tokens) - 1, len(step.tree.accepted)
    spent = f"draft {milliseconds(step.draft_ms)}, verify {milliseconds(step.verify_ms)}"
    return f"Step {step.index}: {drafted} drafted, {accepted} accepted, {count(len(step.tokens), 'token')}; {spent}"


def why(observed: Observed) -> str:
    """Why the tree has its shape: what the policy says, or what the drafter's own confidences show."""
    step = observed.step
    if step.tree is None or len(step.tree.tokens) < 2:
        return "No tree: nothing was drafted." if step.index else "No tree: the prompt is read first."
    size = drafts.shape(step.tree)
    what = f"{count(size.nodes, 'node')}, {size.depth} deep, {size.width} wide"
    choice = step.choice
    allowed = f" (bounds: {choice.nodes}, {choice.depth} and {choice.width}{_beyond(step, size)})" if choice else ""
    chosen = "; ".join(part for part in (choice.reason if choice else "", _confidence(step, size)) if part)
    return f"{what}{allowed}: {chosen}; expected {drafts.expected(step.tree):.1f} tokens, got {len(step.tokens)}"


def _beyond(step: Step, size: drafts.Shape) -> str:
    assert step.choice is not None
    return "; copied text may go deeper" if size.depth > step.choice.depth and _copied(step) else ""


def _copied(step: Step) -> int:
    return 0 if step.tree is None else step.tree.origins[1:].count("retrieval")


def _confidence(step: Step, size: drafts.Shape) -> str:
    assert step.tree is not None
    if _copied(step) == size.nodes:
        return "a copy of nearby text, as far as it goes"
    first = max(drafts.confidence(step.tree, node) for node in drafts.children(step.tree)[0])
    deep, wide = size.depth > size.width, size.width > size.depth
    if deep and 2 * _copied(step) >= size.nodes:
        return f"its first guess has {first:.2f}; deep by what was copied from nearby text"
    if first >= _SURE:
        rest = "so deep" if deep else f"less of what follows{', so wide' if wide else ''}"
        return f"sure of its first guess ({first:.2f}), {rest}"
    if first < _UNSURE:
        rest = "so wide" if wide else f"surer of what follows{', so deep' if deep else ''}"
        return f"unsure of its first guess ({first:.2f}), {rest}"
    return f"half sure of its first guess ({first:.2f}){', so wide' if wide else ', so deep' if deep else ''}"


def daemon(status: Status) -> str:
    """The daemon in one line."""
    parts = [status.model, status.method, f"{status.precision} on {status.device}", status.state]
    if status.queue:
        parts.append(f"queue {status.queue}")
    if status.memory_bytes:
        parts.append(megabytes(status.memory_bytes))
    if status.device_memory_bytes:
        parts.append(f"VRAM {megabytes(status.device_memory_bytes)}")
    return " · ".join(part for part in parts if part)
