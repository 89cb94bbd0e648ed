"""The end of a completion: the same token and the same character however tokens arrive."""

import codecs
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assistant.engine.emit import Emission, Emitter
from assistant.engine.types import FinishReason, GenerateOptions, Origin
from tests.support.fakes import FakeTokenizer

BYTES = FakeTokenizer((b"", b"a", b"b", b"ab", b"ba", b"\xc3", b"\xa9", b"\xc3\xa9b", b"a\xe2\x82", b"\xac"))
STOP_ID = 0


def emit(tokens: Sequence[int], sizes: Sequence[int], options: GenerateOptions, forced: bytes = b"") -> list[Emission]:
    """Hand tokens over in steps of these sizes, until the completion ends."""
    emitter = Emitter(options, BYTES, forced)
    emissions: list[Emission] = []
    start = 0
    for size in [*sizes, *[1] * len(tokens)]:
        step = tokens[start : start + size]
        start += size
        if step and not (emissions and emissions[-1].finish):
            emissions.append(emitter.take(step, [Origin.HEAD] * len(step)))
    if not (emissions and emissions[-1].finish):
        emissions.append(Emission((), (), emitter.flush(), None))
    return emissions


def joined(emissions: Sequence[Emission]) -> tuple[tuple[int, ...], str, FinishReason | None]:
    tokens = tuple(token for emission in emissions for token in emission.tokens)
    return tokens, "".join(emission.text for emission in emissions), emissions[-1].finish


TOKENS = st.lists(st.integers(0, 9), max_size=14)


@given(
    tokens=TOKENS,
    sizes=st.lists(st.integers(1, 5), max_size=8),
    stops=st.lists(st.text("abé€", min_size=1, max_size=4), max_size=3),
    limit=st.integers(1, 15),
    stop_ids=st.sampled_from([frozenset[int](), frozenset({STOP_ID}), frozenset({STOP_ID, 4})]),
    forced=st.sampled_from([b"", b"a", b"\xc3\xa9", b"ab\xe2"]),
)
def test_steps_do_not_change_what_is_written(
    tokens: list[int], sizes: list[int], stops: list[str], limit: int, stop_ids: frozenset[int], forced: bytes
) -> None:
    options = GenerateOptions(max_tokens=limit, stop_ids=stop_ids, stop_strings=tuple(stops))
    at_once = emit(tokens, sizes, options, forced)
    one_by_one = emit(tokens, [], options, forced)
    assert joined(at_once) == joined(one_by_one)
    for emission in at_once:
        assert len(emission.tokens) == len(emission.origins)


@given(tokens=TOKENS, stops=st.lists(st.text("abé€", min_size=1, max_size=3), max_size=3), limit=st.integers(1, 15))
def test_the_text_is_the_tokens_text_up_to_the_first_stop(tokens: list[int], stops: list[str], limit: int) -> None:
    options = GenerateOptions(max_tokens=limit, stop_ids=frozenset({STOP_ID}), stop_strings=tuple(stops))
    kept, text, finish = joined(emit(tokens, [3, 2], options))
    wanted = tokens[: tokens.index(STOP_ID)] if STOP_ID in tokens else tokens
    # What is left of a character at the very end is no text.
    whole = codecs.getincrementaldecoder("utf-8")("replace").decode(b"".join(map(BYTES.token_bytes, kept)))
    assert list(kept) == wanted[: len(kept)]
    assert not any(stop in text for stop in stops)
    assert whole.startswith(text)
    if finish is FinishReason.LENGTH:
        assert len(kept) == limit
        assert text == whole
    elif finish is FinishReason.STOP and text != whole:
        assert any(whole[len(text) :].startswith(stop) for stop in stops)
    elif finish is None:
        assert list(kept) == wanted == tokens
        assert text == whole


def test_text_that_may_begin_a_stop_string_is_held_back_until_it_is_clear() -> None:
    emitter = Emitter(GenerateOptions(stop_strings=("abb",)), BYTES)
    texts = [emitter.take([token], [Origin.TARGET]).text for token in (1, 2, 1, 2, 2)]
    assert texts == ["", "", "ab", "", ""]
    assert emitter.flush() == ""


def test_a_character_split_over_tokens_comes_whole() -> None:
    emitter = Emitter(GenerateOptions(), BYTES)
    assert [emitter.take([token], [Origin.TARGET]).text for token in (8, 9, 5, 6)] == ["a", "€", "", "é"]


def test_a_character_that_the_limit_cuts_is_dropped() -> None:
    assert emit([1, 8], [2], GenerateOptions(max_tokens=2))[-1].text == "aa"


def test_a_stop_token_is_not_part_of_the_completion_and_frees_what_was_held_back() -> None:
    emitter = Emitter(GenerateOptions(stop_ids=frozenset({STOP_ID}), stop_strings=("abb",)), BYTES)
    emission = emitter.take([3, STOP_ID, 1], [Origin.HEAD] * 3)
    assert emission == Emission((3,), (Origin.HEAD,), "ab", FinishReason.STOP)
    assert emitter.written == 1


def test_the_limit_holds_inside_an_accepted_path() -> None:
    emission = Emitter(GenerateOptions(max_tokens=2), BYTES).take([1, 2, 1, 2], [Origin.HEAD] * 4)
    assert (emission.tokens, emission.text, emission.finish) == ((1, 2), "ab", FinishReason.LENGTH)


def test_a_stop_token_right_after_the_limit_does_not_change_the_reason() -> None:
    emission = Emitter(GenerateOptions(max_tokens=2, stop_ids=frozenset({STOP_ID})), BYTES).take(
        [1, 2, STOP_ID], [Origin.HEAD] * 3
    )
    assert emission.finish is FinishReason.LENGTH


def test_forced_bytes_are_written_as_tokens_and_not_as_text() -> None:
    emitter = Emitter(GenerateOptions(stop_strings=("a",)), BYTES, forced=b"a\xc3\xa9")
    emissions = [emitter.take([token], [Origin.TARGET]) for token in (1, 7, 1)]
    assert [emission.text for emission in emissions] == ["", "b", ""]
    assert emissions[-1].finish is FinishReason.STOP, "the typed a is no stop string, the written one is"


def test_text_needs_a_tokenizer_and_tokens_do_not() -> None:
    emission = Emitter(GenerateOptions(max_tokens=1), None).take([5], [Origin.TARGET])
    assert (emission.tokens, emission.text) == ((5,), "")
    with pytest.raises(AssertionError, match="tokenizer"):
        Emitter(GenerateOptions(stop_strings=("a",)), None)
