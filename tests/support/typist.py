"""Somebody who writes a file by hand, above what it ends with: mistypes, corrects, and has brackets closed for them."""

import random
from collections.abc import Iterator
from dataclasses import dataclass

_CLOSERS = {"(": ")", "[": "]", "{": "}"}
_MISTYPED = 0.02
"""of the keys"""


@dataclass(frozen=True, slots=True)
class Key:
    """One keystroke, and what it leaves."""

    start: int
    end: int
    inserted: str | None
    """in place of `start` to `end`; None: the key only moved the cursor, over a bracket that stood there already"""
    text: str
    cursor: int

    @property
    def before(self) -> str:
        return self.text[: self.cursor]

    @property
    def after(self) -> str:
        return self.text[self.cursor :]


def write(whole: str, standing: int, dice: random.Random) -> Iterator[Key]:
    """The keystrokes that make `whole` of its last `standing` characters."""
    text, cursor = whole[len(whole) - standing :], 0
    pairs = _pairs(whole)
    closers = set(pairs.values())

    def put(inserted: str | None, *, remove: int = 0, move: int = 0) -> Key:
        nonlocal text, cursor
        start = cursor - remove
        text = text[:start] + (inserted or "") + text[cursor:]
        end, cursor = cursor, start + move
        return Key(start, end, inserted, text, cursor)

    for index, char in enumerate(whole[: len(whole) - standing]):
        if dice.random() < _MISTYPED:
            yield put("q", move=1)
            yield put("", remove=1)
        if index in closers:
            yield put(None, move=1)
        else:
            yield put(char + (_CLOSERS[char] if index in pairs else ""), move=1)
    assert (text, cursor) == (whole, len(whole) - standing)


def _pairs(whole: str) -> dict[int, int]:
    """Brackets that are closed on their line: where they open -> where they close."""
    found: dict[int, int] = {}
    opened: list[int] = []
    for index, char in enumerate(whole):
        if char == "\n":
            opened = []
        elif char in _CLOSERS:
            opened.append(index)
        elif char in _CLOSERS.values():
            if opened and _CLOSERS[whole[opened[-1]]] == char:
                found[opened.pop()] = index
            else:  # inside a string, probably: leave this line's other brackets alone
                opened = []
    return found
