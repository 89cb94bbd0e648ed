"""How decoding grows with what is read: plain and adaptive, behind the same places with more and more before them."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from assistant.bench import tables
from assistant.bench.contenders import Contender, EngineContender, Run
from assistant.bench.decode import compare
from assistant.bench.rows import method_row
from assistant.bench.specs import MethodSpec
from assistant.bench.tables import Column, number, with_spread
from assistant.engine.tree import TreeShape
from assistant.engine.types import Prompt
from assistant.errors import UsageError
from models.draft_head import DraftHead
from models.loading import LoadedModel
from models.tokenizer import Tokenizer

METHOD = "adaptive"
_KEPT = ("tokens", "tokens_per_step", "tokens_per_step_by_task", "speedup", "speedup_by_task", "ms_per_step")
COLUMNS = (
    Column("tokens before", number("length", "d")),
    Column("plain, ms a token", number("plain_ms", ".1f")),
    Column("against the shortest", number("growth")),
    Column("adaptive, ms a step", number("ms_per_step", ".1f")),
    tables.PER_STEP,
    Column("ratio, place by place", with_spread("speedup", "speedup_by_task")),
    Column("identical", number("identical", "d")),
    Column("prompt, tokens a second", number("read_per_second", ".0f")),
)


def prompts_at(texts: Sequence[str], lengths: Sequence[int], places: int, tokenizer: Tokenizer) -> list[Prompt]:
    """Prompts of each length, which end at the same places of the texts, read one behind the other.

    Raises:
        UsageError: the texts are shorter than the longest prompt.
    """
    ids = tokenizer.encode("\n".join(texts))
    longest = max(lengths)
    if len(ids) <= longest + places:
        raise UsageError(
            f"the files have {len(ids)} tokens, and {longest} are to be read before each place: name more."
        )
    ends = [longest + (len(ids) - longest) * (place + 1) // (places + 1) for place in range(places)]
    return [Prompt(tuple(ids[end - length : end])) for length in lengths for end in ends]


def measure(
    loaded: LoadedModel,
    head: DraftHead | None,
    shape: TreeShape,
    prompts: Sequence[Prompt],
    max_tokens: int,
    progress: Callable[[int, int], None] = lambda *_: None,
) -> list[dict[str, Any]]:
    """A row a length of prompt; all take turns, and both methods at each."""
    contenders: list[Contender] = [
        EngineContender(MethodSpec(name, name, shape), loaded.target, loaded.tokenizer, head=head)
        for name in ("plain", METHOD)
    ]
    # Lengths alternate, so that a busy minute of the machine strikes more than one of them.
    lengths = sorted({len(prompt.ids) for prompt in prompts})
    groups = [[prompt for prompt in prompts if len(prompt.ids) == length] for length in lengths]
    turns = [prompt for place in zip(*groups, strict=True) for prompt in place]
    runs = compare(contenders, turns, max_tokens, progress=progress)
    rows = [_row(length, {name: runs[name][at :: len(lengths)] for name in runs}) for at, length in enumerate(lengths)]
    return [{**row, "growth": row["plain_ms"] / rows[0]["plain_ms"]} for row in rows]


def _row(length: int, runs: Mapping[str, Sequence[Sequence[Run]]]) -> dict[str, Any]:
    plain = runs["plain"]
    ours, theirs = method_row(METHOD, runs[METHOD], plain, None), method_row("plain", plain, plain, None)
    same = sum(a[0].tokens == b[0].tokens for a, b in zip(runs[METHOD], plain, strict=True))
    kept = {key: ours[key] for key in _KEPT}
    reading = {"read_per_second": length / theirs["prefill_ms"] * 1e3}
    return {
        "length": length,
        "places": len(plain),
        "plain_ms": theirs["ms_per_step"],
        "identical": same,
        **reading,
        **kept,
    }
