"""Columns as editors count them: in bytes of UTF-8, in units of UTF-16, or in characters."""

from enum import StrEnum


class Encoding(StrEnum):
    """A unit that an editor counts columns in; the value is the protocol's name for it."""

    UTF8 = "utf-8"
    UTF16 = "utf-16"
    UTF32 = "utf-32"


def index_of(line: str, units: int, encoding: Encoding) -> int:
    """The index in `line` of a column; one inside a character counts as before it, one behind the end as the end."""
    if units <= 0:
        return 0
    if encoding is Encoding.UTF32 or line.isascii():
        return min(units, len(line))
    if encoding is Encoding.UTF16:
        head = _utf16(line)[: 2 * units].decode("utf-16-le", "surrogatepass")
        return len(head) - (head[-1:] != line[len(head) - 1 : len(head)])
    data = _utf8(line)
    while units < len(data) and data[units] & 0xC0 == 0x80:
        units -= 1
    return len(data[:units].decode("utf-8", "surrogatepass"))


def units_of(line: str, index: int, encoding: Encoding) -> int:
    """The column of an index in `line`."""
    head = line[:index]
    if encoding is Encoding.UTF32 or head.isascii():
        return len(head)
    return len(_utf16(head)) // 2 if encoding is Encoding.UTF16 else len(_utf8(head))


def cut(line: str, units: int, encoding: Encoding) -> tuple[str, str]:
    """The line before and after a column. A column between the halves of a UTF-16 pair gives each side its half."""
    index = index_of(line, units, encoding)
    if encoding is Encoding.UTF16 and units > units_of(line, index, encoding) and index < len(line):
        pair = _utf16(line[index])
        high, low = (pair[at : at + 2].decode("utf-16-le", "surrogatepass") for at in (0, 2))
        return line[:index] + high, low + line[index + 1 :]
    return line[:index], line[index:]


def paired(text: str) -> str:
    """The text with adjacent halves of UTF-16 pairs joined: editors may send the halves one after the other."""
    if text.isascii() or not any("\ud800" <= character <= "\udfff" for character in text):
        return text
    return _utf16(text).decode("utf-16-le", "surrogatepass")


def _utf16(text: str) -> bytes:
    return text.encode("utf-16-le", "surrogatepass")


def _utf8(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")
