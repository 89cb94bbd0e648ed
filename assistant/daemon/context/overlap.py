"""Lines of other texts that are most like those around a cursor: what is shown where no names can be looked up.

A text is cut into windows that overlap by half. A window is as useful as it shares words with the cursor's
surroundings: the words of both, over those of either (Jaccard). That needs no grammar, so it serves configuration,
markup and prose.
"""

import re
from collections.abc import Iterable
from itertools import pairwise

from assistant.daemon.context.passages import Passage

_BEFORE, _AFTER = 1_500, 500
"""characters around the cursor that are compared"""
_HALF = 8
"""lines of half a window"""
_CHARACTERS = 12_000
"""of a text that are looked at: more would be felt while typing"""
_SHARED = 4
"""words that two texts share at least; fewer they do by chance"""
_WORD = re.compile(r"[^\W\d]\w{2,}")


def most_alike(text: str, cursor: int, others: Iterable[tuple[str, str]], most: int = 4) -> list[Passage]:
    """Of each other text the window that is most like what stands around a cursor, the likest first; at most `most`.

    Args:
        text: the edited document.
        cursor: an index into it.
        others: paths and texts.
        most: passages.
    """
    wanted = _words(text[max(0, cursor - _BEFORE) : cursor + _AFTER])
    scored = [(*_likest(wanted, other), path) for path, other in others]
    scored.sort(key=lambda one: (-one[0], one[2]))
    return [Passage(path, window) for score, window, path in scored[:most] if score]


def _likest(wanted: set[str], text: str) -> tuple[float, str]:
    """The best window of a text and its likeness, 0 where none is like it."""
    lines = text[:_CHARACTERS].split("\n")
    halves = ["\n".join(lines[first : first + _HALF]) for first in range(0, len(lines), _HALF)]
    counted = [(half, _words(half)) for half in (*halves, "")]
    best = 0.0, ""
    for (one, words), (two, more) in pairwise(counted):
        shared = len(wanted & (words | more))
        likeness = shared / len(wanted | words | more) if shared >= _SHARED else 0.0
        if likeness > best[0]:
            best = likeness, f"{one}\n{two}".strip("\n")
    return best


def _words(text: str) -> set[str]:
    return set(_WORD.findall(text))
