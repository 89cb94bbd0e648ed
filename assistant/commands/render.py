"""Drawing a step's draft tree for a terminal, a pipe or a file: every mark is readable without colour."""

from collections.abc import Callable

from rich.console import Group, RenderableType
from rich.text import Text
from rich.tree import Tree

from assistant.engine.types import StepResult

_MOST_CHARACTERS = 32
_PLAIN = frozenset(map(chr, range(ord("!"), ord("~") + 1))) - {"\\"}
_ESCAPES = {"\n": "\\n", "\t": "\\t", "\r": "\\r", " ": "·", "·": "\\xb7", "\\": "\\\\"}


def visible(data: bytes) -> str:
    """A token's text in one line: spaces as dots, other white space, control characters and broken bytes as escapes."""
    try:
        shown = "".join(_visible_character(char) for char in data.decode())
    except UnicodeDecodeError:  # a token may be a part of a character
        shown = "".join(chr(byte) if chr(byte) in _PLAIN else f"\\x{byte:02x}" for byte in data)
    return shown if len(shown) <= _MOST_CHARACTERS else shown[: _MOST_CHARACTERS - 1] + "…"


def _visible_character(char: str) -> str:
    return _ESCAPES.get(char) or (char if char.isprintable() else ascii(char)[1:-1])


def draw(
    number: int, step: StepResult, token_bytes: Callable[[int], bytes], *, ascii_only: bool = False
) -> RenderableType:
    """One step: a headline with its figures, the tree with the accepted path marked, and the tokens that came of it.

    Args:
        number: 0 is the prefill.
        step: what the engine answered.
        token_bytes: the exact bytes of a token.
        ascii_only: keep to ASCII marks.
    """
    mark = "*" if ascii_only else "✓"
    root = Tree(Text(f"{visible(token_bytes(step.tree.tokens[0])) or 'start'}", style="bold"), guide_style="dim")
    branches = {0: root}
    accepted = frozenset(step.accepted)
    pending = [0]
    while pending:
        parent = pending.pop()
        for child in step.tree.children[parent]:
            branches[child] = branches[parent].add(_node(step, child, token_bytes, mark if child in accepted else ""))
            pending.append(child)
    parts: list[RenderableType] = [_headline(number, step)]
    if step.tree.drafted:
        parts.append(root)
    parts.append(_written(step, token_bytes))
    return Group(*parts)


def _headline(number: int, step: StepResult) -> Text:
    tree = step.tree
    if number == 0:
        figures = f"{step.prompt_tokens} prompt tokens, {step.reused} from the cache, {step.prefill_ms:.0f} ms"
        return Text(f"prefill: {figures}", style="bold cyan")
    if not tree.drafted:
        return Text(f"step {number}: nothing drafted, verified in {step.verify_ms:.0f} ms", style="bold cyan")
    figures = f"{tree.drafted} nodes, depth {tree.depth}, width {tree.width}, {len(step.accepted)} accepted"
    times = f"drafted in {step.draft_ms:.0f} ms, verified in {step.verify_ms:.0f} ms"
    return Text(f"step {number}: {figures}; {times}", style="bold cyan")


def _node(step: StepResult, node: int, token_bytes: Callable[[int], bytes], mark: str) -> Text:
    tree = step.tree
    label = Text(no_wrap=True, style="bold green" if mark else "")
    label.append(f"{mark} " if mark else "")
    label.append(visible(token_bytes(tree.tokens[node])) or f"<token {tree.tokens[node]}>")
    label.append(f"  {tree.confidence(node):.2f}, path {tree.value(node):.3f}, {tree.origins[node]}", style="dim")
    return label


def _written(step: StepResult, token_bytes: Callable[[int], bytes]) -> Text:
    line = Text("  wrote " if step.tokens else "  wrote nothing", style="dim")
    for index, (token, origin) in enumerate(zip(step.tokens, step.origins, strict=True)):
        line.append(" " if index else "")
        line.append(visible(token_bytes(token)) or f"<token {token}>", style="bold green")
        line.append(f" ({origin.value})", style="dim")
    if step.finish is not None:
        line.append(f"  end: {step.finish.value}", style="dim")
    return line
