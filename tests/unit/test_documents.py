"""Reading source files as editors do, and finding positions in them."""

import io
import os
import socket
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assistant import documents
from assistant.documents import Document, Location, decode, parse_location, read
from assistant.errors import DocumentError


@pytest.mark.parametrize(
    ("argument", "present", "expected"),
    [
        ("a.py", {"a.py"}, Location("a.py")),
        ("a.py:3", {"a.py"}, Location("a.py", 3)),
        ("a.py:3:7", {"a.py"}, Location("a.py", 3, 7)),
        ("a.py:3:7:", {"a.py"}, Location("a.py", 3, 7)),
        ("a.py:3:7", {"a.py", "a.py:3:7"}, Location("a.py:3:7")),
        ("a.py:3:7", {"a.py", "a.py:3"}, Location("a.py:3", 7)),
        ("odd:name.py:3", {"odd:name.py"}, Location("odd:name.py", 3)),
        (r"C:\code\a.py", {r"C:\code\a.py"}, Location(r"C:\code\a.py")),
        (r"C:\code\a.py:3:7", {r"C:\code\a.py"}, Location(r"C:\code\a.py", 3, 7)),
        (r"C:\code\gone.py:3", set(), Location(r"C:\code\gone.py", 3)),
        ("gone.py:3:7", set(), Location("gone.py", 3, 7)),
        ("-", set(), Location("-")),
        ("-:3:7", set(), Location("-", 3, 7)),
        ("a.py:0007", {"a.py"}, Location("a.py", 7)),
    ],
)
def test_a_location_is_a_path_and_perhaps_a_position(argument: str, present: set[str], expected: Location) -> None:
    assert parse_location(argument, present.__contains__) == expected


@pytest.mark.parametrize("rest", ["three", "-3", "3:x", "3:4:5", "3.5"])
def test_what_follows_an_existing_file_must_be_a_position(rest: str) -> None:
    with pytest.raises(DocumentError, match="no position"):
        parse_location(f"a.py:{rest}", {"a.py"}.__contains__)


def test_a_position_of_thousands_of_digits_is_out_of_range_like_any_other() -> None:
    place = parse_location("a.py:" + "9" * 5000, {"a.py"}.__contains__)
    with pytest.raises(DocumentError, match="has no line"):
        Document("a.py", "x").offset(place.line)


def test_an_empty_path_is_refused() -> None:
    with pytest.raises(DocumentError, match="path is empty"):
        parse_location("")


class TestOffset:
    document = Document("a.py", "ab\n\ncdé\n")

    @pytest.mark.parametrize(
        ("line", "column", "expected"),
        [(None, None, 8), (1, 1, 0), (1, 3, 2), (1, None, 2), (2, 1, 3), (3, 3, 6), (3, 4, 7), (4, 1, 8), (4, None, 8)],
    )
    def test_positions_count_from_one_in_characters(self, line: int, column: int, expected: int) -> None:
        assert self.document.offset(line, column) == expected

    @pytest.mark.parametrize("line", [0, 5, 10**9])
    def test_a_line_outside_names_the_lines_there_are(self, line: int) -> None:
        with pytest.raises(DocumentError, match=rf"a\.py has no line {line}: its lines are 1 to 4\."):
            self.document.offset(line, 1)

    @pytest.mark.parametrize("column", [0, 5])
    def test_a_column_outside_names_the_columns_there_are(self, column: int) -> None:
        with pytest.raises(DocumentError, match=rf"no column {column} in line 3: its columns are 1 to 4"):
            self.document.offset(3, column)

    def test_an_empty_document_has_one_place(self) -> None:
        empty = Document("a.py", "")
        assert empty.offset() == empty.offset(1) == empty.offset(1, 1) == 0
        with pytest.raises(DocumentError, match="its lines are 1 to 1"):
            empty.offset(2)

    def test_unusual_separators_end_no_line(self) -> None:
        """Form feeds and Unicode's line separators are characters, as in editors."""
        document = Document("a.py", "a\x0cb\u2028c\nd")
        assert document.offset(1, 6) == 5
        assert document.offset(2, 1) == 6


