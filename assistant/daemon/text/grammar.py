"""Languages with a grammar: whether a place is code, and whether a text is well formed.

tree-sitter parses what is broken too, and marks it; a document that is being edited nearly always is somewhere. So only
what lies near the cursor counts.
"""

import functools
import importlib
from collections.abc import Iterator

from tree_sitter import Language, Node, Parser, Point, Tree

from assistant.daemon.text.languages import canonical

_GRAMMARS = {
    "python": ("tree_sitter_python", "language"),
    "javascript": ("tree_sitter_javascript", "language"),
    "typescript": ("tree_sitter_typescript", "language_tsx"),
    "go": ("tree_sitter_go", "language"),
    "rust": ("tree_sitter_rust", "language"),
    "java": ("tree_sitter_java", "language"),
    "c": ("tree_sitter_c", "language"),
    "cpp": ("tree_sitter_cpp", "language"),
    "bash": ("tree_sitter_bash", "language"),
}
_TEXT = ("string", "comment", "char", "template", "heredoc", "raw_text", "regex")


@functools.cache
def language(name: str) -> Language | None:
    """The grammar of a language, or None where there is none."""
    entry = _GRAMMARS.get(canonical(name))
    return None if entry is None else Language(getattr(importlib.import_module(entry[0]), entry[1])())


def parse(name: str, text: str) -> Tree | None:
    """The syntax tree of a text, or None where the language has no grammar."""
    grammar = language(name)
    return None if grammar is None else Parser(grammar).parse(text.encode(errors="replace"))


def is_code(name: str, head: str, tail: str) -> bool:
    """Whether a grammar is sure that the place between two texts is in no string or comment."""
    tree = parse(name, head + tail)
    if tree is None:
        return False
    at = len(head.encode(errors="replace"))
    node = tree.root_node.descendant_for_byte_range(max(0, at - 1), at)
    while node is not None:
        if node.is_error or (any(word in node.type for word in _TEXT) and node.start_byte < at):
            return False
        node = node.parent
    return True


def errors(name: str, text: str, first: int, last: int) -> int | None:
    """How many places of the lines `first` to `last` (from 0) are not well formed; None without a grammar."""
    tree = parse(name, text)
    if tree is None:
        return None
    return sum(1 for node in _broken(tree.root_node) if _touches(node, first, last)) if tree.root_node.has_error else 0


def _broken(node: Node) -> Iterator[Node]:
    if node.is_error or node.is_missing:
        yield node
    elif node.has_error:
        for child in node.children:
            yield from _broken(child)


def _touches(node: Node, first: int, last: int) -> bool:
    start: Point = node.start_point
    end: Point = node.end_point
    return start.row <= last and end.row >= first
