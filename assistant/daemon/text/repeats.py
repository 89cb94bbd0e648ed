"""What is written a second time: lines that follow the cursor, lines above, and circles."""

import re
from collections.abc import Sequence
from itertools import pairwise

_NEAR = 6
"""following lines that one alone is compared with, where it is long"""
_LONG = 12
_CIRCLE = re.compile(r"(?P<unit>(?=.*[^\s\-=*#_~/])\S.{2,60}?)(?P=unit){4,}", re.DOTALL)
_WORD = re.compile(r"\w")


def bare(line: str) -> str:
    """A line without white space: what is the same but for its layout, is the same."""
    return "".join(line.split())


def telling(line: str) -> bool:
    """Whether a line says anything: brackets and rules alone are repeated all over a file."""
    return _WORD.search(line) is not None


def repeats_following(lines: Sequence[str], following: Sequence[str]) -> int | None:
    """Of complete written lines, the index of the first that repeats what follows the cursor.

    That is a line like the next one; two lines in a row that stand in a row further down; or a long one like one of
    the next few at the same indentation.
    """
    ahead = [bare(line) for line in following]
    written = [bare(line) for line in lines]
    for index, line in enumerate(written):
        if not telling(line):
            continue
        if ahead and line == ahead[0]:
            return index
        if len(line) >= _LONG and any(
            line == other and _lead(lines[index]) == _lead(following[near]) for near, other in enumerate(ahead[:_NEAR])
        ):
            return index
        if index + 1 < len(written) and written[index + 1] and (line, written[index + 1]) in _pairs(ahead):
            return index
    return None


def _pairs(lines: Sequence[str]) -> set[tuple[str, str]]:
    return set(pairwise(lines))


def _lead(line: str) -> int:
    return len(line) - len(line.lstrip())


def may_repeat(line: str, following: Sequence[str]) -> bool:
    """Whether an unfinished line could still become one of those that follow."""
    begun = bare(line)
    return bool(begun) and any(bare(other).startswith(begun) for other in following)


def circle(lines: Sequence[str], above: str) -> int | None:
    """The index of the first line that goes round in circles: like the one before it, or there for the third time."""
    before = bare(above)
    seen: dict[str, int] = {}
    for index, line in enumerate(lines):
        now = bare(line)
        if not telling(now):
            continue
        seen[now] = seen.get(now, 0) + 1
        if now == before or (seen[now] > 2 and len(now) >= _LONG) or seen[now] > 4:
            return index
        before = now
    return None


def circle_within(text: str) -> int | None:
    """Where a stretch of text has been written five times in a row: the end of its first time."""
    match = _CIRCLE.search(text)
    return None if match is None else match.start() + len(match["unit"])