@given(text=st.text(st.sampled_from("ab\né🙂\t"), max_size=40), data=st.data())
def test_every_place_has_one_position_and_back(text: str, data: st.DataObject) -> None:
    cursor = data.draw(st.integers(0, len(text)))
    before = text[:cursor]
    line, column = before.count("\n") + 1, len(before) - before.rfind("\n")
    assert Document("a.py", text).offset(line, column) == cursor


class TestDecode:
    def test_a_byte_order_mark_is_not_part_of_the_text(self) -> None:
        assert decode(b"\xef\xbb\xbfx = 1", "a.py").text == "x = 1"

    def test_line_ends_become_line_feeds_and_come_back(self) -> None:
        document = decode(b"a\r\nb\r\n", "a.py")
        assert document.text == "a\nb\n"
        assert document.with_own_line_ends("x\ny") == "x\r\ny"

    def test_the_prevailing_line_end_is_the_documents_own(self) -> None:
        assert decode(b"a\r\nb\nc\n", "a.py").newline == "\n"
        assert decode(b"a\r\nb\r\nc\n", "a.py").newline == "\r\n"
        assert decode(b"a\rb\r", "a.py").newline == "\r"
        assert decode(b"", "a.py").newline == "\n"

    def test_broken_utf8_is_shown_as_editors_show_it(self) -> None:
        """One replacement character a broken sequence, so that columns after it are what the user sees."""
        document = decode(b"a\xff\xe2\x82b\xc3\xa9", "a.py")
        assert document.text == "a\ufffd\ufffdb\u00e9"
        document.text.encode()  # nothing in it that a tokenizer could not take

    def test_binary_content_is_refused(self) -> None:
        with pytest.raises(DocumentError, match=r"a\.bin is binary \(it holds NUL bytes\)"):
            decode(b"\x7fELF\0\0", "a.bin")

    def test_more_than_a_source_file_is_refused(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(documents, "MAX_BYTES", 1 << 20)
        assert decode(b"x" * (1 << 20), "a.py").text
        with pytest.raises(DocumentError, match="larger than 1 MiB"):
            decode(b"x" * ((1 << 20) + 1), "a.py")


class TestRead:
    def test_a_file_is_read_under_its_own_name(self, tmp_path: Path) -> None:
        path = tmp_path / "a.py"
        path.write_bytes(b"x = 1\n")
        assert read(str(path)) == Document(str(path), "x = 1\n")

    def test_standard_input_is_read_for_a_dash(self) -> None:
        assert read("-", io.BytesIO(b"x\r\n")) == Document("standard input", "x\n", "\r\n")

    def test_a_missing_file_is_named(self, tmp_path: Path) -> None:
        with pytest.raises(DocumentError, match=r"there is no file .*gone\.py"):
            read(str(tmp_path / "gone.py"))

    def test_a_folder_is_refused(self, tmp_path: Path) -> None:
        with pytest.raises(DocumentError, match="is a folder"):
            read(str(tmp_path))

    def test_a_path_through_a_file_is_refused(self, tmp_path: Path) -> None:
        (tmp_path / "a.py").touch()
        with pytest.raises(DocumentError, match="cannot be read"):
            read(str(tmp_path / "a.py" / "b.py"))

    @pytest.mark.parametrize("path", ["a\0b", "x" * 5000])
    def test_an_impossible_path_is_refused(self, path: str) -> None:
        with pytest.raises(DocumentError, match="cannot be read"):
            read(path)

    def test_a_pipe_is_refused_and_never_waited_for(self, tmp_path: Path) -> None:
        os.mkfifo(tmp_path / "pipe")
        with pytest.raises(DocumentError, match="is a pipe"):
            read(str(tmp_path / "pipe"))

    def test_a_device_and_a_socket_are_refused(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(tmp_path)  # the name of a socket must be short
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind("s")
            for path in (os.devnull, "s"):
                with pytest.raises(DocumentError, match="no regular file"):
                    read(path)

    def test_a_file_without_permission_is_a_sentence(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """Permission bits do not bind an administrator, so the operating system's answer is played."""
        path = tmp_path / "a.py"
        path.touch()

        def refuse(*_: object, **__: object) -> None:
            raise PermissionError(13, "Permission denied", str(path))

        monkeypatch.setattr(Path, "open", refuse)
        with pytest.raises(DocumentError, match=r"a\.py cannot be read: permission denied"):
            read(str(path))
