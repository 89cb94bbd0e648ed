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
    meaning: str
    """in a few words, for the help"""
    style: str
    """of Textual, in the theme's colours"""
    mark_style: str
    """of its letter"""


def _drafted(letter: str, name: str, meaning: str, colour: str, extra: str = "") -> Origin:
    style = f"{extra} ${colour}-text on ${colour}".strip()
    return Origin(letter, name, meaning, style, f"${colour}-mark")


def _own(letter: str, name: str, meaning: str, colour: str) -> Origin:
    return Origin(letter, name, meaning, f"bold ${colour}", f"${colour}")


ORIGINS = {
    "head": _drafted("H", "draft head", "guessed by the small network, and right", "origin-head"),
    "draft": _drafted("D", "draft model", "guessed by a second model, and right", "origin-head"),
    "retrieval": _drafted("R", "nearby text", "copied from the file, and right", "origin-retrieval", "underline"),
    "correction": _own("C", "correction", "the model's own, where every guess was wrong", "origin-correction"),
    "bonus": _own("B", "bonus", "the model's own, when every guess was right", "origin-bonus"),
    "target": _own("T", "model alone", "the model's own, where nothing was guessed", "origin-target"),
}
UNKNOWN = Origin("?", "another", "of a later version", "$text", "$muted")
REJECTED = Origin("x", "refused", "guessed, and not what the model wrote", "strike $muted", "$muted")


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
    trimmed to the text that was shown. Where another text took the place of the first, it alone is left.
    """
    begun = max((place for place, step in enumerate(steps) if step.anew), default=0)
    steps = steps[begun:]
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
