"""What holds of the text policy for every document and whatever is written."""

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from assistant.daemon.text import Policy, Settings, Verdict
from assistant.daemon.text.languages import canonical, syntax_of
from assistant.daemon.text.repeats import bare, telling
from assistant.daemon.text.scan import scan

LANGUAGES = ("python", "javascript", "go", "rust", "java", "cpp", "shellscript", "markdown", "sql", "no such language")
_PIECES = st.sampled_from(
    [
        *("a", "foo", "x1", "return", "if x", "for i in y", "def f()", "else", "done", "fi", "do", "then"),
        *(" ", "  ", "    ", "\t", "\n", "\n\n", ":\n", ";\n", "{\n", "}\n", "\\\n"),
        *("(", ")", "[", "]", "{", "}", '"', "'", '"""', "`", "#", "//", "/*", "*/", "\\", "<|", "|>"),
        *(" = ", " + ", ", ", ".", "é", "🙂", "<|fim_middle|>", "@", "return a\n", "    b()\n", "items.append(x)\n"),
    ]
)
TEXTS = st.lists(_PIECES, max_size=24).map("".join)
_LINES = st.sampled_from(
    ["foo(a, [b], {c: d})\n", "x = (y + z) * w[0]\n", "f() {\n  g();\n}\n", "call(\n  a,\n  b\n)\n", "a\n", "\n"]
)
DOCUMENTS = st.lists(_LINES, min_size=1, max_size=6).map("".join)
"""with every bracket closed"""
CHUNKS = st.lists(st.integers(1, 9), min_size=1, max_size=40)


def once(text: str, cursor: int, language: str, written: str, *, stopped: bool) -> Verdict:
    return Policy.begin(text, cursor, language, Settings()).take(written, final=True, stopped=stopped)


def chunks_of(text: str, sizes: list[int]) -> list[str]:
    found = []
    at = index = 0
    while at < len(text):
        size = sizes[index % len(sizes)]
        found.append(text[at : at + size])
        at, index = at + size, index + 1
    return found


@settings(max_examples=150)
@given(
    before=TEXTS,
    after=TEXTS,
    written=TEXTS,
    language=st.sampled_from(LANGUAGES),
    sizes=CHUNKS,
    stopped=st.booleans(),
)
def test_streaming_equals_one_shot_and_shown_text_stays(
    *, before: str, after: str, written: str, language: str, sizes: list[int], stopped: bool
) -> None:
    expected = once(before + after, len(before), language, written, stopped=stopped)
    growing = Policy.begin(before + after, len(before), language, Settings())
    shown = ""
    for chunk in chunks_of(written, sizes):
        verdict = growing.take(chunk, final=False)
        assert verdict.text.startswith(shown)
        shown = verdict.text
    assert growing.take("", final=True, stopped=stopped) == expected
    assert expected.finished
    assert expected.text.startswith(shown)


@settings(max_examples=150)
@given(before=TEXTS, after=TEXTS, written=TEXTS, language=st.sampled_from(LANGUAGES), stopped=st.booleans())
def test_shown_text_never_repeats_the_next_line(
    *, before: str, after: str, written: str, language: str, stopped: bool
) -> None:
    verdict = once(before + after, len(before), language, written, stopped=stopped)
    following = [line for line in after.partition("\n")[2].split("\n") if line.strip()]
    assume(following and telling(following[0]))
    lines = (before.rpartition("\n")[2] + verdict.text).split("\n")
    assert not verdict.text or all(bare(line) != bare(following[0]) for line in lines)


@settings(max_examples=150, suppress_health_check=[HealthCheck.filter_too_much])
@given(document=DOCUMENTS, data=st.data(), written=TEXTS, language=st.sampled_from(LANGUAGES[:6]))
def test_a_finished_statement_leaves_balanced_brackets_balanced(
    document: str, data: st.DataObject, written: str, language: str
) -> None:
    syntax = syntax_of(language)
    cursor = data.draw(st.integers(0, len(document)))
    verdict = once(document, cursor, language, written, stopped=False)
    assume(verdict.reason in {"line", "block", "junction"} and verdict.text)
    joined = scan(document[:cursor] + verdict.text + document[cursor:], syntax)
    assert not joined.unmatched
    assert not joined.stack


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_long_text_is_taken_in_time_that_grows_with_it_alone(language: str) -> None:
    """Not a clock: a filter that looked at everything again for each word would be stopped by the test's limit."""
    document = "call(alpha, [beta], {gamma})\n" * 5000
    growing = Policy.begin(document, len(document) // 2, language, Settings())
    for number in range(200):
        growing.take(f"word{number} + ", final=False)
    assert growing.take("", final=True).finished


@pytest.mark.parametrize(
    ("language", "name"), [("shellscript", "bash"), ("typescriptreact", "typescript"), ("Python", "python"), ("x", "x")]
)
def test_names_of_a_language_mean_the_same(language: str, name: str) -> None:
    assert canonical(language) == name
