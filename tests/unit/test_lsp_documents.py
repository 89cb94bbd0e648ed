"""The server's text equals the editor's, whatever is edited and however columns are counted."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lsp.documents import BOM, Change, Document, path_of
from lsp.positions import Encoding, cut, index_of, paired, units_of

PIECES = [
    "a",
    "b",
    " ",
    "\t",
    "\n",
    "\r\n",
    "\r",
    "é",
    "e\u0301",
    "中",
    "😀",
    "👩‍💻",
    "\u2028",
    "\x0c",
    "\x85",
    BOM,
    "\0",
]
TEXTS = st.lists(st.sampled_from(PIECES), max_size=14).map("".join)
ENCODINGS = st.sampled_from(list(Encoding))


class Client:
    """An editor's text, by the definition of the protocol: units, and lines that end with LF, CRLF or CR."""

    def __init__(self, text: str, encoding: Encoding) -> None:
        self.encoding = encoding
        self.codec = {"utf-8": "utf-8", "utf-16": "utf-16-le", "utf-32": "utf-32-le"}[encoding]
        self.width = {"utf-8": 1, "utf-16": 2, "utf-32": 4}[encoding]
        self.data = self.encode(text)

    def encode(self, text: str) -> bytes:
        return text.encode(self.codec, "surrogatepass")

    @property
    def text(self) -> str:
        return self.data.decode(self.codec, "surrogatepass")

    def places(self) -> list[tuple[int, int, int]]:
        """(line, column, offset in bytes) of every place that a cursor can be at, between halves of a pair too."""
        found = []
        start = 0
        for line, content in enumerate(re.split("\r\n|\n|\r", self.text)):
            size = len(self.encode(content))
            step = 2 if self.encoding is Encoding.UTF16 else self.width
            found += [
                (line, at // self.width, start + at)
                for at in range(0, size + 1, step)
                if self.encoding is not Encoding.UTF8 or self.boundary(start + at)
            ]
            start += size
            rest = self.data[start:].decode(self.codec, "surrogatepass")[:2]
            start += len(self.encode(rest if rest == "\r\n" else rest[:1]))
        return found

    def boundary(self, at: int) -> bool:
        return at == len(self.data) or self.data[at] & 0xC0 != 0x80

    def replace(self, start: int, end: int, text: str) -> None:
        self.data = self.data[:start] + self.encode(text) + self.data[end:]


def seen(raw: str) -> str:
    """What the rest of the program is to see of an editor's text."""
    text = raw.removeprefix(BOM).replace("\r\n", "\n").replace("\r", "\n")
    return re.sub("[\ud800-\udfff]", "\ufffd", text)


@given(st.data(), TEXTS, ENCODINGS)
@settings(max_examples=400, deadline=None)
def test_random_edits_leave_the_servers_text_equal_to_the_editors(
    data: st.DataObject, text: str, encoding: Encoding
) -> None:
    client = Client(text, encoding)
    document = Document("file:///a.py", "python", 1, text, encoding)
    copy = document.text
    for version in range(2, data.draw(st.integers(2, 8))):
        places = client.places()
        first, last = sorted(data.draw(st.lists(st.integers(0, len(places) - 1), min_size=2, max_size=2)))
        new = data.draw(TEXTS)
        (*start, left), (*end, right) = places[first], places[last]
        client.replace(left, right, new)
        for edit in document.apply([Change(new, (start[0], start[1]), (end[0], end[1]))], version):
            copy = copy[: edit.start] + edit.text + copy[edit.end :]
        assert document.raw == client.text
        assert document.text == seen(client.text) == copy
        assert document.version == version


@given(TEXTS, ENCODINGS)
@settings(max_examples=300, deadline=None)
def test_every_offset_has_a_place_in_the_editors_text_and_every_place_an_offset(text: str, encoding: Encoding) -> None:
    client = Client(text, encoding)
    document = Document("file:///a.py", None, 1, text, encoding)
    valid = {(line, column) for line, column, _ in client.places()}
    for offset in range(len(document.text) + 1):
        place = document.place(offset)
        assert place in valid
        assert document.offset(place) == offset
    offsets = [document.offset(place) for place in sorted(valid)]
    assert offsets == sorted(offsets)


@given(TEXTS, TEXTS, ENCODINGS)
@settings(max_examples=200, deadline=None)
def test_a_whole_new_text_becomes_one_small_edit(text: str, new: str, encoding: Encoding) -> None:
    document = Document("file:///a.py", None, 1, text, encoding)
    before = document.text
    edits = document.apply([Change(new)], 2)
    assert document.raw == new
    assert len(edits) == (before != document.text)
    for edit in edits:
        assert before[: edit.start] + edit.text + before[edit.end :] == document.text
        replaced = before[edit.start : edit.end]
        assert replaced[:1] != edit.text[:1] or not replaced
        assert replaced[-1:] != edit.text[-1:] or not replaced


def test_a_typed_character_is_the_edit_that_was_typed_where_it_was_typed() -> None:
    document = Document("file:///a.py", None, 1, "aa\r\naa", Encoding.UTF16)
    (edit,) = document.apply([Change("a", (1, 1), (1, 1))], 2)
    assert (edit.start, edit.end, edit.text) == (4, 4, "a")


@pytest.mark.parametrize("halves", [("\ud83d", "\ude00")])
def test_halves_of_a_character_that_come_one_after_the_other_become_it(halves: tuple[str, str]) -> None:
    document = Document("file:///a.py", None, 1, "ab", Encoding.UTF16)
    document.apply([Change(halves[0], (0, 1), (0, 1))], 2)
    assert document.text == "a\ufffdb"
    document.apply([Change(halves[1], (0, 2), (0, 2))], 3)
    assert document.raw == document.text == "a😀b"


@pytest.mark.parametrize("place", [(-1, 0), (0, -5), (99, 0), (1, 99), (99, 99)])
def test_a_place_outside_the_document_counts_as_its_nearest(place: tuple[int, int]) -> None:
    document = Document("file:///a.py", None, 1, "ab\ncd", Encoding.UTF8)
    document.apply([Change("X", place, place)], 2)
    assert document.text in {"Xab\ncd", "ab\ncdX"}


def test_places_the_wrong_way_round_mean_the_same_range() -> None:
    document = Document("file:///a.py", None, 1, "abcd", Encoding.UTF8)
    document.apply([Change("", (0, 3), (0, 1))], 2)
    assert document.text == "ad"


@given(TEXTS.filter(lambda text: not re.search("[\r\n]", text)), st.integers(-2, 40), ENCODINGS)
def test_a_column_inside_a_character_counts_as_before_it(line: str, units: int, encoding: Encoding) -> None:
    index = index_of(line, units, encoding)
    assert units_of(line, index, encoding) <= max(units, 0)
    assert index == len(line) or units_of(line, index + 1, encoding) > units
    assert paired("".join(cut(line, units, encoding))) == line


def test_the_line_end_of_suggestions_is_the_documents() -> None:
    assert Document("file:///a", None, 1, "a\r\nb", Encoding.UTF8).with_own_line_ends("x\ny") == "x\r\ny"
    assert Document("file:///a", None, 1, "a", Encoding.UTF8).with_own_line_ends("x\ny") == "x\ny"


@pytest.mark.parametrize(
    ("uri", "path"),
    [
        ("file:///home/a%20b/%C3%A9.py", "/home/a b/é.py"),
        ("untitled:Untitled-1", "untitled:Untitled-1"),
        ("file:///a%23b.py", "/a#b.py"),
    ],
)
def test_a_file_uri_names_its_path_and_any_other_itself(uri: str, path: str) -> None:
    assert path_of(uri) == path
