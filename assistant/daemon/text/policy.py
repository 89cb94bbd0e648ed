"""The text policy as its users see it: begin at a cursor, take what is written, answer what may be shown.

Nothing here depends on how the text arrives. Decisions fall at fixed places of it, the ends of words and lines, so the
result is the same token by token and at once; and what was shown once is never taken back.
"""

from dataclasses import dataclass

from assistant.daemon.text.place import Place, look
from assistant.daemon.text.reasons import Reason
from assistant.daemon.text.rules import Ruling, judge
from assistant.daemon.text.scan import code_of
from assistant.daemon.text.wanted import mentions


@dataclass(frozen=True, slots=True)
class Settings:
    """What a user may choose."""

    multiline: bool | None = None
    """False: one line at most; None: by the rule (`rules`)"""
    max_lines: int = 32


@dataclass(frozen=True, slots=True)
class Verdict:
    """What stands after some of the text was taken."""

    text: str
    """everything that may be shown so far; only ever grows"""
    finished: bool
    """nothing more need be written"""
    reason: Reason
    """why it ended, or why nothing is shown; NONE while it goes on"""


DEFAULT_SETTINGS = Settings()


class Policy:
    """Begins filters."""

    @staticmethod
    def begin(document_text: str, cursor: int, language: str, settings: Settings = DEFAULT_SETTINGS) -> "Filter":
        """A filter for text written at `cursor`, an index into `document_text`, whose line ends are line feeds.

        Args:
            document_text: the document.
            cursor: 0 to its length.
            language: an LSP language id; an unknown one is treated as prose.
            settings: what the user chose.
        """
        return Filter(look(document_text, cursor, language), settings)


class Filter:
    """Takes the text of one completion as it is written."""

    def __init__(self, place: Place, settings: Settings) -> None:
        self.place = place
        self._settings = settings
        self._written = ""
        self._verdict = Verdict("", finished=False, reason=Reason.NONE)

    def lacks(self, text: str) -> bool:
        """Whether another text may be better: this is but a remark, or leaves out what the next lines need."""
        return self._remarks(text) or any(not mentions(text, name) for name in self.place.wanted)

    def _remarks(self, text: str) -> bool:
        """Whether lines of code are wanted, and these are none."""
        place = self.place
        if not place.on_new_line or place.in_text or place.syntax.blocks == "none":
            return False
        return not any(code_of(line, place.syntax) for line in text.split("\n"))

    def take(self, new_text: str, *, final: bool, stopped: bool = True) -> Verdict:
        """What stands with `new_text` written behind what came before; after `finished`, nothing changes.

        Args:
            new_text: whole characters; carriage returns are left out.
            final: nothing more comes.
            stopped: where it is final, whether the model ended the text (it had more to say otherwise).
        """
        begun = len(self._written)
        self._written += new_text.replace("\r", "")  # line ends are the document's, put in by whoever shows it
        for end in range(begun + 1, len(self._written) + 1):
            if self._verdict.finished:
                return self._verdict
            if not self._written[end - 1].isalnum():
                self._settle(judge(self.place, self._settings, self._written[:end]))
        if final and not self._verdict.finished:
            self._settle(judge(self.place, self._settings, self._written, final=True, stopped=stopped))
        return self._verdict

    def _settle(self, ruling: Ruling) -> None:
        shown = self._verdict.text
        text, reason = ruling.text, ruling.reason
        if not text.startswith(shown):
            text = shown
        self._verdict = Verdict(text, ruling.finished, reason)
