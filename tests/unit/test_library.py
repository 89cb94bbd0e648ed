"""Indexes of open documents: made while there is nothing to do, used for drafts alone."""

import msgspec

from assistant.config import Settings
from assistant.config.declaration import Completion
from assistant.daemon import library
from assistant.daemon.context import Contexts
from assistant.daemon.library import Library
from tests.support.rooms import CODE, Room
from tests.support.tiny_tokenizer import tiny_tokenizer

TOKENIZER = tiny_tokenizer()
OTHER = "def third(self):\n    return self.first() + self.second()\n"


def sorted_out(found: Library) -> int:
    """Work until nothing is left; how many goes that took."""
    goes = 0
    while found.sort(TOKENIZER):
        goes += 1
        assert goes < 1000
    return goes


def test_every_document_but_ones_own_is_looked_into_the_one_edited_last_first() -> None:
    found = Library(lambda: [("a.py", CODE), ("b.py", OTHER), ("c.py", CODE * 2)])
    assert found.others("a.py") == ()
    sorted_out(found)
    assert len(found.others("a.py")) == 2
    ids = TOKENIZER.encode(OTHER)
    assert found.others("a.py")[1].find(ids[:6], 3)[0] == ids[6:9]
    assert found.others("b.py")[1].find(ids[:6], 3)[1] < 6


def test_an_edit_replaces_an_index_and_a_document_that_is_closed_loses_it() -> None:
    documents = {"a.py": CODE, "b.py": OTHER}
    found = Library(lambda: list(documents.items()))
    sorted_out(found)
    before = found.others("a.py")
    assert sorted_out(found) == 0
    documents["b.py"] = OTHER * 2
    assert found.others("a.py") == before, "the old one serves until the new one is made"
    sorted_out(found)
    assert found.others("a.py") != before
    del documents["b.py"]
    assert found.others("a.py") == ()


def test_large_documents_are_taken_in_slices_from_both_ends() -> None:
    text = "".join(f"value_{number} = {number}\n" for number in range(20_000))
    found = Library(lambda: [("big.py", text)])
    assert sorted_out(found) > library._CHARACTERS // library._SLICE
    (passages,) = found.others("a.py")
    first = TOKENIZER.encode(text[:200])
    assert passages.find(first[2:8], 4)[0] == first[8:12]


def test_a_room_drafts_from_what_is_open_and_writes_the_same() -> None:
    contexts = Contexts(Settings().context)
    contexts.note("/w/b.py", CODE)
    contexts.note("/w/.env", "SECRET=1\n")
    assert [path for path, _ in contexts.readable()] == ["/w/b.py"]
    room = Room(opened=contexts.readable, settings=Settings(completion=Completion(max_tokens=16)))
    plain = room.ask(CODE, 40, path="/w/a.py", method="plain", tokens=16)
    plain.done_after(room)
    while room.scheduler._workshop.sample():
        pass
    drafted = room.ask(CODE, 40, path="/w/c.py", method="ngram", tokens=16)
    drafted.done_after(room)
    assert drafted.tokens == plain.tokens
    assert room.scheduler._workshop._library.others("/w/c.py")


def test_nothing_is_indexed_where_context_is_switched_off() -> None:
    contexts = Contexts(msgspec.structs.replace(Settings().context, enabled=False))
    contexts.note("/w/b.py", CODE)
    assert contexts.readable() == []
