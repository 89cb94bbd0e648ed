"""Special tokens that a model spells out as ordinary text."""

import re

from models.special_tokens import NEVER_TEXT

_MARKER = re.compile("|".join(re.escape(text) for text in sorted(NEVER_TEXT, key=len, reverse=True)))
_LONGEST = max(map(len, NEVER_TEXT))


def marker_at(text: str, document: str) -> int | None:
    """Where the first special token is spelt that the document itself does not hold as text."""
    for match in _MARKER.finditer(text):
        if match[0] not in document:
            return match.start()
    return None


def begins_marker(text: str) -> str:
    """The text without an end that may become a special token."""
    for size in range(min(_LONGEST - 1, len(text)), 0, -1):
        if any(marker.startswith(text[-size:]) for marker in NEVER_TEXT):
            return text[:-size]
    return text
