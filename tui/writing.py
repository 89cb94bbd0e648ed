"""A completion as text with an origin for each piece: what the document widget and the scratch pad draw."""

from collections.abc import Sequence
from dataclasses import dataclass

from assistant.protocol import Step
from tui.drafts import rejected_texts


@dataclass(frozen=True, slots=True)
class Origin:
    """How a token's origin looks and what it is called; the letter is enough without colour."""

    letter: str
    name: str
    style: str
    """of Textual, in the theme's colours"""
    mark_style: str
    """of its letter"""
    drafted: bool
    """whether a token of this origin was guessed first"""


def _drafted(letter: str, name: str, colour: str, extra: str = "") -> Origin:
    style = f"{extra} ${colour}-text on ${colour}".strip()
    return Origin(letter, name, style, f"${colour}-mark", drafted=True)


def _own(letter: str, name: str, colour: str) -> Origin:
    return Origin(letter, name, f"bold ${colour}", f"${colour}", drafted=False)


ORIGINS = {
    "head": _drafted("H", "draft head", "origin-head"),
    "draft": _drafted("D", "draft model", "origin-head"),
    "retrieval": _drafted("R", "nearby text", "origin-retrieval", "underline"),
    "correction": _own("C", "correction", "origin-correction"),
    "bonus": _own("B", "bonus", "origin-bonus"),
    "target": _own("T", "model alone", "origin-target"),
}
UNKNOWN = Origin("?", "another", "$text", "$muted", drafted=False)
REJECTED = Origin("x", "refused", "strike $muted", "$muted", drafted=True)


@dataclass(frozen=True, slots=True)
class Piece:
    """A stretch of text from one token."""

    text: str
    origin: Origin


@dataclass(frozen=True, slots=True)
class Writing:
    """A completion in its document."""

    before: str = ""
    pieces: tuple[Piece, ...] = ()
    rejected: str = ""
    """what the newest step drafted beyond that and the target refused"""
    after: str = ""


def writing(steps: Sequence[Step], before: str, after: str) -> Writing:
    """The text of a completion's steps between what surrounds it, token by token.

    Where the first token repeats typed characters (token healing), and where a stop cut the last one, the pieces are
    trimmed to the text that was shown.
    """
    tokens = [(text, origin) for step in steps for text, origin in zip(step.texts, step.origins, strict=True)]
    written = "".join(text for text, _ in tokens)
    shown = "".join(step.text for step in steps)
    start = _healed(written, shown, before)
    pieces = _cut(tokens, start, start + len(shown) if written[start:].startswith(shown) else len(written))
    tree = steps[-1].tree if steps else None
    return Writing(before, pieces, "".join(rejected_texts(tree)) if tree else "", after)


def origin(name: str) -> Origin:
    """How a token of that origin looks; a name from a later version of the daemon is no error."""
    return ORIGINS.get(name, UNKNOWN)


def _healed(written: str, shown: str, before: str) -> int:
    for start in range(min(len(written), len(before)) + 1):
        if written[start:].startswith(shown) and before.endswith(written[:start]):
            return start
    return 0


def _cut(tokens: Sequence[tuple[str, str]], start: int, stop: int) -> tuple[Piece, ...]:
    pieces, at = [], 0
    for text, name in tokens:
        inside = text[max(start - at, 0) : max(stop - at, 0)]
        at += len(text)
        if inside:
            pieces.append(Piece(inside, origin(name)))
    return tuple(pieces)
