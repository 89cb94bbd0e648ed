"""What a source file defines, imports and names, by its surface: enough to find the file that a name comes from."""

import re
from dataclasses import dataclass

from assistant.daemon.text.languages import canonical

_MOST = 400
"""definitions kept of one file"""
_NAME = r"(?P<name>[^\W\d]\w*)"
_MODIFIERS = (
    r"(?:(?:export|default|public|private|protected|static|final|abstract|async|pub(?:\([^)]*\))?|unsafe|const)\s+)*"
)
_DEFINITIONS = {
    "python": rf"^(?P<lead>[ \t]*)(?:(?:async\s+)?def|class)\s+{_NAME}|^(?P<constant>[A-Z][A-Z0-9_]+)\s*(?::[^=\n]+)?=",
    "javascript": rf"^(?P<lead>[ \t]*){_MODIFIERS}(?:function\*?|class|interface|type|enum|let|var|const)\s+{_NAME}",
    "go": rf"^(?P<lead>)(?:func\s+(?:\([^)]*\)\s*)?|type\s+|var\s+|const\s+){_NAME}",
    "rust": rf"^(?P<lead>[ \t]*){_MODIFIERS}(?:fn|struct|enum|trait|type|static|mod|const|macro_rules!)\s+{_NAME}",
    "java": rf"^(?P<lead>[ \t]*)(?:@\w+\s+)*{_MODIFIERS}"
    rf"(?:class|interface|enum|record|[\w<>\[\],. ]+?)\s+{_NAME}\s*[({{]",
    "cpp": rf"^(?P<lead>[ \t]*)(?:(?:class|struct|enum(?:\s+class)?|namespace)\s+|#define\s+|[\w:<>&*,\s]+?[\s&*])"
    rf"{_NAME}\s*[({{]",
    "bash": rf"^(?P<lead>[ \t]*)(?:function\s+)?{_NAME}\s*\(\)",
    "ruby": rf"^(?P<lead>[ \t]*)(?:def\s+(?:self\.)?|class\s+|module\s+){_NAME}",
}
_DEFINITIONS["typescript"] = _DEFINITIONS["javascript"]
_DEFINITIONS["c"] = _DEFINITIONS["cpp"]
_DEFINITIONS["kotlin"] = _DEFINITIONS["scala"] = _DEFINITIONS["csharp"] = _DEFINITIONS["java"]
_COMPILED = {name: re.compile(pattern, re.MULTILINE) for name, pattern in _DEFINITIONS.items()}
_IMPORT = re.compile(
    r"^[ \t]*(?:.*?(?:from|require\(|import\()\s*['\"](?P<script>[^'\"\n]+)|import\s+(?:\w+\s+)?\"(?P<go>[^\"\n]+)"
    r"|from\s+(?P<python>[.\w]+)\s+import|import\s+(?P<plain>[\w.*]+)|use\s+(?P<rust>[\w:]+)"
    r"|#\s*include\s*[\"<](?P<c>[^\">\n]+)|(?:source|\.)\s+(?P<shell>\S+))",
    re.MULTILINE,
)
_KEYWORDS = frozenset({"if", "for", "while", "switch", "return", "else", "catch", "new", "case", "throw", "sizeof"})


@dataclass(frozen=True, slots=True)
class Definition:
    """A name and the line that it is defined in."""

    name: str
    line: int
    """from 0"""
    indent: int


@dataclass(frozen=True, slots=True)
class Facts:
    """A file in the index."""

    path: str
    """relative to its workspace, with slashes"""
    size: int
    modified: int
    """nanoseconds, as the file system says"""
    definitions: tuple[Definition, ...]
    imports: tuple[str, ...]
    """the last parts of what it imports"""


def knows(language: str) -> bool:
    """Whether the definitions of a language can be told."""
    return canonical(language) in _COMPILED


def definitions_of(text: str, language: str) -> tuple[Definition, ...]:
    """What a text defines, in its order."""
    pattern = _COMPILED.get(canonical(language))
    if pattern is None:
        return ()
    found: list[Definition] = []
    line = at = 0
    for match in pattern.finditer(text):
        groups = match.groupdict()
        name = groups.get("name") or groups.get("constant") or ""
        if name in _KEYWORDS or not name:
            continue
        start = match.start("name") if groups.get("name") else match.start()
        line, at = line + text.count("\n", at, start), start
        found.append(Definition(name, line, len((groups.get("lead") or "").expandtabs(4))))
        if len(found) == _MOST:
            break
    return tuple(found)


def imports_of(text: str) -> tuple[str, ...]:
    """The last parts of the module names that a text imports: `b` of `a.b`, `./x/b.js` and `<x/b.h>`."""
    names = []
    for match in _IMPORT.finditer(text):
        whole = next((found for found in match.groups() if found), "")
        last = re.split(r"[./:\\]+", re.sub(r"\.(?:js|ts|jsx|tsx|mjs|h|hpp|hh|sh)$", "", whole).rstrip(".*"))[-1]
        if last:
            names.append(last)
    return tuple(dict.fromkeys(names))
