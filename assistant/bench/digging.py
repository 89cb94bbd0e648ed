"""Makes holes in source files as people who use an editor leave them; the same files and seed give the same holes."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from random import Random

from assistant.bench.holes import Hole
from assistant.config.languages import language_of
from assistant.daemon.context.facts import definitions_of
from assistant.daemon.context.ranking import names_imported
from assistant.daemon.text.languages import syntax_of
from assistant.daemon.text.scan import code_of, quoted, scan

_LEXEME = re.compile(r"\w+|[^\w\s]")
_BRACKETED = re.compile(r"[(\[](?P<inside>[^()\[\]{}\n]{3,60})(?P<rest>[)\]][)\];:,{]*[ ]?\{?)$")
_IMPORT = re.compile(r"^(?:import|from|use|#\s*include|const\s+\w+\s*=\s*require|source|load|export \* from)\b.*\S")
_REMARK = re.compile(r"^[ \t]*(?:///?|\*|#|--|\"\"\")[ \t]*(?P<text>[A-Z][^\n]{20,90})$")
_LEAST, _MOST = 8, 100
"""characters of a line that a hole is made in"""
_OTHERS, _OTHER_CHARACTERS = 12, 40_000
_BY_NAME = frozenset({"python", "javascript", "typescript", "rust"})
"""languages in which a file says which names it takes from others"""
_NAME = re.compile(r"(?<![\w.:])[^\W\d]\w{3,}")
_PLAIN = re.compile(r"[a-z]+")
"""as likely a word of the language, or a name of the file's own, as one from another file where nothing says so"""
KINDS = ("mid-line", "rest-of-line", "in-brackets", "new-line", "docstring", "import")


@dataclass(frozen=True, slots=True)
class Source:
    """One file of a package."""

    package: str
    path: str
    """begins with the package's name"""
    text: str

    @property
    def language(self) -> str:
        """An LSP language id."""
        return "cpp" if self.path.endswith(".h") else language_of(self.path) or "shellscript"


def dig(sources: Sequence[Source], each: int, seed: int = 0) -> list[Hole]:
    """At most `each` holes a language and kind, spread over the files."""
    random = Random(seed)  # noqa: S311
    by_language: dict[str, list[Source]] = {}
    for source in sources:
        by_language.setdefault(source.language, []).append(source)
    holes = []
    for language in sorted(by_language):
        for kind in KINDS:
            files = by_language[language][:]
            random.shuffle(files)
            holes += _of_kind(kind, files, each, random)
    return holes


def dig_across(sources: Sequence[Source], count: int, seed: int = 0) -> list[Hole]:
    """At most `count` holes whose answer begins with a name that another file of the package defines, and one alone.

    The packages have equal parts, as far as their files go.
    """
    random = Random(seed)  # noqa: S311
    packages: dict[str, list[Source]] = {}
    for source in sources:
        packages.setdefault(source.package, []).append(source)
    found = [_across(packages[package], random) for package in sorted(packages)]
    for holes in found:
        random.shuffle(holes)
    in_turn = [hole for turn in zip_longest(*found) for hole in turn if hole is not None]
    return sorted(in_turn[:count], key=lambda hole: hole.name)


def _of_kind(kind: str, files: Sequence[Source], each: int, random: Random) -> list[Hole]:
    found: list[Hole] = []
    for source in [*files] * 4:
        if len(found) == each:
            break
        places = list(_MAKERS[kind](source, random))
        if places:
            start, end = random.choice(places)
            hole = _hole(source, kind, start, end)
            if hole.name not in {other.name for other in found}:
                found.append(hole)
    return found


def _hole(source: Source, kind: str, start: int, end: int, files: tuple[tuple[str, str], ...] = ()) -> Hole:
    text = source.text
    line = text.count("\n", 0, start) + 1
    name = f"{source.path}:{line}:{kind}"
    return Hole(name, source.path, source.language, kind, text[:start], text[end:], text[start:end], None, files)


