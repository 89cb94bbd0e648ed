"""The figures that sum everything up, with how each is known."""

from textual.content import Content

from tui import wording
from tui.figures import DRAFTED, Figures
from tui.state import View
from tui.widgets.panel import Panel
from tui.writing import ORIGINS

_LABEL = 14


def rows(view: View) -> tuple[tuple[str, str], ...]:
    """(what, how much) of each figure."""
    figures, status = view.figures, view.status
    per_step = figures.tokens_per_step
    lines = [
        ("tokens a step", "–" if per_step is None else f"{per_step:.2f}"),
        ("speed-up", wording.times(view.speed)),
        ("plain step", wording.yardstick(view)),
        ("from drafts", _drafted(figures)),
        ("completions", f"{figures.completions:,} in {wording.count(figures.steps, 'step')}"),
        ("prompt", _prompt(figures)),
        ("shown", _suggestions(view)),
    ]
    if status:
        memory = wording.megabytes(status.memory_bytes)
        cache = f", {wording.megabytes(status.cache_bytes)} of it cache" if status.cache_bytes else ""
        lines += [("queue", str(status.queue)), ("memory", memory + cache)]
        if status.device_memory_bytes:
            lines.append(("VRAM", wording.megabytes(status.device_memory_bytes)))
        if status.superseded_steps:
            lines.append(("wasted", wording.count(status.superseded_steps, "step") + " for withdrawn requests"))
    if view.missed:
        lines.append(("missed", f"{wording.count(view.missed, 'event')} came too quickly"))
    return tuple(lines)


def _drafted(figures: Figures) -> str:
    share = wording.percent(figures.drafted_share)
    named = [f"{ORIGINS[name].letter} {figures.origins[name]:,}" for name in DRAFTED if name in figures.origins]
    return f"{share} of {sum(figures.origins.values()):,} tokens{': ' + ', '.join(named) if named else ''}"


def _prompt(figures: Figures) -> str:
    if not figures.prompt_tokens:
        return "–"
    return f"{figures.prompt_tokens:,} tokens, {figures.reused / figures.prompt_tokens:.0%} reused"


def _suggestions(view: View) -> str:
    """Shown, accepted and kept: what the feed said while the interface ran."""
    outcomes = view.figures.outcomes
    counts = [(name, outcomes.get(name, 0)) for name in ("shown", "accepted", "partly", "kept", "rejected")]
    told = [f"{number} {name}" if name != "shown" else str(number) for name, number in counts if number]
    return ", ".join(told) if told else "no editor told yet"


class FigureTable(Panel):
    """A line a figure."""

    def draw(self, view: View, width: int, height: int) -> Content:
        del height
        lines = []
        for name, value in rows(view):
            room = max(width - _LABEL, 8)
            shown = Content(value).wrap(room) if len(value) > room else [Content(value)]
            for index, part in enumerate(shown):
                label = name if index == 0 else ""
                lines.append(Content.assemble((f"{label:<{_LABEL}}", "$muted"), part.stylize("bold")))
        return Content("\n").join(lines)
