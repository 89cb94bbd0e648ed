"""Drafts from the text itself, against a search that simply looks everywhere."""

from collections.abc import Sequence
from random import Random

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from assistant.engine.lookup import Lookup, Passages
from assistant.engine.ngram import NgramDrafter
from assistant.engine.tree import TreeShape
from assistant.engine.types import Prompt, Sampling

TEXT = st.lists(st.integers(0, 2), max_size=14)
LONGEST = 6


def search(texts: Sequence[Sequence[int]], tail: Sequence[int], count: int) -> tuple[list[int], int]:
    """The longest, then most recent match; the last text first, and it goes on with itself."""
    for size in range(min(LONGEST, len(tail)), 0, -1):
        wanted = list(tail[len(tail) - size :])
        for growing in (True, False):
            for text in reversed(texts[-1:] if growing else texts[:-1]):
                for end in range(len(text) - 1, size - 1, -1):
                    if list(text[end - size : end]) != wanted:
                        continue
                    going_on = [*text, tail[-1]] if growing else list(text)
                    for _ in range(count if growing else 0):
                        going_on.append(going_on[end + len(going_on) - len(text) - 1])
                    return going_on[end : end + count], size
    return [], 0


@given(suffix=TEXT, prefix=TEXT, written=TEXT, root=st.integers(0, 2), count=st.integers(0, 9))
def test_the_longest_then_most_recent_match_is_found(
    suffix: list[int], prefix: list[int], written: list[int], root: int, count: int
) -> None:
    lookup = Lookup(suffix, prefix)
    lookup.extend(written)
    text = [*prefix, *written]
    tail = [*text[-LONGEST:], root]
    assert lookup.find(tail, count) == search([suffix, text], tail, count)


@pytest.mark.parametrize(
    ("text", "root", "found"),
    [
        ([1, 2, 1, 2], 1, [2, 1, 2, 1, 2]),
        ([1, 1, 1], 1, [1, 1, 1, 1, 1]),
        ([1, 2, 3, 1, 2], 3, [1, 2, 3, 1, 2]),
        ([5, 1, 2, 3, 1], 2, [3, 1, 2, 3, 1]),
        ([1, 2, 3], 4, []),
    ],
)
def test_a_repetition_is_carried_on_in_step(text: list[int], root: int, found: list[int]) -> None:
    assert Lookup([], text).find([*text[-LONGEST:], root], 5)[0] == found


def test_text_after_the_cursor_is_found_too_but_ends_where_it_ends() -> None:
    assert Lookup([7, 8, 9], [1, 2]).find([1, 2, 8], 5) == ([9], 1)


@given(
    ids=st.lists(st.integers(0, 2), min_size=1, max_size=12),
    prefix=TEXT,
    suffix=TEXT,
    written=TEXT,
    sizes=st.lists(st.integers(1, 5), max_size=9),
    data=st.data(),
)
def test_what_was_reused_and_how_rows_arrive_does_not_matter(
    ids: list[int], prefix: list[int], suffix: list[int], written: list[int], sizes: list[int], data: st.DataObject
) -> None:
    prompt = Prompt(tuple(ids), tuple(prefix), tuple(suffix))
    reused = data.draw(st.integers(0, len(ids) - 1))
    drafter = NgramDrafter()
    drafter.begin(Prompt((2, 2, 2)), 0)
    drafter.observe((2, 2), torch.zeros(2, 4))
    drafter.begin(prompt, reused)
    rows, start = [*ids[reused:], *written], 0
    for size in [*sizes, len(rows)]:
        drafter.observe(rows[start : start + size], torch.zeros(len(rows[start : start + size]), 4))
        start += size
    text = [*(prefix or ids), *written]
    tokens, size = search([suffix, text], [*text[-LONGEST:], 1], 8)
    drafted, log_values = drafter.propose(1, 8)
    assert drafted == tokens
    assert all(0 >= a > b for a, b in zip([0.0, *log_values], log_values, strict=False))
    tree = drafter.draft(1, TreeShape(nodes=5, depth=3), Sampling(), Random(0))
    assert tree.tokens == (1, *tokens[:3])
    assert size <= LONGEST


def test_longer_matches_are_trusted_more() -> None:
    short = Lookup([], [1, 2, 9]).find([0, 0, 2], 1)[1]
    long = Lookup([], [1, 2, 9]).find([0, 1, 2], 1)[1]
    assert (short, long) == (1, 2)


def test_a_longer_match_in_another_text_wins_and_this_one_wins_a_tie() -> None:
    drafter = NgramDrafter()
    other = Passages([3, 5, 6, 7, 8, 50])
    drafter.begin(Prompt((1, 6, 7, 90, 3, 5, 6), library=(other,)), 0)
    assert drafter.propose(7, 3)[0] == [8, 50]
    drafter.begin(Prompt((3, 5, 6, 7, 90, 3, 5, 6), library=(other,)), 0)
    assert drafter.propose(7, 2)[0] == [90, 3]


def test_other_texts_are_not_believed_for_a_single_token_and_end_where_they_end() -> None:
    assert Passages([5, 6, 7]).find([1, 6], 4) == ([], 0)
    assert Passages([5, 6, 7]).find([5, 6], 4) == ([7], 2)


def test_what_retrieval_is_worth_is_seen_in_the_text_itself() -> None:
    """A text that repeats itself, and one whose repetitions never go on alike."""
    drafter = NgramDrafter()
    drafter.begin(Prompt(tuple([1, 2, 3, 4] * 20)), 0)
    again = drafter.propose(1, 1)[1][0]
    drafter.begin(Prompt(tuple(token for i in range(40) for token in (1, 100 + i))), 0)
    never = drafter.propose(1, 1)[1][0]
    assert again > -0.1
    assert never < -1.0
