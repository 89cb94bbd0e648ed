"""Advice from figures, without a model: which method, which tree, and when drafts are not worth their rows."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from assistant.bench.advice import Advice, Findings, advise, choose, speeds_of
from assistant.bench.reasons import missing, reasons, where
from assistant.bench.specs import MethodSpec, parse_methods
from assistant.bench.usage import Trace
from assistant.config import Settings
from assistant.config.declaration import Completion, Daemon, Model, Tree
from assistant.config.overrides import Value
from assistant.daemon.budget import under_load
from assistant.engine.methods import bounds_of
from assistant.engine.tree import TreeShape
from assistant.engine.types import Prompt
from assistant.errors import UsageError
from tests.support.prices import COSTS

TRACE = Trace("files", (Prompt((1,)),) * 4, 3)


def spec(text: str) -> MethodSpec:
    return parse_methods(text, TreeShape(), bounds_of)[0]


def findings(speeds: Mapping[str, float], **changes: Any) -> Findings:
    rows = {
        label: {"method": label, "tokens_per_step": 2.0, "ms_per_step": 12.0, "nodes_per_step": 5.4, "speedup": speed}
        for label, speed in speeds.items()
    }
    usual = Findings(
        speeds={spec(label): speed for label, speed in speeds.items()},
        rows=rows,
        drawn=1.2,
        temperature=0.8,
        costs=COSTS,
        settings=Settings(),
        given={},
        head="a-head",
        calibrated=True,
    )
    return replace(usual, **changes)


def advised(speeds: Mapping[str, float], **changes: Any) -> Advice:
    return advise(findings(speeds, **changes))


def sentences(speeds: Mapping[str, float], **changes: Any) -> str:
    found = findings(speeds, **changes)
    return " ".join(reasons(advise(found), found, TRACE))


@pytest.mark.parametrize(
    ("speeds", "method"),
    [
        ({"plain": 1.0, "ngram": 1.2, "adaptive": 1.6}, "adaptive"),
        ({"plain": 1.0, "eagle2@8": 1.64, "adaptive": 1.6}, "adaptive"),
        ({"plain": 1.0, "eagle2@8": 1.7, "adaptive": 1.6}, "eagle2"),
        ({"plain": 1.0, "ngram": 0.9, "adaptive": 0.98}, "adaptive"),
        ({"plain": 1.0, "ngram": 0.9, "adaptive": 0.96}, "plain"),
        ({"plain": 1.0, "ngram": 1.0}, "plain"),
        ({"plain": 1.0}, "plain"),
    ],
)
def test_the_fastest_is_chosen_and_what_adapts_where_it_is_nearly_so(speeds: Mapping[str, float], method: str) -> None:
    assert choose({spec(label): speed for label, speed in speeds.items()}).name == method


def test_a_tree_that_no_key_describes_is_not_chosen() -> None:
    speeds = {"plain": 1.0, "eagle2:rerank=off": 3.0, "eagle2@16": 2.0}
    assert choose({spec(label): speed for label, speed in speeds.items()}).label == "eagle2@16"


def test_auto_sets_no_tree_and_lifts_bounds_that_hold() -> None:
    speeds = {"plain": 1.0, "adaptive": 1.6}
    assert advised(speeds).values == {"model.method": "auto"}
    bound = Settings(tree=Tree(nodes=4, depth=2))
    assert advised(speeds, settings=bound).values == {"model.method": "auto", "tree.nodes": 0, "tree.depth": 0}


def test_a_fixed_method_comes_with_its_tree() -> None:
    speeds = {"plain": 1.0, "adaptive": 1.6, "eagle2:nodes=16,depth=10": 2.0}
    expected = {"model.method": "eagle2", "tree.nodes": 16, "tree.depth": 10}
    assert advised(speeds).values == expected
    assert advised(speeds, settings=Settings(tree=Tree(nodes=16, depth=10, width=2))).values == {
        "model.method": "eagle2",
        "tree.nodes": 16,
        "tree.width": 0,
    }


def test_plain_needs_no_tree_and_no_word_about_load() -> None:
    found = advised({"plain": 1.0, "ngram": 0.5})
    assert found.values == {"model.method": "plain"}
    assert (found.load.nodes, found.load.shrinks_from, found.load.binds_from) == (0, None, None)
    assert "Load:" not in sentences({"plain": 1.0, "ngram": 0.5})


@pytest.mark.parametrize(
    ("key", "value", "own"),
    [
        ("model.precision", "float32", True),
        ("model.name", "smollm2-135m", False),
        ("model.name", "/a/model.gguf", True),
        ("model.head", "other", False),
    ],
)
def test_what_a_project_may_not_set_is_said_in_words(key: str, value: Value, own: bool) -> None:  # noqa: FBT001
    speeds = {"plain": 1.0, "adaptive": 1.6}
    found = advised(speeds, given={key: value})
    assert found.own == ({key: value} if own else {})
    assert found.values == {"model.method": "auto"} | ({} if own else {key: value})
    assert ("may not set" in sentences(speeds, given={key: value})) == own


def test_a_head_is_named_only_for_a_method_that_asks_it() -> None:
    given = {"model.head": "other", "model.draft": "small"}
    assert advised({"plain": 1.0, "ngram": 2.0}, given=given).values.keys() == {"model.method", "tree.nodes"}
    assert advised({"plain": 1.0, "sps": 2.0}, given=given).values["model.draft"] == "small"


def test_a_draft_is_worth_its_row_where_it_wins_more_than_the_row_costs() -> None:
    """With these prices: 10 ms a plain step, 2/7 ms for each row up to the eighth, 0.5 ms for a level of the head."""
    found = advised({"plain": 1.0, "adaptive": 1.6}).fallback
    assert found.first_draft == pytest.approx(2 / 7 / 10)
    assert found.draft_ms == pytest.approx(10 + 2 / 7)
    assert found.head_level == pytest.approx(0.05)
    usual = 10 + 5 * 2 / 7
    assert found.one_more == pytest.approx(2.0 / usual * 2 / 7)
    assert advised({"plain": 1.0, "ngram": 1.6}, head=None).fallback.head_level is None


def test_trees_shrink_from_the_first_request_that_waits_and_bind_when_they_are_smaller_than_usual() -> None:
    speeds = {"plain": 1.0, "adaptive": 1.6}
    load = advised(speeds).load
    assert (load.nodes, load.shrinks_from) == (32, 1)
    assert load.shrinks_to == under_load(bounds_of("adaptive"), 1).nodes < 32
    assert load.binds_from is not None
    around = [under_load(bounds_of("adaptive"), load.binds_from - less).nodes for less in (1, 0)]
    assert around[0] >= 5.4 > around[1]
    never = advised(speeds, settings=Settings(daemon=Daemon(adaptive_load=False))).load
    assert (never.shrinks_from, never.binds_from, never.shrinks_to) == (None, None, 32)


def test_reasons_say_what_was_measured() -> None:
    near = sentences({"plain": 1.0, "eagle2@8": 1.64, "adaptive": 1.6})
    assert "Method auto: 1.60 times" in near
    assert "eagle2@8 reached 1.64" in near
    assert "the head a-head, and copied" in near
    assert "at 0.8 drawing tokens costs 25 % of the speed: auto reached 1.20" in near
    fixed = sentences({"plain": 1.0, "eagle2@8": 1.9, "adaptive": 1.6})
    assert "Method eagle2: 1.90 times" in fixed
    assert "tree.threshold = 0.03" in fixed
    slow = sentences({"plain": 1.0, "ngram": 0.8, "adaptive": 0.9}, drawn=None)
    assert "Method plain: nothing was faster; the next, adaptive reached 0.90" in slow
    assert "not measured" in slow


def test_a_configured_temperature_stays() -> None:
    warm = Settings(completion=Completion(temperature=0.4))
    speeds = {"plain": 1.0, "adaptive": 1.6}
    text = sentences(speeds, settings=warm, temperature=0.4, drawn=1.7)
    assert "Temperature: 0.4, as configured; at 0.4 drawing tokens costs nothing" in text
    assert not any("temperature" in key for key in advised(speeds, settings=warm).values)


def test_what_is_missing_comes_with_its_command() -> None:
    speeds = {"plain": 1.0, "adaptive": 1.6}
    assert not list(missing(findings(speeds)))
    (sentence,) = missing(findings(speeds, head=None, settings=Settings(model=Model(name="m"))))
    assert "eagle-assist train --model m " in sentence
    (sentence,) = missing(findings(speeds, calibrated=False, settings=Settings(model=Model(name="m", head="h"))))
    assert "eagle-assist calibrate --model m --head h " in sentence


def test_nothing_written_is_nothing_compared() -> None:
    rows: list[dict[str, Any]] = [{"speedup": None}, {"speedup": None}]
    with pytest.raises(UsageError, match="--places"):
        speeds_of([spec("plain"), spec("ngram")], rows)
    assert speeds_of([spec("plain"), spec("ngram")], [{"speedup": 1.0}, rows[0]]) == {spec("plain"): 1.0}


def test_where_it_was_measured() -> None:
    assert where(TRACE, "shop") == "4 places in 3 files of shop"
    assert "kept for learning" in where(Trace("learned", TRACE.prompts), "shop")
