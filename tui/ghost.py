"""A suggestion of several lines as the rows of an editor: what stands behind the cursor, and what below it."""

from rich.cells import cell_len

_TAB = 4
_MORE = "⋮"


def ghost_rows(left: str, column: int, width: int, most: int) -> tuple[str, tuple[str, ...]]:
    """The row behind the cursor and at most `most` rows below it, `⋮` in the last one where there are more.

    Args:
        left: what is left of the suggestion.
        column: where the cursor stands, in cells.
        width: of the editor's text, in cells.
        most: rows that there is room for.
    """
    first, *others = left.expandtabs(_TAB).split("\n")
    head, *rest = _chunks(first, max(width - column, 1), width)
    rows = [*rest, *(row for line in others for row in _chunks(line, width, width))]
    if len(rows) > most:
        rows = [*rows[: max(most - 1, 0)], _MORE][: max(most, 0)]
    return head, tuple(rows)


def _chunks(line: str, first: int, width: int) -> list[str]:
    """A line cut to a first and to further widths; wide characters are not cut through."""
    rows, row, room = [], "", first
    for char in line:
        if cell_len(row + char) > room:
            rows.append(row)
            row, room = "", max(width, 1)
        row += char
    return [*rows, row]
