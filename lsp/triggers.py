"""When to stay silent although the editor asks: rules that look at the text alone."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

_WORD = re.compile(r"\w+\Z")


@dataclass(frozen=True, slots=True)
class Situation:
    """What the rules look at."""

    before: str
    """the line's text before the cursor"""
    after: str
    """and after it"""
    invoked: bool
    """the user asked by a key"""
    menu: bool
    """for the completion menu, not for ghost text"""


@dataclass(frozen=True, slots=True)
class Rules:
    """What the user set of them."""

    inside_words: bool = False
    min_prefix: int = 0


def silent(situation: Situation, rules: Rules) -> str | None:
    """Why nothing is to be suggested; None where something is. Whoever asks by a key always gets an answer."""
    if situation.invoked:
        return None
    word = word_before(situation.before)
    if not rules.inside_words and word and is_word(situation.after[:1]):
        return "the cursor is inside a word"
    if situation.menu and len(word) < rules.min_prefix and (word or situation.before.strip()):
        return f"the word has fewer than {rules.min_prefix} characters"
    return None


def word_before(line: str) -> str:
    """The word that ends at the end of `line`; "" where none does."""
    match = _WORD.search(line)
    return match[0] if match else ""


def is_word(character: str) -> bool:
    """Whether a character can stand in a name."""
    return character.isalnum() or character == "_"


def switched_off(*, enabled: bool, secrets: Iterable[str], path: str) -> str | None:
    """Why a file gets no suggestions at all, asked for or not."""
    from assistant.config.overrides import matches_glob

    if not enabled:
        return "suggestions are switched off for this file"
    if any(matches_glob(pattern, "/", path) for pattern in secrets):
        return "the file may hold secrets"
    return None
