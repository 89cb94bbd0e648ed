"""Whether learning pays: one part of a repository is completed in and learned from, the other part is measured in.

Files are parted by a hash. In the files of the one part the daemon's own room completes where people who use an editor
would ask, with learning switched on, and the head that drafts goes on from what the room kept. At places of the other
part, of which neither saw a word, tokens a step are compared before and after. Verification is lossless, so the tokens
are the same and only their steps may differ, which is checked too.

Whatever is done is kept in a folder, and a measurement that was killed goes on from there.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from assistant import protocol
from assistant.bench.holes import Hole
from assistant.bench.learning_plan import Parts, Plan
from assistant.config import Settings
from assistant.config.declaration import Learning
from assistant.config.declaration import Window as WindowSettings
from assistant.daemon.anchor import Place, Reader, prompt_at
from assistant.daemon.engine_room import Text
from assistant.daemon.host import Choice, Engine, Host
from assistant.daemon.learned import segments
from assistant.daemon.scheduler import Scheduler
from assistant.engine.kv_cache import KVCache
from assistant.engine.types import Prompt
from assistant.errors import EagleAssistError, UsageError
from assistant.files import write_atomic
from models.loading import LoadedModel
from models.training.fitting import TRAINING
from models.training.loop import read_log
from models.training.options import TrainOptions
from models.training.pipeline import train_head
from models.training.products import quickest_precision
from models.training.recipe import Recipe, Say

_LOG, _COUNTED, _RUN = "learned", "places", "run"
_TOGETHER = 10
"""places between two times that what was learned is written"""
Count = Callable[[int, int], None]


def keep_log(engine: Engine, places: Sequence[Hole], plan: Plan, out: Path, progress: Count) -> Path:
    """Complete at places with learning switched on; returns the folder of what was kept.

    Raises:
        UsageError: nothing was written at any place.
    """
    kept, counted = out / _LOG, out / _COUNTED
    window = WindowSettings(prefix=plan.reads().prefix, suffix=plan.reads().suffix)
    settings = Settings(learning=Learning(enabled=True), window=window)
    host = Host(Choice(plan.model), lambda *_: engine)
    room = Scheduler(settings, host=host, learned=kept, threaded=False)
    begin = int(counted.read_text(encoding="utf-8")) if counted.exists() else 0
    for start in range(begin, len(places), _TOGETHER):
        batch = places[start : start + _TOGETHER]
        for hole in batch:
            _complete(room, hole, settings)
        room.unload()  # which writes what was learned
        while room.turn():
            pass
        write_atomic(counted, str(start + len(batch)).encode())
        progress(start + len(batch), len(places))
    if not segments(kept):
        raise UsageError("the model wrote nothing at any place, so there is nothing to learn from: raise --places.")
    return kept


def _complete(room: Scheduler, hole: Hole, settings: Settings) -> None:
    failures: list[str] = []

    def deliver(event: protocol.CompletionEvent) -> None:
        if isinstance(event, protocol.Failed):
            failures.append(event.message)

    text = Text(hole.path, hole.language, hole.prefix + hole.suffix, len(hole.prefix), "bench", settings=settings)
    room.submit(protocol.Complete(path=hole.path, typed=False), text, deliver)
    while room.turn():
        pass
    if failures:
        raise EagleAssistError(failures[0])


def go_on(loaded: LoadedModel, log: Path, plan: Plan, out: Path, say: Say) -> Path:
    """Train the plan's head on what was kept, as `train --continue --from-log` does; returns the new head's folder."""
    precision = quickest_precision(loaded.target.spec.device)
    options = TrainOptions(steps=plan.steps, learning_rate=plan.learning_rate, precision=precision)
    recipe = Recipe(data=(), out=out / _RUN, log=log, start=plan.head, training=options, target=plan.model)
    return train_head(loaded.target, loaded.tokenizer, recipe, lambda: KVCache.of(loaded.target.spec), say)


def prompts_at(places: Sequence[Hole], engine: Engine, plan: Plan) -> dict[str, Prompt]:
    """The daemon's prompts for places that are new to it, by their names."""
    reader = Reader(engine.tokenizer, engine.fim, plan.reads())
    return {
        hole.name: prompt_at(Place(hole.prefix + hole.suffix, len(hole.prefix)), reader, None)[0] for hole in places
    }


def document(plan: Plan, parts: Parts, log: Path, out: Path) -> dict[str, Any]:
    """What was learned from and how, as a JSON object."""
    kept = [json.loads(line) for path in segments(log) for line in path.read_text("utf-8").splitlines()]
    read = sum(row["prompt_tokens"] for row in kept)
    judged = read_log(out / _RUN / TRAINING)
    best = max(judged, key=lambda row: (row["score"], row["step"]))
    return {
        **asdict(plan),
        "files": dict(parts.files),
        "asked": len(parts.learned),
        "learned": {
            "completions": len(kept),
            "read": read,
            "written": sum(len(row["ids"]) for row in kept) - read,
        },
        "training": {
            "tokens": judged[-1]["tokens"],
            "seconds": judged[-1]["seconds"],
            "kept_step": best["step"],
            "score_before": judged[0]["score"],
            "score": best["score"],
        },
    }
