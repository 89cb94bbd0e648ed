"""What a completion's steps come to: the JSON document that scripts rely on, and one line for people."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from assistant.engine.types import FinishReason, StepResult
from assistant.metrics import Summary, summarize


@dataclass(slots=True)
class Record:
    """One completion as it comes in."""

    model: str
    method: str
    load_ms: float
    steps: list[StepResult] = field(default_factory=list)
    text: str = ""
    """as written, with the document's line ends"""
    decode_ms: float = 0.0
    """from the first token to the end"""
    cancelled: bool = False
    ended: FinishReason | None = None
    """why, where the last step does not say it"""
    daemon: bool = False
    """whether the daemon did the work"""

    def summary(self) -> Summary:
        """The steps added up."""
        return summarize(self.steps)

    def finish(self) -> FinishReason:
        """Why it ended."""
        found = (self.steps[-1].finish if self.steps else None) or self.ended
        return FinishReason.CANCELLED if self.cancelled or found is None else found


def document(record: Record) -> dict[str, Any]:
    """The fields of `complete --json`. `steps` are those after the prefill."""
    summary = record.summary()
    return {
        "text": record.text,
        "finish_reason": record.finish().value,
        "tokens": list(summary.token_ids),
        "prompt_tokens": summary.prompt_tokens,
        "cached_tokens": summary.reused,
        "model": record.model,
        "method": record.method,
        "daemon": record.daemon,
        "steps": [_step(step) for step in record.steps if step.forwards],
        "tokens_per_step": round(summary.tokens_per_step, 4),
        "acceptance_by_depth": [round(share, 4) for share in summary.acceptance_by_depth],
        "time": {
            "load_ms": _ms(record.load_ms),
            "prefill_ms": _ms(summary.prefill_ms),
            "decode_ms": _ms(record.decode_ms),
        },
    }


def sentence(record: Record) -> str:
    """The figures in one line."""
    summary = record.summary()
    rate = _rate(record.steps, record.decode_ms)
    return (
        f"{record.model}, {record.method}: {_count(summary.tokens, 'token')} in {_count(summary.forwards, 'step')} "
        f"({summary.tokens_per_step:.2f} a step), {record.decode_ms:.0f} ms{rate}; "
        f"prompt {_count(summary.prompt_tokens, 'token')}, {summary.prefill_ms:.0f} ms; "
        f"load {record.load_ms / 1000:.1f} s; end: {record.finish().value}"
    )


def _step(step: StepResult) -> dict[str, Any]:
    return {
        "nodes": step.tree.drafted,
        "depth": step.tree.depth,
        "width": step.tree.width,
        "accepted": len(step.accepted),
        "origins": [origin.value for origin in step.origins],
        "draft_ms": _ms(step.draft_ms),
        "verify_ms": _ms(step.verify_ms),
    }


def _rate(steps: Sequence[StepResult], decode_ms: float) -> str:
    written = sum(len(step.tokens) for step in steps if step.forwards)
    return f" ({written / decode_ms * 1000:.1f} a second)" if written and decode_ms > 0 else ""


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _ms(value: float) -> float:
    return round(value, 3)
