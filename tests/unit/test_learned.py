"""Learning: off unless asked for, ids alone, bounded, whole files."""

import json
from pathlib import Path
from random import Random
from typing import Any

import pytest

from assistant import paths
from assistant.config import Settings
from assistant.config.declaration import Learning
from assistant.daemon.learned import LearnedLog, segments
from tests.support.rooms import CODE, Room

HOLE = CODE.index("    return self")


def rows(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for path in segments(folder) for line in path.read_text().splitlines()]


def test_what_is_kept_is_what_was_verified(tmp_path: Path) -> None:
    folder = tmp_path / "learned"
    log = LearnedLog(folder, "m", "int8", 1 << 20)
    log.add([1, 2, 150_000], [4], "python")
    log.add([5], [6, 7])
    assert rows(folder) == []
    log.flush()
    log.flush()
    shared = {"model": "m", "precision": "int8"}
    assert rows(folder) == [
        {**shared, "prompt_tokens": 3, "ids": [1, 2, 150_000, 4], "language": "python"},
        {**shared, "prompt_tokens": 1, "ids": [5, 6, 7]},
    ]
    assert folder.stat().st_mode & 0o777 == 0o700
    assert len(list(folder.iterdir())) == 1


def test_the_oldest_go_when_it_grows(tmp_path: Path) -> None:
    log = LearnedLog(tmp_path, "m", "int8", 20_000, segment_bytes=2_000)
    random = Random(0)
    for number in range(400):
        log.add([random.randrange(9)] * 30, [number])
        assert sum(path.stat().st_size for path in segments(tmp_path)) <= 20_000
    log.flush()
    kept = [row["ids"][-1] for row in rows(tmp_path)]
    assert kept == list(range(400 - len(kept), 400))
    assert len(kept) > 50


@pytest.mark.parametrize("enabled", [True, False])
def test_the_room_keeps_completions_only_when_asked_to(
    enabled: bool,  # noqa: FBT001
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("EAGLE_ASSIST_HOME", str(tmp_path))
    room = Room(settings=Settings(learning=Learning(enabled=enabled)))
    answer = room.ask(CODE, HOLE).done_after(room)
    cancelled = room.ask(CODE, HOLE + 2, tokens=40)
    room.settle(lambda: len(cancelled.steps) == 1)
    room.scheduler.cancel(cancelled.id)
    room.scheduler.unload()
    room.settle()
    assert paths.learned_dir().exists() == enabled
    kept = [tuple(row["ids"][row["prompt_tokens"] :]) for row in rows(paths.learned_dir())]
    assert kept == ([answer.tokens] if enabled else [])
    assert all(b"return" not in path.read_bytes() for path in segments(paths.learned_dir()))
