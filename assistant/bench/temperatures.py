"""Whether choosing the tree pays at every temperature: adaptive trees beside plain decoding, drawn at each of several.

Drawn texts differ between the two, so rates are compared, of many tokens, and no tokens.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from assistant.bench import tables
from assistant.bench.contenders import Contender, EngineContender, Run
from assistant.bench.decode import compare
from assistant.bench.rows import method_row
from assistant.bench.specs import MethodSpec
from assistant.bench.tables import Column, number, with_spread
from assistant.engine.tree import TreeShape
from assistant.engine.types import Prompt, Sampling
from models.draft_head import DraftHead
from models.loading import LoadedModel

METHOD = "adaptive"
_KEPT = ("tasks", "tokens", "tokens_per_second", "tokens_per_step", "speedup", "speedup_by_task")
COLUMNS = (
    Column("temperature", number("temperature", ".2f")),
    Column("tokens", number("tokens", "d")),
    Column("plain, tokens a second", number("plain_per_second", ".1f")),
    Column("adaptive", number("tokens_per_second", ".1f")),
    Column("ratio, task by task", with_spread("speedup", "speedup_by_task")),
    tables.PER_STEP,
)


def contenders_at(
    temperatures: Sequence[float], loaded: LoadedModel, head: DraftHead | None, shape: TreeShape, seed: int
) -> list[Contender]:
    """A plain and an adaptive contender for each temperature."""
    return [
        EngineContender(
            MethodSpec(_label(name, temperature), name, shape),
            loaded.target,
            loaded.tokenizer,
            head=head,
            sampling=Sampling(temperature=temperature, seed=seed),
        )
        for temperature in temperatures
        for name in ("plain", METHOD)
    ]


def sweep(
    temperatures: Sequence[float],
    contenders: Sequence[Contender],
    prompts: Sequence[Prompt],
    max_tokens: int,
    *,
    repeat: int = 1,
    progress: Callable[[int, int], None] = lambda *_: None,
) -> list[dict[str, Any]]:
    """A row a temperature; all temperatures and both methods take turns task by task."""
    runs = compare(contenders, prompts, max_tokens, repeat=repeat, progress=progress)
    return [_row(temperature, runs) for temperature in temperatures]


def _row(temperature: float, runs: Mapping[str, list[list[Run]]]) -> dict[str, Any]:
    plain = runs[_label("plain", temperature)]
    ours = method_row(METHOD, runs[_label(METHOD, temperature)], plain, None)
    theirs = method_row("plain", plain, plain, None)
    kept = {key: ours[key] for key in (*_KEPT, "tokens_per_step_by_task")}
    return {"temperature": temperature, "plain_per_second": theirs["tokens_per_second"], **kept}


def _label(name: str, temperature: float) -> str:
    return f"{name} at {temperature:g}"
