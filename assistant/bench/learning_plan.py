"""What a measurement of learning does: the parts of a repository, the places in them, and how much is learned."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from assistant.bench.digging import Source, dig
from assistant.bench.holes import Hole
from assistant.daemon.prompt import DEFAULT_WINDOW, Window
from assistant.errors import UsageError
from assistant.files import ensure_dir, write_atomic
from models.training.corpus import Exclusion, SourceFile, read_corpus

_PLAN = "plan.json"
_FILES = 2000
"""of a language, at most"""
_SEEDS = {"learned": 0, "held-out": 1}


@dataclass(frozen=True, slots=True)
class Plan:
    """What is learned from and measured; a folder holds the work of one plan."""

    repository: str
    model: str
    precision: str
    head: str
    """that the daemon drafts with, and that training goes on from"""
    share: float
    """of the files are held out"""
    places: int
    """of a language and kind of place, completed in files that are learned from"""
    measured: int
    """as many at most, in held-out files"""
    window: int
    """tokens that are read before a place; after it a sixth of that, as by default"""
    max_tokens: int
    """of a measured completion"""
    steps: int
    learning_rate: float

    def reads(self) -> Window:
        """How much is read around a place."""
        return Window(self.window, self.window * DEFAULT_WINDOW.suffix // DEFAULT_WINDOW.prefix)


@dataclass(frozen=True, slots=True)
class Parts:
    """A repository's places, the files' and their own."""

    files: Mapping[str, int]
    """how many there are, "learned" and "held-out" """
    learned: Sequence[Hole]
    held_out: Sequence[Hole]


def keep_plan(out: Path, plan: Plan) -> None:
    """Remember what a folder's work is for.

    Raises:
        UsageError: it is for something else.
    """
    path = ensure_dir(out) / _PLAN
    text = json.dumps(asdict(plan), indent=1)
    if path.exists() and path.read_text(encoding="utf-8") != text:
        raise UsageError(f"{out} holds a measurement with other options: give those again, or name another folder.")
    write_atomic(path, text.encode())


def part(repository: Path, plan: Plan) -> Parts:
    """Part a repository's files, and choose places in both parts; the same files give the same ones.

    Raises:
        UsageError: there are too few files to part.
    """
    corpus = read_corpus((repository,), Exclusion(), files_per_language=_FILES, held_out_share=plan.share)
    files = {
        name: [_source(repository, file) for file in corpus if file.held_out == (name == "held-out")] for name in _SEEDS
    }
    each = {"learned": plan.places, "held-out": plan.measured}
    places = {
        name: sorted(dig(files[name], each[name], seed), key=lambda hole: (hole.path, len(hole.prefix)))
        for name, seed in _SEEDS.items()
    }
    if not all(places.values()):
        raise UsageError(f"{repository} holds too few source files to learn from some and measure on others.")
    counts = {name: len(found) for name, found in files.items()}
    return Parts(counts, places["learned"], places["held-out"])


def _source(repository: Path, file: SourceFile) -> Source:
    return Source(repository.name, f"{repository.name}/{Path(file.path).relative_to(repository)}", file.text)
