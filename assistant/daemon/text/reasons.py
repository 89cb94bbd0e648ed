"""Why a completion ended, and why nothing of it is shown: a fixed vocabulary for status lines, feeds and statistics."""

from enum import StrEnum


class Reason(StrEnum):
    """One word for programs; `words` is for people."""

    NONE = ""
    """still being written"""
    STOPPED = "stopped"
    LENGTH = "length"
    LINE = "line"
    BLOCK = "block"
    JUNCTION = "junction"
    MARKER = "marker"
    EMPTY = "empty"
    REPEATS_REST = "repeats-rest"
    REPEATS_NEXT = "repeats-next"
    REPEATS_ABOVE = "repeats-above"
    LOOP = "loop"
    MISFIT = "misfit"
    DOUBTFUL = "doubtful"
    SECRET = "secret"

    @property
    def words(self) -> str:
        """The reason as a clause."""
        return _WORDS[self]


_WORDS = {
    Reason.NONE: "",
    Reason.STOPPED: "the model ended the text",
    Reason.LENGTH: "as much was written as may be",
    Reason.LINE: "the line is complete",
    Reason.BLOCK: "the block is complete",
    Reason.JUNCTION: "it reached what follows the cursor",
    Reason.MARKER: "the model began another document",
    Reason.EMPTY: "nothing but white space was written",
    Reason.REPEATS_REST: "it only repeated the rest of the line",
    Reason.REPEATS_NEXT: "it repeated a line that follows",
    Reason.REPEATS_ABOVE: "it repeated the line above",
    Reason.LOOP: "it went round in circles",
    Reason.MISFIT: "it would not fit what follows on the line",
    Reason.DOUBTFUL: "the model was not sure enough",
    Reason.SECRET: "the file may hold secrets",
}
