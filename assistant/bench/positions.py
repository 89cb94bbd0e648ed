"""Whether the adaptive tree is fitted to the code: the first step's tree at places labelled boilerplate or logic.

The rule, which looks at nothing that a model says: a line that stood before in its file, but for its indentation, is
*boilerplate*. One whose shape, that is the line with names, numbers and quoted text made alike, stood nowhere before,
and which decides or computes something (a condition, a loop, a return, an assignment of more than a name or a
constant), is *logic*. Other lines have no label. A place lies behind the first third of the line's content.
"""

import itertools
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

import numpy as np
import torch

from assistant.bench.stats import spread
from assistant.bench.tables import Column, number, with_spread
from assistant.engine.draft import Drafter
from assistant.engine.generate import generate
from assistant.engine.session import Session
from assistant.engine.tree import TreeShape
from assistant.engine.types import GenerateOptions, Prompt
from models.target import Cache, Forward, Target
from models.tokenizer import Tokenizer

LABELS = ("boilerplate", "logic")
FIGURES = ("depth", "width", "nodes", "entropy")
COLUMNS = (
    Column("", lambda row: str(row["figure"]), left=True),
    *(Column(label, with_spread(label, f"{label}_spread")) for label in LABELS),
    Column("by chance", number("chance", ".4f")),
)
_QUOTED = re.compile(r"\"[^\"]*\"|'[^']*'|`[^`]*`")
_NAME = re.compile(r"\w+")
_KEYWORDS = "if else elif for while return import from def class in not and or"
_KEPT = frozenset(_KEYWORDS.split())
_DECIDES = re.compile(r"^\s*(if|elif|while|for|return|switch|case)\b|[^=!<>]=\s*[^=].*[-+*/%<>&|(\[]")
_LEAST, _MOST = 12, 100
"""characters of a line's content"""
_DRAWS = 5000


@dataclass(frozen=True, slots=True)
class Position:
    """A place with its label."""

    label: str
    before: str
    """the file's text up to the place"""


def shape_of(line: str) -> str:
    """A line with names, numbers and quoted text made alike."""
    plain = _QUOTED.sub('""', line.strip())
    return _NAME.sub(lambda found: found[0] if found[0] in _KEPT else "x", plain)


def positions_of(text: str) -> list[Position]:
    """The labelled places of a file, in order."""
    lines: set[str] = set()
    shapes: set[str] = set()
    found: list[Position] = []
    start = 0
    for line in text.splitlines(keepends=True):
        shape, content = shape_of(line), line.strip()
        label = _label(content, repeated=content in lines, known=shape in shapes)
        if label is not None:
            indent = len(line) - len(line.lstrip())
            found.append(Position(label, text[: start + indent + len(content) // 3]))
        lines.add(content)
        shapes.add(shape)
        start += len(line)
    return found


def _label(content: str, *, repeated: bool, known: bool) -> str | None:
    if not _LEAST <= len(content) <= _MOST:
        return None
    if repeated:
        return "boilerplate"
    return "logic" if not known and _DECIDES.search(content) else None


def choose(texts: Sequence[str], each: int, seed: int = 0) -> list[Position]:
    """`each` places of each label, drawn evenly over the files; fewer where there are not so many."""
    random = Random(seed)  # noqa: S311 - nothing secret
    chosen: list[Position] = []
    for label in LABELS:
        files = [[place for place in positions_of(text) if place.label == label] for text in texts]
        for places in files:
            random.shuffle(places)
        taken: list[Position] = []
        while len(taken) < each and any(files):
            taken += [places.pop() for places in files if places][: each - len(taken)]
        chosen += taken
    return chosen


def look(
    target: Target,
    tokenizer: Tokenizer,
    new_drafter: Callable[[], Drafter],
    positions: Sequence[Position],
    shape: TreeShape,
    *,
    window: int = 192,
    progress: Callable[[int, int], None] = lambda *_: None,
) -> list[dict[str, Any]]:
    """The first step's tree at each place, a row each.

    Args:
        target: int8 or any other.
        tokenizer: its own.
        new_drafter: of the method that adapts.
        positions: the places.
        shape: the tree's bounds.
        window: tokens before the place that are read.
        progress: told how many are done.
    """
    rows = []
    for done, position in enumerate(positions, start=1):
        ids = tuple(tokenizer.encode(position.before[-8 * window :])[-window:])
        listening = _Listening(target)
        # As many tokens as leave the tree its full depth; the second result is the first step's.
        options = GenerateOptions(3 + shape.depth, tree=shape)
        _, step = itertools.islice(generate(Session(listening, new_drafter()), Prompt(ids), options), 2)
        tree = step.tree
        rows.append(
            {
                "label": position.label,
                "depth": tree.depth,
                "width": tree.width if tree.drafted else 0,
                "nodes": tree.drafted,
                "entropy": listening.entropy,
            }
        )
        progress(done, len(positions))
    return rows


class _Listening:
    """A target that remembers how unsure it was of its first token."""

    def __init__(self, target: Target) -> None:
        self.spec = target.spec
        self.entropy: float = float("nan")
        self._target = target

    def forward(
        self,
        ids: torch.Tensor,
        positions: torch.Tensor,
        cache: Cache,
        mask: torch.Tensor | None = None,
        *,
        last_only: bool = False,
    ) -> Forward:
        out = self._target.forward(ids, positions, cache, mask, last_only=last_only)
        if last_only:
            log_probs = out.logits[-1].float().log_softmax(-1)
            self.entropy = float(-(log_probs.exp() * log_probs).sum())
        return out

    def embed(self, ids: torch.Tensor) -> torch.Tensor:
        return self._target.embed(ids)

    def head_rows(self, ids: torch.Tensor) -> torch.Tensor:
        return self._target.head_rows(ids)


def compare(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """For each figure its spread by label, and how probable so large a difference of means is by chance.

    The probability is that of a permutation test, two-sided, over the places' labels.
    """
    found = []
    for figure in FIGURES:
        values = np.array([float(row[figure]) for row in rows])
        first = np.array([row["label"] == LABELS[0] for row in rows])
        sides = {label: values[first == (label == LABELS[0])] for label in LABELS}
        if not all(len(side) for side in sides.values()):
            continue
        found.append(
            {
                "figure": figure,
                **{label: float(side.mean()) for label, side in sides.items()},
                **{f"{label}_spread": spread(side.tolist()).to_json() for label, side in sides.items()},
                "chance": _chance(values, first),
            }
        )
    return found


def _chance(values: "np.typing.NDArray[np.float64]", first: "np.typing.NDArray[np.bool_]") -> float:
    random = np.random.default_rng(0)
    size = int(first.sum())
    observed = abs(values[first].mean() - values[~first].mean())
    reached = 0
    for _ in range(_DRAWS):
        drawn = random.permutation(values)
        reached += abs(drawn[:size].mean() - drawn[size:].mean()) >= observed - 1e-12
    return (reached + 1) / (_DRAWS + 1)
