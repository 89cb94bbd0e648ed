"""Indentation in a file's own style."""

import re
from collections import Counter
from dataclasses import dataclass, field

_BLANKS = re.compile(r"[ \t]*")
_INDENTED = re.compile(r"^([ \t]+)\S", re.MULTILINE)
_SAMPLE = 20_000


@dataclass(frozen=True, slots=True)
class Style:
    """How a file indents."""

    unit: str
    """one level; empty where the file shows none"""
    tab: int = 4
    """columns that a tab counts for"""

    @property
    def known(self) -> bool:
        """Whether the file shows one."""
        return bool(self.unit)


def style_of(text: str) -> Style:
    """The style that prevails in a text: tabs, or the commonest step between the indentations of its lines."""
    leads = [match[1] for match in _INDENTED.finditer(text[:_SAMPLE])]
    tabbed = sum(lead.startswith("\t") for lead in leads)
    if not leads:
        return Style("")
    if tabbed * 2 > len(leads):
        return Style("\t")
    steps: Counter[int] = Counter()
    last = 0
    for line in text[:_SAMPLE].split("\n"):
        if line.strip():
            now = width(line)
            if now > last:
                steps[now - last] += 1
            last = now
    usual = [(count, -step) for step, count in steps.items() if step in {1, 2, 3, 4, 8}]
    return Style(" " * -max(usual)[1] if usual else "")


def lead(line: str) -> str:
    """The white space that a line begins with."""
    match = _BLANKS.match(line)
    assert match is not None
    return match[0]


def width(line: str, tab: int = 4) -> int:
    """Columns of a line's indentation."""
    return len(lead(line).expandtabs(tab))


@dataclass(slots=True)
class Reindent:
    """Rewrites the indentation of written lines where it is not the file's: tabs for spaces, spaces for tabs.

    A line that is indented in the file's style stays as it is.
    """

    style: Style
    step: int = field(default=0)
    """columns of one level in what is written, from its first indented line"""

    def line(self, text: str) -> str:
        """A line of its own with the file's indentation."""
        white = lead(text)
        if not self.style.known or not white:
            return text
        wrong = " " in white if self.style.unit == "\t" else "\t" in white
        return self._rewritten(white) + text[len(white) :] if wrong else text

    def _rewritten(self, white: str) -> str:
        if self.style.unit != "\t":
            return white.replace("\t", self.style.unit)
        columns = len(white.expandtabs(self.style.tab))
        self.step = self.step or (2 if columns % 4 == 2 else 4)
        return "\t" * (columns // self.step) + " " * (columns % self.step)
