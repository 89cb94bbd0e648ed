"""Open documents: versions, edits, and the bounds on what clients can make the daemon hold."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assistant import protocol
from assistant.daemon.documents import MAX_EDITS, Documents
from assistant.errors import RefusedError


def opened(text: str, version: int = 1, path: str = "a.py", client: str = "c") -> protocol.OpenDocument:
    return protocol.OpenDocument(client=client, path=path, version=version, text=text)


def changed(version: int, *edits: tuple[int, int, str]) -> protocol.ChangeDocument:
    return protocol.ChangeDocument(
        client="c",
        path="a.py",
        version=version,
        edits=tuple(protocol.Edit(start=a, end=b, text=t) for a, b, t in edits),
    )


def code_of(call: object, *arguments: object) -> str:
    assert callable(call)
    with pytest.raises(RefusedError) as caught:
        call(*arguments)
    return caught.value.code


def test_edits_apply_one_after_the_other() -> None:
    documents = Documents()
    documents.open(opened("def f():\n"))
    documents.change(changed(2, (4, 5, "first"), (9, 11, "(x)"), (13, 13, "é")))
    assert documents.at("c", "a.py", 2).text == "def first(x):é\n"


@given(
    st.text(max_size=30), st.lists(st.tuples(st.integers(0, 40), st.integers(0, 40), st.text(max_size=5)), max_size=8)
)
def test_a_change_is_what_slicing_says_or_changes_nothing(text: str, edits: list[tuple[int, int, str]]) -> None:
    documents = Documents()
    documents.open(opened(text))
    expected: str | None = text
    for start, end, new in edits:
        if expected is None or not start <= end <= len(expected):
            expected = None
            break
        expected = expected[:start] + new + expected[end:]
    if expected is None:
        assert code_of(documents.change, changed(2, *edits)) == "bad_message"
        assert documents.at("c", "a.py", 1).text == text
    else:
        documents.change(changed(2, *edits))
        assert documents.at("c", "a.py", 2).text == expected


def test_a_version_that_is_not_there_is_stale() -> None:
    documents = Documents()
    documents.open(opened("x", version=3))
    assert code_of(documents.at, "c", "a.py", 2) == "stale"
    assert code_of(documents.at, "c", "a.py", 4) == "stale"
    assert code_of(documents.change, changed(3, (0, 0, "y"))) == "stale"


def test_unknown_documents_are_named_as_such() -> None:
    documents = Documents()
    documents.open(opened("x"))
    assert code_of(documents.at, "other client", "a.py", 1) == "unknown_document"
    documents.close(protocol.CloseDocument(client="c", path="a.py"))
    documents.close(protocol.CloseDocument(client="c", path="a.py"))
    assert code_of(documents.change, changed(2)) == "unknown_document"


def test_what_is_too_large_is_refused_and_the_text_before_it_stays() -> None:
    documents = Documents(max_characters=10)
    assert code_of(documents.open, opened("x" * 11)) == "too_large"
    documents.open(opened("x" * 10))
    assert code_of(documents.change, changed(2, (0, 0, "y"))) == "too_large"
    assert code_of(documents.change, changed(2, *[(0, 0, "")] * (MAX_EDITS + 1))) == "too_large"
    assert documents.at("c", "a.py", 1).text == "x" * 10


def test_the_least_recently_used_documents_make_room() -> None:
    documents = Documents(max_documents=3, max_total=100)
    for name in "abc":
        documents.open(opened("x" * 20, path=name))
    documents.at("c", "a", 1)
    documents.open(opened("x" * 20, path="d"))
    assert set(documents.paths("c")) == {"a", "c", "d"}
    documents.open(opened("x" * 70, path="e"))
    assert set(documents.paths("c")) == {"d", "e"}
    assert len(documents) == 2


def test_a_client_that_leaves_takes_its_documents_along() -> None:
    documents = Documents()
    documents.open(opened("x", client="c"))
    documents.open(opened("x", client="other"))
    documents.leave("c")
    assert documents.paths("c") == ()
    assert documents.paths("other") == ("a.py",)
