"""Holes filled and judged: programs that pass, answers met, text written twice, and how long it took.

Every answer can be kept in a file as it comes, so that a long measurement may be cut and taken up again.
"""

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from assistant.bench.duplicates import repeats_what_follows
from assistant.bench.holes import Hole
from assistant.bench.infillers import Filled, Infiller
from assistant.bench.sandbox import Outcome, run_programs
from assistant.bench.similarity import similarity
from assistant.bench.stats import percentile, wilson
from assistant.errors import DocumentError
from assistant.files import write_atomic

Key = tuple[str, str]
"""method and policy"""
Answers = dict[Key, dict[str, Filled]]
"""what was put into each hole, by the hole's name"""


class Ledger:
    """Answers, kept in a file of JSON lines where one is given.

    Raises:
        DocumentError: the file holds something else.
    """

    def __init__(self, path: Path | None) -> None:
        self.answers: Answers = {}
        self._path = path
        if path is None or not path.exists():
            return
        try:
            for line in path.read_text(encoding="utf-8").splitlines():
                row = json.loads(line)
                filled = Filled(row["text"], row["ms"], row["reason"])
                self.answers.setdefault((row["method"], row["policy"]), {})[row["hole"]] = filled
        except (ValueError, KeyError, TypeError, OSError) as error:
            raise DocumentError(f"{path} holds no answers of bench infill: name another file for them.") from error

    def put(self, method: str, hole: Hole, filled: Mapping[str, Filled]) -> None:
        """Keep the answers of one run."""
        for policy, one in filled.items():
            self.answers.setdefault((method, policy), {})[hole.name] = one
        if self._path is not None:
            rows = [
                {"method": key[0], "policy": key[1], "hole": name, **asdict(one)}
                for key, answers in self.answers.items()
                for name, one in answers.items()
            ]
            write_atomic(self._path, "".join(json.dumps(row) + "\n" for row in rows).encode())

    def has(self, infiller: Infiller, hole: Hole) -> bool:
        """Whether every policy of an infiller has its answer."""
        return all(hole.name in self.answers.get((infiller.method, policy), {}) for policy in infiller.policies)


def fill_all(
    infillers: Sequence[Infiller],
    holes: Sequence[Hole],
    ledger: Ledger,
    seconds: float | None = None,
    progress: Callable[[int, int], None] = lambda *_: None,
) -> bool:
    """Every hole by every infiller in turn, those with answers left out; False where the time was up before the end."""
    started = time.monotonic()
    for number, hole in enumerate(holes):
        for infiller in infillers:
            if ledger.has(infiller, hole):
                continue
            if seconds is not None and time.monotonic() - started > seconds:
                return False
            ledger.put(infiller.method, hole, infiller.fill(hole))
        progress(number + 1, len(holes))
    return True


def rows_of(
    infillers: Sequence[Infiller], holes: Sequence[Hole], answers: Answers, *, by_group: bool = False
) -> list[dict[str, Any]]:
    """A row a method and policy, over the holes that all have filled; `by_group`: a language too, or a kind of hole."""
    keys = [(infiller.method, policy) for infiller in infillers for policy in infiller.policies]
    common = [hole for hole in holes if all(hole.name in answers.get(key, {}) for key in keys)]
    rows = []
    for group in _groups(common) if by_group else [{}]:
        members = [hole for hole in common if all(getattr(hole, name) == value for name, value in group.items())]
        for method, policy in keys:
            filled = [answers[method, policy][hole.name] for hole in members]
            rows.append({"method": method, "policy": policy, **group, **_figures(members, filled)})
    return rows


def _groups(holes: Sequence[Hole]) -> list[dict[str, str]]:
    languages = sorted({hole.language for hole in holes})
    kinds = sorted({hole.kind for hole in holes})
    return [*({"language": name} for name in languages), *({"kind": name} for name in kinds)]


def _figures(holes: Sequence[Hole], filled: Sequence[Filled]) -> dict[str, Any]:
    pairs = list(zip(holes, filled, strict=True))
    if not pairs:
        return {"tasks": 0}
    duplicates = [hole.name for hole, one in pairs if repeats_what_follows(hole.prefix, one.text, hole.suffix)]
    times = [one.ms for one in filled]
    reasons: dict[str, int] = {}
    for one in filled:
        reasons[one.reason] = reasons.get(one.reason, 0) + 1
    return {
        "tasks": len(pairs),
        **_passed(pairs),
        "exact_match": sum(one.text.strip() == hole.answer.strip() for hole, one in pairs) / len(pairs),
        "edit_similarity": sum(similarity(one.text.strip(), hole.answer.strip()) for hole, one in pairs) / len(pairs),
        "duplicates": len(duplicates),
        "nothing": sum(not one.text.strip() for one in filled),
        "p50_ms": percentile(times, 50),
        "p95_ms": percentile(times, 95),
        "reasons": dict(sorted(reasons.items())),
    }


def _passed(pairs: Sequence[tuple[Hole, Filled]]) -> dict[str, Any]:
    programs = [hole.program(one.text) for hole, one in pairs if hole.check is not None]
    if not programs:
        return {"pass_at_1": None, "pass_at_1_interval": None}
    passed = sum(outcome is Outcome.PASSED for outcome in run_programs(programs))
    return {"pass_at_1": passed / len(programs), "pass_at_1_interval": list(wilson(passed, len(programs)))}
