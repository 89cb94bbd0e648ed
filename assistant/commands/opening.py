"""From options to a session that is ready to complete, with progress on a terminal while models load."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from assistant.commands.options import ModelOptions
from assistant.errors import UsageError

if TYPE_CHECKING:
    from assistant.engine.session import Session
    from models.draft_head import DraftHead
    from models.hashes import Progress
    from models.loading import LoadedModel
    from models.target import Target, TargetSpec
    from models.tokenizer import Tokenizer

METHODS = ("auto", "plain", "ngram", "sps", "eagle1", "eagle2", "best-first", "hybrid", "adaptive")
"""what `--method` takes; the engine's own list (`assistant.engine.methods`) would load torch"""
HEAD_METHODS = frozenset({"auto", "eagle1", "eagle2", "best-first", "hybrid", "adaptive"})
DEFAULT_DRAFTS = {"qwen2.5-coder-1.5b": "qwen2.5-coder-0.5b"}
"""target -> the smaller model of its family that drafts for it"""


@dataclass(frozen=True, slots=True)
class Opened:
    """A session and what reports say about it."""

    session: "Session"
    tokenizer: "Tokenizer"
    method: str
    load_ms: float

    @property
    def spec(self) -> "TargetSpec":
        """The facts about the target."""
        return self.session.target.spec


def check_method(method: str, options: ModelOptions, draft: str | None) -> str | None:
    """The draft model for a method, or None where it takes none.

    Raises:
        UsageError: options that contradict the method.
    """
    if options.head is not None and method not in HEAD_METHODS:
        raise UsageError(f"--method {method} uses no draft head; leave out --head or choose --method eagle2.")
    if method != "sps":
        if draft is not None:
            raise UsageError(f"--method {method} uses no draft model; leave out --draft or choose --method sps.")
        return None
    found = draft or DEFAULT_DRAFTS.get(options.model or "")
    if found is None:
        raise UsageError("--method sps needs a smaller model of the same family to draft with: add --draft NAME.")
    return found


def open_session(method: str, options: ModelOptions, draft: str | None, *, show: bool) -> Opened:
    """Load target, drafter and tokenizer.

    Raises:
        UserError: the model, head or draft model is missing or unusable.
    """
    started = time.perf_counter()
    with loading(show=show) as progress:
        from assistant.engine.methods import make_drafter, resolve_method
        from assistant.engine.session import Session
        from models.catalog import DEFAULT_MODEL
        from models.loading import load

        loaded = load(options.model or DEFAULT_MODEL, options.precision, options.device, progress=progress)
        head = _head(method, options, loaded.target) if method in HEAD_METHODS else None
        chosen = resolve_method(method)
        drafting = load(draft, options.precision, options.device, progress=progress).target if draft else None
        session = Session(loaded.target, make_drafter(chosen, loaded.target, head=head, draft=drafting))
    return Opened(session, loaded.tokenizer, chosen, (time.perf_counter() - started) * 1000)


def load_model(options: ModelOptions, precision: str | None = None, *, show: bool = False) -> "LoadedModel":
    """The model that options name, in their precision or another one, with its progress where it is to be shown."""
    with loading(show=show) as progress:
        from models.catalog import DEFAULT_MODEL
        from models.loading import load

        return load(options.model or DEFAULT_MODEL, precision or options.precision, options.device, progress=progress)


def _head(method: str, options: ModelOptions, target: "Target") -> "DraftHead | None":
    from models.loading import find_head, load_head

    return find_head(options.head, target) if method in {"auto", "adaptive"} else load_head(options.head, target)


@contextmanager
def loading(*, show: bool) -> Iterator["Progress"]:
    """A progress display on stderr, gone when the block ends; silent where stderr is no terminal, or not `show`."""
    if not (show and sys.stderr.isatty()):
        yield lambda *_: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, SpinnerColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bars

    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Bars(*columns, console=Console(stderr=True), transient=True) as bars:
        task = bars.add_task("loading", total=None)

        def progress(stage: str, done: int, total: int) -> None:
            bars.update(task, description=stage, completed=done, total=total or None)

        yield progress
