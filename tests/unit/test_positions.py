"""Places labelled boilerplate or logic, and what is said of the trees there."""

import pytest

from assistant.bench import positions
from assistant.bench.positions import choose, compare, positions_of, shape_of
from assistant.engine.adaptive import AdaptiveDrafter
from assistant.engine.policy import Prices
from assistant.engine.tree import TreeShape
from tests.support.agreeing import agreeing_head, agreeing_target
from tests.support.prices import COSTS
from tests.support.tiny_tokenizer import tiny_tokenizer

TEXT = """import numpy
import pathlib
class Thing:
    def __init__(self, name):
        self.first_name = name
class Other:
    def __init__(self, name):
        self.other_name = name
        self.first_name = name
        self.total_cost = name * 3 + len(name)
        if self.total_cost > 100 and name:
            return compute(self.total_cost)
"""


def test_a_shape_forgets_names_numbers_and_quoted_text_but_no_keywords() -> None:
    assert shape_of("  if first == 12:") == shape_of("if b == 7:")
    assert shape_of("call('a b', x)") == shape_of('run("", value)')
    assert shape_of("if a:") != shape_of("while a:")


def test_labels_follow_the_rule() -> None:
    found = [(place.label, place.before.rsplit("\n", 1)[-1].strip()) for place in positions_of(TEXT)]
    assert found == [
        ("boilerplate", "def __in"),
        ("boilerplate", "self.fi"),
        ("logic", "self.total_c"),
        ("logic", "if self.tot"),
        ("logic", "return com"),
    ]


def test_places_are_drawn_evenly_and_the_same_each_time() -> None:
    chosen = choose([TEXT, TEXT], 4)
    assert [place.label for place in chosen] == ["boilerplate"] * 4 + ["logic"] * 4
    assert chosen == choose([TEXT, TEXT], 4)
    assert len(choose([TEXT], 100)) == 5


def test_a_difference_is_told_from_chance() -> None:
    apart = [
        {"label": label, "depth": depth, "width": 1, "nodes": 1, "entropy": 0.0}
        for label, base in (("boilerplate", 6), ("logic", 2))
        for depth in (base, base + 1, base + 2) * 5
    ]
    depth, width, *_ = compare(apart)
    assert (depth["boilerplate"], depth["logic"]) == (7.0, 3.0)
    assert depth["chance"] < 0.001
    assert width["chance"] == 1.0


def test_the_first_steps_tree_is_looked_at() -> None:
    target = agreeing_target("int8", model_type="qwen2", vocab_size=tiny_tokenizer().vocab_size)
    head = agreeing_head(target)
    shape = TreeShape(nodes=12, depth=5)
    rows = positions.look(
        target, tiny_tokenizer(), lambda: AdaptiveDrafter(head, Prices(COSTS)), choose([TEXT], 2), shape, window=32
    )
    assert [row["label"] for row in rows] == ["boilerplate"] * 2 + ["logic"] * 2
    assert all(0 <= row["depth"] <= 5 and 0 <= row["nodes"] <= 12 for row in rows)
    assert any(row["nodes"] for row in rows)
    assert all(row["entropy"] == pytest.approx(row["entropy"]) and row["entropy"] > 0.0 for row in rows)
