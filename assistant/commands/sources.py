"""Where the steps of a completion come from: this process, or the daemon. What is shown of them is the same."""

from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from assistant.commands.asked import Asked
from assistant.commands.opening import open_session
from assistant.documents import Document, Location
from assistant.errors import DaemonError, StorageError

if TYPE_CHECKING:
    from assistant.engine.types import FinishReason, StepResult


@dataclass(slots=True)
class Source:
    """A completion that is ready to come in."""

    model: str
    method: str
    load_ms: float
    steps: "Generator[StepResult, None, None]"
    token_bytes: Callable[[int], bytes]
    daemon: bool = False
    finish: "FinishReason | None" = None
    """set when the steps have ended, where the last of them does not say why"""


def open_source(
    document: Document, place: Location, cursor: int, asked: Asked, *, use_daemon: bool, show: bool
) -> Source:
    """A completion by the daemon, or in this process where that is wanted, or the daemon cannot be had.

    Raises:
        UserError: the model, head or draft model is missing or unusable.
    """
    if use_daemon and asked.shared:
        from assistant.commands.through_daemon import by_daemon

        try:
            return by_daemon(document, place, cursor, asked, show=show)
        except (DaemonError, StorageError) as error:
            click.echo(f"eagle-assist: completing without the daemon: {error}", err=True)
    return in_process(document, cursor, asked, show=show)


def in_process(document: Document, cursor: int, asked: Asked, *, show: bool) -> Source:
    """Load the model here.

    Raises:
        UserError: the model, head or draft model is missing or unusable.
    """
    opened = open_session(asked.method, asked.options, asked.draft, show=show)

    from assistant.daemon.prompt import Window, build_prompt
    from assistant.engine.generate import generate
    from assistant.engine.types import GenerateOptions, Sampling
    from models.fim import detect

    wanted, window, context = asked.settings.completion, asked.settings.window, opened.spec.max_positions
    room = context - min(wanted.max_tokens, context // 2)
    prompt = build_prompt(
        document.text,
        cursor,
        opened.tokenizer,
        detect(opened.tokenizer),
        Window(window.prefix, window.suffix).within(room),
    )
    options = GenerateOptions(
        max_tokens=wanted.max_tokens,
        sampling=Sampling(wanted.temperature, wanted.top_p, wanted.top_k, wanted.seed),
        tree=asked.options.shape(asked.method),
        stop_ids=opened.tokenizer.eos_ids,
    )

    def steps() -> "Generator[StepResult, None, None]":
        yield from generate(opened.session, prompt, options, opened.tokenizer)

    return Source(opened.spec.name, opened.method, opened.load_ms, steps(), opened.tokenizer.token_bytes)
