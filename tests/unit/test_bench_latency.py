"""Traces of keystrokes, and the figures of a replay."""

import asyncio
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assistant.bench.latency import Key, Played, Replay, document, play
from assistant.bench.stats import percentile
from assistant.bench.together import MODES, Places, compare
from assistant.bench.traces import read_trace, typed, write_trace
from assistant.client import aio
from assistant.errors import DocumentError
from tests.support.daemons import scripted_daemon
from tests.support.rooms import CODE, tiny_host
from tests.support.scripted_room import Script


class TestTraces:
    @pytest.mark.parametrize("rapid", [False, True])
    @pytest.mark.parametrize("start", [0, 10, 30])
    def test_typing_ends_with_the_whole_text(self, start: int, rapid: bool, tmp_path: Path) -> None:  # noqa: FBT001
        path = tmp_path / "trace.jsonl"
        write_trace(list(typed("a.py", CODE, start, 40, rapid=rapid)), path)
        moments = read_trace(path)
        stop = CODE.index("\n", start + 40)
        assert moments[0].text == CODE[:start] + CODE[stop:]
        assert moments[-1].text == CODE
        assert moments[-1].stroke.cursor == stop
        times = [moment.stroke.ms for moment in moments]
        assert times == sorted(times)
        for before, after in pairwise(moments):
            new = after.text[before.stroke.cursor : after.stroke.cursor]
            assert len(new) == 1 or not new.strip(), "a key is a character, or a line feed with its indentation"

    @pytest.mark.parametrize(
        ("line", "says"),
        [
            ("{", "no keystroke"),
            ('{"ms": 1, "path": "a", "cursor": 0, "edits": [[0, 0, "x"]]}', "no line before"),
            ('{"ms": 1, "path": "a", "cursor": 9, "text": "x"}', "cursor at 9"),
            ('{"ms": 1, "path": "a", "cursor": 0, "text": "x", "edits": [[0, 5, ""]]}', "0 to 5"),
            ("", "no keystrokes"),
        ],
    )
    def test_a_line_that_is_none_is_named(self, line: str, says: str, tmp_path: Path) -> None:
        path = tmp_path / "trace.jsonl"
        path.write_text(line + "\n")
        with pytest.raises(DocumentError, match=says):
            read_trace(path)

    def test_the_sample_is_one(self) -> None:
        moments = read_trace(Path("docs/examples/typing.jsonl"))
        assert len(moments) > 100


@given(st.lists(st.integers(0, 99), min_size=1, max_size=20))
def test_percentiles_lie_between_their_neighbours(values: list[int]) -> None:
    ordered = sorted(values)
    assert percentile(values, 0) == ordered[0]
    assert percentile(values, 100) == ordered[-1]
    assert ordered[(len(values) - 1) // 2] <= percentile(values, 50) <= ordered[len(values) // 2]


def test_figures_are_of_the_keys_that_were_answered(tmp_path: Path) -> None:
    path = tmp_path / "trace.jsonl"
    write_trace(list(typed("a.py", CODE, 30, 4)), path)
    keys = [
        Key(0.0, 0.0, 100.0, 200.0, 190.0, "stop", "model", "x", (300, 0, 0)),
        Key(0.0, finish="superseded", prompt=(301, 290, 280)),
        Key(0.0, 0.0, 2.0, 3.0, 1.5, "stop", "typed", "y"),
        Key(0.0, finish="failed", failure="busy"),
        Key(0.0, 0.0, 50.0, 80.0, 70.0, "stop", "model", "z", (302, 298, 297)),
    ]
    played = Played(keys, superseded_steps=1, again=Key(0.0, text="z"))
    figures = document(played, read_trace(path), Replay())
    assert (figures["answered_by_model"], figures["answered_by_typing"], figures["superseded"]) == (2, 1, 1)
    assert figures["last_is_right"]
    assert figures["full_text_ms"] == {"count": 2, "p50": 140.0, "p95": 194.0, "most": 200.0}
    assert figures["typed_answer_ms"]["p50"] == 1.5
    assert figures["prefilled_target"]["most"] == 11.0
    assert figures["prefilled_draft"]["most"] == 21.0
    assert figures["failed"] == 1


def test_documents_at_once_are_measured_in_every_mode() -> None:
    places = Places([(f"{cursor}.py", CODE, cursor) for cursor in (29, 33, 60)], 6)
    rows = compare(tiny_host(), places, [1, 3], 1, lambda done, of: None)  # noqa: ARG005
    assert [(row["documents"], row["speculation"]) for row in rows] == [(n, mode) for n in (1, 3) for mode in MODES]
    assert all(row["tokens_per_second"] > 0 for row in rows)
    assert all(row["tokens_per_step"] == 1.0 for row in rows if row["speculation"] == "off")


def test_a_replay_asks_for_the_text_of_every_key_in_one_request(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "trace.jsonl"
    write_trace(list(typed("a.py", CODE, 30, 6, rapid=True)), path)
    moments = read_trace(path)
    with scripted_daemon(Script(steps=2, delay=0.002)) as daemon:
        monkeypatch.setattr(aio, "default_endpoint", lambda: daemon.endpoint)
        played = asyncio.run(play(moments, Replay(speed=100.0)))
        asked = [(text.text, text.cursor) for text in daemon.room.texts[1:-1]]
    assert asked == [(moment.text, moment.stroke.cursor) for moment in moments]
    assert len(played.keys) == len(moments)
    assert document(played, moments, Replay())["last_is_right"]
