"""A completion by the daemon: its events as the steps that they were, without loading a model library."""

import time
from collections.abc import Generator, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from assistant import protocol
from assistant.client import Client
from assistant.commands.asked import Asked
from assistant.commands.opening import loading
from assistant.commands.sources import Source
from assistant.config.declaration import Tree
from assistant.documents import STDIN, Document, Location
from assistant.engine.tree import DraftTree, root_only
from assistant.engine.types import FinishReason, Origin, StepResult
from assistant.errors import DaemonUnavailableError, RefusedError, UserError

_NAME = "complete"
_FAULTS = frozenset({"internal", "out_of_memory", "busy", "draining"})
"""codes of failures that are not the user's mistake"""
_FINISHES = {"superseded": FinishReason.CANCELLED, "deadline": FinishReason.LENGTH}


@dataclass(slots=True)
class _Spellings:
    """The texts of the tokens that were seen; a part of a character is shown as U+FFFD."""

    known: dict[int, str] = field(default_factory=dict)

    def learn(self, step: protocol.Step) -> None:
        self.known.update(zip(step.tokens, step.texts, strict=True))
        if step.tree is not None:
            self.known.update(zip(step.tree.tokens, step.tree.texts, strict=True))

    def __call__(self, token: int) -> bytes:
        return self.known.get(token, "").encode()


def by_daemon(document: Document, place: Location, cursor: int, asked: Asked, *, show: bool) -> Source:
    """Ask the daemon, which is started where none runs, and wait for the first step.

    Raises:
        DaemonError: it cannot be had, hosts another model, refused, or went away.
        UserError: the model that it is to host cannot be used.
    """
    started = time.perf_counter()
    with loading(show=show) as progress:
        progress("asking the daemon", 0, 0)
        client = Client.connect(_NAME)
        hosted = client.status().model
        if hosted != asked.settings.model.name:
            raise DaemonUnavailableError(f"it hosts {hosted} at the moment.")
        # The file alone, as in this process, whatever editors have open beside it.
        client.configure({"context.enabled": False})
        events = client.complete(_request(document, place, cursor, asked))
        first: protocol.CompletionEvent = next(events)
        while isinstance(first, protocol.Begun | protocol.Progress):
            if isinstance(first, protocol.Progress):
                progress(first.stage, first.done, first.total)
            first = next(events)
    method = client.status().method if asked.method == "auto" else asked.method
    waited = (time.perf_counter() - started) * 1000
    load_ms = max(0.0, waited - first.prefill_ms) if isinstance(first, protocol.Step) else waited
    spellings = _Spellings()
    source = Source(_shown(hosted), method, load_ms, _nothing(), spellings, daemon=True)
    source.steps = _steps(source, client, events, first, spellings)
    return source


def _request(document: Document, place: Location, cursor: int, asked: Asked) -> protocol.Complete:
    """Everything is said: what the daemon's own configuration sets for the document plays no part."""
    wanted, tree = asked.settings.completion, asked.settings.tree
    return protocol.Complete(
        path="" if place.path == STDIN else str(Path(place.path).absolute()),
        prefix=document.text[:cursor],
        suffix=document.text[cursor:],
        options=protocol.Options(
            method=asked.method,
            max_tokens=wanted.max_tokens,
            temperature=wanted.temperature,
            top_p=wanted.top_p,
            top_k=wanted.top_k,
            seed=wanted.seed,
            shape=_shape(tree),
            policy=False,
        ),
        typed=False,
        anchored=False,
    )


def _shape(tree: Tree) -> protocol.Shape:
    """What is 0 is left to the method."""
    bounds = {name: getattr(tree, name) or None for name in ("nodes", "depth", "width")}
    return protocol.Shape(**bounds, threshold=tree.threshold, calibrated=tree.calibrated)


def _steps(
    source: Source,
    client: Client,
    events: Generator[protocol.CompletionEvent, None, None],
    first: protocol.CompletionEvent,
    spellings: _Spellings,
) -> Generator[StepResult, None, None]:
    with client:
        try:
            for event in _behind(first, events):
                if isinstance(event, protocol.Step):
                    spellings.learn(event)
                    yield _result(event)
                elif isinstance(event, protocol.Done):
                    source.finish = _FINISHES.get(event.finish) or FinishReason(event.finish)
                elif isinstance(event, protocol.Failed):
                    raise _failure(event)
        finally:
            events.close()


def _behind(
    first: protocol.CompletionEvent, events: Iterator[protocol.CompletionEvent]
) -> Iterator[protocol.CompletionEvent]:
    yield first
    yield from events


def _shown(model: str) -> str:
    """A model's name as the engine's own reports have it: of a path, its last part."""
    path = Path(model)
    return model if not path.exists() else path.stem if path.is_file() else path.name


def _nothing() -> Generator[StepResult, None, None]:
    yield from ()


def _result(step: protocol.Step) -> StepResult:
    tree = root_only(0)
    if step.tree is not None:
        tree = DraftTree(step.tree.tokens, step.tree.parents, step.tree.values, step.tree.origins)
    return StepResult(
        tokens=step.tokens,
        origins=tuple(Origin(origin) for origin in step.origins),
        text=step.text,
        tree=tree,
        accepted=() if step.tree is None else step.tree.accepted,
        forwards=step.forwards,
        prefill_ms=step.prefill_ms,
        draft_ms=step.draft_ms,
        verify_ms=step.verify_ms,
        prompt_tokens=step.prompt_tokens,
        reused=step.reused,
        finish=None if step.finish is None else FinishReason(step.finish),
    )


def _failure(event: protocol.Failed) -> Exception:
    return RefusedError(event.code, event.message) if event.code in _FAULTS else UserError(event.message)
