"""Laying a writing out in a window: rows of cells, each generated row with a row of origin letters below it.

The letters (`H──R─C`: a token begins where its letter stands) say without colour what the shading says with it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rich.cells import cell_len

from tui.writing import REJECTED, Piece, Writing

TAB = 4
_SURROUNDING = "$muted"
_CURSOR = "▌"


@dataclass(frozen=True, slots=True)
class Cell:
    """One character on the screen."""

    text: str
    style: str
    mark: str = " "
    """what stands below it"""
    mark_style: str = ""


@dataclass(frozen=True, slots=True)
class Row:
    """A line of the window."""

    cells: tuple[Cell, ...]
    inside: bool
    """whether a part of the completion, or its end, stands in it"""
    marked: bool
    """whether there is something to mark below it"""


def lay_out(writing: Writing, width: int, height: int, *, marks: bool) -> tuple[Row, ...]:
    """The rows of a window of that size around the completion's end; rows with marks count twice."""
    rows = _wrap(_cells(writing), max(width, 8))
    return _window(rows, height, 2 if marks else 1)


def _cells(writing: Writing) -> Iterator[Cell | None]:
    """Every cell in order; None ends a line."""
    yield from _plain(writing.before)
    for piece in writing.pieces:
        yield from _marked(piece)
    yield Cell(_CURSOR, "$accent", " ")
    if writing.rejected:
        yield Cell("⟨", _SURROUNDING)
        yield from _marked(Piece(writing.rejected, REJECTED))
        yield Cell("⟩", _SURROUNDING)
    yield from _plain(writing.after)


def _plain(text: str) -> Iterator[Cell | None]:
    for char in text:
        if char == "\n":
            yield None
        else:
            yield from (Cell(shown, _SURROUNDING) for shown in _shown(char))


def _marked(piece: Piece) -> Iterator[Cell | None]:
    origin = piece.origin
    mark = origin.letter
    for char in piece.text:
        for shown in "↵" if char == "\n" else _shown(char):
            yield Cell(shown, origin.style, mark, origin.mark_style)
            mark = "─"
        if char == "\n":
            yield None


def _shown(char: str) -> str:
    if char == "\t":
        return " " * TAB
    return char if char.isprintable() else ascii(char)[1:-1]


def _wrap(cells: Iterator[Cell | None], width: int) -> list[Row]:
    rows: list[Row] = []
    line: list[Cell] = []
    used = 0

    def end() -> None:
        nonlocal line, used
        marked = any(cell.mark != " " for cell in line)
        rows.append(Row(tuple(line), marked or any(cell.text == _CURSOR for cell in line), marked))
        line, used = [], 0

    for cell in cells:
        if cell is None:
            end()
            continue
        wide = cell_len(cell.text)
        if used + wide > width:
            end()
        line.append(cell)
        used += wide
    end()
    return rows


def _window(rows: Sequence[Row], height: int, cost: int) -> tuple[Row, ...]:
    """The completion's rows, from their end backwards where they are too many, and as much around them as fits."""
    costs = [cost if row.marked else 1 for row in rows]
    inside = [index for index, row in enumerate(rows) if row.inside]
    first = last = inside[-1]
    room = height - costs[last]

    def fits(index: int) -> bool:
        return 0 <= index < len(rows) and room >= costs[index]

    while first > inside[0] and fits(first - 1):
        first -= 1
        room -= costs[first]
    turn = 0
    while fits(first - 1) or fits(last + 1):
        upwards = fits(first - 1) and (turn % 3 < 2 or not fits(last + 1))
        first, last = (first - 1, last) if upwards else (first, last + 1)
        room -= costs[first if upwards else last]
        turn += 1
    return tuple(rows[first : last + 1])
