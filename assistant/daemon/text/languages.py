"""What the policy knows of a language's surface: comments, strings, brackets, and how blocks are written.

It is enough to tell code from text in it, and to count what is open. Where a grammar exists (`grammar`), that has the
last word.
"""

import re
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal

Blocks = Literal["indent", "braces", "words", "none"]


@dataclass(frozen=True, slots=True)
class Quote:
    """A string literal or a block comment."""

    open: str
    close: str
    multiline: bool = False
    escapes: bool = True
    comment: bool = False


@dataclass(frozen=True)
class Syntax:
    """The surface of one language."""

    blocks: Blocks
    """what bounds a block: indentation after a colon, braces, words, or nothing that is known"""
    line_comments: tuple[str, ...] = ()
    """regular expressions of what begins a comment"""
    quotes: tuple[Quote, ...] = ()
    """longer openings first"""
    atoms: tuple[str, ...] = ()
    """regular expressions of literals that may hold quotes or brackets"""
    clauses: frozenset[str] = frozenset()
    """first words of a line that continue a compound statement at its own indentation"""
    opening_words: dict[str, str] = field(default_factory=dict)
    """words that open a block at the start of a command, and those that close it"""

    @cached_property
    def tokens(self) -> re.Pattern[str]:
        """Everything that can change what is open, one named group a kind."""
        quotes = "|".join(re.escape(quote.open) for quote in self.quotes)
        words = sorted({*self.opening_words, *self.opening_words.values()})
        parts = {
            "comment": "|".join(f"(?:{mark})[^\\n]*" for mark in self.line_comments),
            "atom": "|".join(self.atoms),
            "quote": quotes,
            "open": r"[(\[{]",
            "close": r"[)\]}]",
            "word": rf"(?<![\w$.-])(?:{'|'.join(words)})(?![\w-])" if words else "",
        }
        return re.compile("|".join(f"(?P<{name}>{part})" for name, part in parts.items() if part), re.DOTALL)

    @cached_property
    def by_opening(self) -> dict[str, Quote]:
        """Quotes by what opens them."""
        return {quote.open: quote for quote in self.quotes}

    @cached_property
    def closing_words(self) -> frozenset[str]:
        """Words that close a block."""
        return frozenset(self.opening_words.values())


_DOUBLE, _SINGLE = Quote('"', '"'), Quote("'", "'")
_STARRED = Quote("/*", "*/", multiline=True, escapes=False, comment=True)
_TRIPLE = (Quote('"""', '"""', multiline=True), Quote("'''", "'''", multiline=True))
_REGEX = r"(?<=[=(,:!&|?;\[])[ ]?/(?![/*])(?:\\.|\[(?:\\.|[^\]\\\n])*\]|[^/\\\n\[])+/"
_ELSE = frozenset({"else", "catch", "finally", "while"})

_C = Syntax("braces", ("//",), (_STARRED, _DOUBLE, _SINGLE), clauses=_ELSE)
_SCRIPT = replace(_C, quotes=(*_C.quotes, Quote("`", "`", multiline=True)), atoms=(_REGEX,))
_PYTHON = Syntax(
    "indent",
    ("#",),
    (*_TRIPLE, _DOUBLE, _SINGLE),
    clauses=frozenset({"else", "elif", "except", "finally", "case"}),
)
_SHELL = Syntax(
    "words",
    (r"(?<![^\s;(])#",),
    (Quote('"', '"', multiline=True), Quote("'", "'", multiline=True, escapes=False)),
    atoms=(r"\\.", r"\$\{?#", r"\$\("),
    clauses=frozenset({"else", "elif", "then", "do"}),
    opening_words={"if": "fi", "case": "esac", "do": "done"},
)
_RUBY = Syntax(
    "words",
    ("#",),
    (_DOUBLE, _SINGLE),
    clauses=frozenset({"else", "elsif", "rescue", "ensure", "when", "in"}),
    opening_words=dict.fromkeys(("def", "class", "module", "do", "begin", "case", "if", "unless", "while"), "end"),
)
_LUA = Syntax(
    "words",
    ("--",),
    (Quote("--[[", "]]", multiline=True, escapes=False, comment=True), _DOUBLE, _SINGLE),
    clauses=frozenset({"else", "elseif", "until"}),
    opening_words=dict.fromkeys(("function", "do", "then"), "end"),
)
_PROSE = Syntax("none")
_SYNTAXES = {
    "python": _PYTHON,
    "javascript": _SCRIPT,
    "typescript": _SCRIPT,
    "go": replace(_C, quotes=(*_C.quotes, Quote("`", "`", multiline=True, escapes=False))),
    "rust": replace(
        _C,
        quotes=(_STARRED, Quote('"', '"', multiline=True)),
        atoms=(r'r(?P<hash>#+)".*?"(?P=hash)', r"'(?:\\[^'\n]+|[^'\\\n])'"),
    ),
    "java": replace(_C, quotes=(_STARRED, _TRIPLE[0], _DOUBLE, _SINGLE)),
    "cpp": replace(_C, atoms=(r'R"(?P<tag>\w*)\(.*?\)(?P=tag)"', r"(?<=\d)'(?=\d)")),
    "c": _C,
    "csharp": _C,
    "kotlin": replace(_C, quotes=(_STARRED, _TRIPLE[0], _DOUBLE, _SINGLE)),
    "swift": replace(_C, quotes=(_STARRED, _TRIPLE[0], _DOUBLE)),
    "scala": replace(_C, quotes=(_STARRED, _TRIPLE[0], _DOUBLE)),
    "dart": replace(_C, quotes=(_STARRED, *_TRIPLE, _DOUBLE, _SINGLE)),
    "php": replace(_C, line_comments=("//", "#")),
    "css": Syntax("braces", (), (_STARRED, _DOUBLE, _SINGLE)),
    "scss": _C,
    "json": Syntax("braces", (), (_DOUBLE,)),
    "jsonc": Syntax("braces", ("//",), (_STARRED, _DOUBLE)),
    "bash": _SHELL,
    "ruby": _RUBY,
    "lua": _LUA,
    "sql": Syntax("none", ("--",), (_STARRED, _SINGLE)),
    "yaml": Syntax("indent", (r"(?<!\S)#",), (_DOUBLE, _SINGLE)),
    "toml": Syntax("none", ("#",), (*_TRIPLE, _DOUBLE, _SINGLE)),
}
_ALIASES = {
    "javascriptreact": "javascript",
    "typescriptreact": "typescript",
    "shellscript": "bash",
    "sh": "bash",
    "zsh": "bash",
    "c++": "cpp",
    "cuda-cpp": "cpp",
    "objective-c": "c",
    "golang": "go",
    "less": "scss",
    "jsx": "javascript",
    "tsx": "typescript",
}


def canonical(language: str) -> str:
    """The name that tables here know a language by."""
    return _ALIASES.get(language.lower(), language.lower())


def syntax_of(language: str) -> Syntax:
    """The surface of a language by its LSP id; prose where it is not known."""
    return _SYNTAXES.get(canonical(language), _PROSE)
