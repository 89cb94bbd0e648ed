"""Whether a completion writes again what follows it; counted apart from the policy that is to prevent it."""

from collections import Counter

_CLOSERS = {")": "(", "]": "[", "}": "{"}


def repeats_what_follows(prefix: str, text: str, suffix: str) -> bool:
    """Whether `text` between the two holds the next line, ends with the rest of its line, or closes it twice."""
    if not text.strip():
        return False
    rest, _, lower = suffix.partition("\n")
    before = prefix.rpartition("\n")[2]
    own_line = "\n" in text and text.rpartition("\n")[2].strip() == "" and not before.strip()
    if rest.strip() and not own_line and _ends_with_rest(text, rest.strip()):
        return True
    following = [
        line for line in ([rest] if own_line or not before.strip() else []) + lower.split("\n") if line.strip()
    ]
    lines = [_bare(line) for line in (before + text).split("\n")]
    return bool(following) and any(c.isalnum() for c in following[0]) and _bare(following[0]) in lines


def _ends_with_rest(text: str, rest: str) -> bool:
    """The rest of the line is there again; a lone closing bracket only where the text did not open it."""
    if not text.rstrip().endswith(rest):
        return False
    counts = Counter(text)
    unopened = any(counts[close] > counts[opened] for close, opened in _CLOSERS.items() if close in rest)
    return unopened or any(char.isalnum() for char in rest)


def _bare(line: str) -> str:
    return "".join(line.split())
