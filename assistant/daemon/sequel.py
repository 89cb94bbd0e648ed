"""How well the lines behind a cursor follow a text: read in plain order, behind the prefix and the text."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from assistant.daemon.text import Place, Shape
from assistant.engine.review import Passage, Reviewed, log_prob
from assistant.engine.types import Prompt
from models.tokenizer import Tokenizer

_TOKENS = 16
"""that are read behind a text: more of them tell hardly more, and each costs a row for each text"""
_BEGIN = 3
"""tokens of a line, its indentation included, that another line may share with it"""
_CHARACTERS = 256
"""that hold so many tokens, or a line that is no code"""


@dataclass(frozen=True, slots=True)
class Reading:
    """A text and the beginning of what stands behind it, as the target is to read them."""

    passage: Passage
    first: int
    """place of the text's own beginning in it"""
    end: int
    """and of what stands behind the text"""

    def value(self, reviewed: Sequence[Reviewed]) -> float:
        """The logarithm of the probability of what stands behind the text."""
        return log_prob(reviewed[self.end :])

    def own(self, reviewed: Sequence[Reviewed]) -> Sequence[Reviewed]:
        """The text's tokens, and the first one behind it; where there is no text, as many as begin the next line."""
        return reviewed[self.first : self.end + (1 if self.end > self.first else _BEGIN)]


@dataclass(frozen=True, slots=True)
class Sequels:
    """Makes readings at one place."""

    tokenizer: Tokenizer
    rows: int
    """tokens of the prompt up to the prefix's end"""
    typed: tuple[int, ...]
    """what was written behind the prompt's marks since: it belongs to the prefix"""
    forced: str
    tail: str

    @classmethod
    def at(cls, place: Place, prompt: Prompt, tokenizer: Tokenizer) -> Self | None:
        """Those of a place; None where nothing follows there, or it does not tell which text belongs there.

        Only where whole lines are missing, or what leads to the rest of a line: what one types within a line is shown
        while it is written.
        """
        tells = place.on_new_line or place.shape is Shape.JOIN
        if prompt.gap is None or not prompt.gap.start or not tells or place.in_text or not place.following:
            return None
        typed = prompt.ids[prompt.gap.stop :]
        tail = place.tail[:_CHARACTERS]
        try:
            forced = prompt.forced.decode()
        except UnicodeDecodeError:  # the last token begins within a character, where no text does
            return None
        return cls(tokenizer, prompt.gap.start, typed, forced, tail) if tokenizer.encode(tail) else None

    def reading(self, text: str) -> Reading:
        """That of a text at the cursor."""
        ids = self.tokenizer.encode(self.forced + text + self.tail)
        size, end = len((self.forced + text).encode()), 0
        own = 0
        while own < len(ids) and end + len(self.tokenizer.token_bytes(ids[own])) <= size:
            end += len(self.tokenizer.token_bytes(ids[own]))
            own += 1
        first = len(self.typed)
        return Reading(Passage(self.rows, (*self.typed, *ids[: own + _TOKENS])), first, first + own)
