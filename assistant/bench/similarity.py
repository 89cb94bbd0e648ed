"""How alike two texts are."""


def similarity(one: str, other: str) -> float:
    """1 less the Levenshtein distance over the longer length: 1 for equal texts, 0 for texts with nothing in common."""
    if not one and not other:
        return 1.0
    row = list(range(len(other) + 1))
    for i, left in enumerate(one, start=1):
        diagonal, row[0] = row[0], i
        for j, right in enumerate(other, start=1):
            diagonal, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, diagonal + (left != right))
    return 1.0 - row[-1] / max(len(one), len(other))