def _lines(source: Source) -> Iterator[tuple[int, str]]:
    """Lines of code that are worth completing, with the index of their first character that is not blank."""
    syntax = syntax_of(source.language)
    at = 0
    for number, line in enumerate(source.text.split("\n")):
        code = code_of(line, syntax)
        lead = len(line) - len(line.lstrip())
        if number > 3 and _LEAST <= len(code) <= _MOST and code == line.strip() and not _IMPORT.match(code):
            yield at + lead, code
        at += len(line) + 1


def _outside_text(source: Source, start: int) -> bool:
    here = scan(source.text[:start], syntax_of(source.language))
    return not here.commented and not quoted(here.stack)


def _mid_line(source: Source, random: Random) -> Iterator[tuple[int, int]]:
    for at, code in _lines(source):
        lexemes = list(_LEXEME.finditer(code))
        if len(lexemes) >= 8:
            first = random.randrange(2, len(lexemes) - 4)
            last = random.randrange(first + 1, len(lexemes) - 2)
            yield at + lexemes[first].start(), at + lexemes[last].end()


def _rest_of_line(source: Source, random: Random) -> Iterator[tuple[int, int]]:
    for at, code in _lines(source):
        lexemes = list(_LEXEME.finditer(code))
        if len(lexemes) >= 4:
            yield at + lexemes[random.randrange(1, len(lexemes) - 2)].end(), at + len(code)


def _in_brackets(source: Source, random: Random) -> Iterator[tuple[int, int]]:
    del random
    for at, code in _lines(source):
        match = _BRACKETED.search(code)
        if match is not None:
            yield at + match.start("inside"), at + match.end("inside")


def _new_line(source: Source, random: Random) -> Iterator[tuple[int, int]]:
    del random
    for at, code in _lines(source):
        if source.text[at - 1 : at] in {" ", "\t"} and any(char.isalnum() for char in code):
            yield at, at + len(code)


def _docstring(source: Source, random: Random) -> Iterator[tuple[int, int]]:
    at = 0
    for line in source.text.split("\n"):
        match = _REMARK.match(line)
        if match is not None and at > 0:
            words = list(re.finditer(r"\w+", match["text"]))
            word = words[random.randrange(1, max(2, len(words) - 2))]
            yield at + match.start("text") + word.end(), at + len(line)
        at += len(line) + 1


def _import(source: Source, random: Random) -> Iterator[tuple[int, int]]:
    del random
    at = 0
    for number, line in enumerate(source.text.split("\n")):
        if number and _IMPORT.match(line) and len(line) < _MOST:
            yield at, at + len(line)
        at += len(line) + 1


_MAKERS: Mapping[str, Callable[[Source, Random], Iterator[tuple[int, int]]]] = {
    "mid-line": _mid_line,
    "rest-of-line": _rest_of_line,
    "in-brackets": _in_brackets,
    "new-line": _new_line,
    "docstring": _docstring,
    "import": _import,
}


def _across(files: Sequence[Source], random: Random) -> list[Hole]:
    definers: dict[str, set[str]] = {}
    for source in files:
        for definition in definitions_of(source.text, source.language):
            if definition.indent == 0:
                definers.setdefault(definition.name, set()).add(source.path)
    holes = []
    for source in files:
        stated = names_imported(source.text) if source.language in _BY_NAME else None
        taken = {name for name in definers if (name in stated if stated is not None else not _PLAIN.fullmatch(name))}
        taken -= {definition.name for definition in definitions_of(source.text, source.language)}
        places = [
            (at + match.start(), at + len(code))
            for at, code in _lines(source)
            for match in _NAME.finditer(code)
            if match.start() and match[0] in taken and len(definers[match[0]]) == 1
        ]
        random.shuffle(places)
        others = [other for other in files if other is not source and len(other.text) <= _OTHER_CHARACTERS]
        for start, end in [place for place in places if _outside_text(source, place[0])][:3]:
            (owner,) = definers[re.match(r"\w+", source.text[start:])[0]]  # type: ignore[index]
            near = sorted(others, key=lambda other: (other.path != owner, other.path))[:_OTHERS]
            if near and near[0].path == owner:
                chosen = tuple((other.path, other.text) for other in sorted(near, key=lambda other: other.path))
                holes.append(_hole(source, "cross-file", start, end, chosen))
    return holes
