"""Names that the lines behind a cursor use and that nothing has introduced yet: what is written there may have to.

In Python alone, whose names need no declaration, so that the lines themselves tell where each gets its first value.
"""

import builtins
import keyword
import re
from collections.abc import Sequence

from assistant.daemon.text.languages import canonical, syntax_of
from assistant.daemon.text.scan import code_of

_LINES = 8
"""following lines that are looked at"""
_MOST = 2
"""more names than these are missing for another reason: a larger part of the text is"""
_NAME = re.compile(r"(?<![\w.@])[a-z_]\w*(?!\w|\s*\()")
_STRING = re.compile(r"\"(?:\\.|[^\"\\])*\"|'(?:\\.|[^'\\])*'")
_INTRODUCED = (
    r"(?:\b(?:lambda|for|import|as|def|class|with)\b[^=]*|^\s*(?:\w+\s*,\s*)*)\b{0}\b\s*(?:[,)]|:|=(?!=)|\bin\b|$)"
)
_IMPORT = re.compile(r"\s*(?:import|from)\b")
_COMMON = frozenset((*keyword.kwlist, *keyword.softkwlist, *dir(builtins), "self", "cls"))


def wanted_names(head: str, following: Sequence[str], language: str) -> frozenset[str]:
    """Names that the next lines use, and that nothing before or among them introduces.

    Args:
        head: the document before the cursor.
        following: lines behind it that are not blank.
        language: an LSP language id.
    """
    if canonical(language) != "python":
        return frozenset()
    seen: dict[str, bool] = {}
    for line in following[:_LINES]:
        if '"""' in line or "'''" in line:
            break
        code = _STRING.sub('""', code_of(line, syntax_of(language)))
        for match in _NAME.finditer(code):
            name = match[0]
            if name not in seen and name not in _COMMON and not name.startswith("__"):
                seen[name] = _IMPORT.match(code) is None and not _introduces(code, name)
    found = [name for name, used in seen.items() if used and not mentions(head, name)]
    return frozenset(found) if len(found) <= _MOST else frozenset()


def mentions(text: str, name: str) -> bool:
    """Whether a text holds a name."""
    return re.search(rf"(?<![\w.]){re.escape(name)}(?!\w)", text) is not None


def _introduces(code: str, name: str) -> bool:
    """Whether a line of code gives a name its first value, or passes something by it."""
    introduced = re.search(_INTRODUCED.format(re.escape(name)), code)
    if introduced is None:
        return re.search(rf"[(,]\s*{re.escape(name)}\s*=(?!=)", code) is not None
    return "=" not in introduced[0] or not mentions(code[introduced.end() :], name)
