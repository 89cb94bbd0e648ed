"""`eagle-assist complete`: what the model writes at a position of a file, as it is accepted."""

import re
import sys
import time
from contextlib import closing
from typing import TYPE_CHECKING

import click

from assistant import documents
from assistant.commands import output
from assistant.commands.asked import asked
from assistant.commands.opening import METHODS
from assistant.commands.options import ModelOptions, Number, model_options
from assistant.commands.sources import Source, open_source

if TYPE_CHECKING:
    from assistant.commands.report import Record
    from assistant.engine.types import StepResult

INTERRUPTED = 130
_STDIN_POSITION = re.compile(r"-:[0-9:]*")


class _PositionalStdin(click.Command):
    """Takes `-:LINE:COL` as the argument that it is, although it begins like an option."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if "--" not in args:
            places = [arg for arg in args if _STDIN_POSITION.fullmatch(arg)]
            args = [*(arg for arg in args if arg not in places), *(["--", *places] if places else [])]
        return super().parse_args(ctx, args)


@click.command(cls=_PositionalStdin)
@click.argument("location", metavar="PATH[:LINE[:COL]]")
@model_options
@click.option("--method", type=click.Choice(METHODS), default="auto", help="How tokens are drafted.")
@click.option("--draft", metavar="NAME|PATH", help="The draft model, for --method sps.")
@click.option("--max-tokens", type=click.IntRange(1, 32768), default=128, show_default=True, metavar="N")
@click.option("--temperature", type=Number(0, 10), default=0.0, metavar="T", help="0 takes the best token each time.")
@click.option("--top-p", type=Number(0, 1, min_open=True), default=1.0, metavar="P", help="Sample from this mass.")
@click.option("--top-k", type=click.IntRange(0), default=0, metavar="K", help="Sample from this many (0: all).")
@click.option("--tree", is_flag=True, help="Draw each step's tree: nodes, values, what was accepted.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document instead of the text.")
@click.option("--quiet", "-q", is_flag=True, help="No progress and no figures on stderr.")
@click.option("--no-daemon", is_flag=True, help="Complete in this process.")
@click.pass_context
def complete(
    ctx: click.Context,
    *,
    location: str,
    options: ModelOptions,
    method: str,
    draft: str | None,
    max_tokens: int,
    temperature: float,
    top_p: float,
    top_k: int,
    tree: bool,
    as_json: bool,
    quiet: bool,
    no_daemon: bool,
) -> None:
    """Write what belongs at a position of a file.

    LINE and COL count from 1, COL in characters; without COL it is the line's end, without LINE the file's. PATH
    `-` reads standard input. The text goes to standard output as it is accepted, with the file's own line ends.

    The daemon does the work, and is started where none runs; it ends by itself after a while without use. With another
    model, head, draft model, precision or device than it hosts, and with --no-daemon, the work is done in this process.
    """
    # What was given is read from the context, where it can be told from what was left out.
    del options, method, draft, max_tokens, temperature, top_p, top_k
    output.prepare()
    place = documents.parse_location(location)
    request = asked(ctx, place.path)
    request.refuse_secrets(place.path)
    document = documents.read(place.path)
    cursor = document.offset(place.line, place.column)
    source = open_source(document, place, cursor, request, use_daemon=not no_daemon, show=not quiet)

    from assistant.commands.report import Record

    view = _View(
        document,
        source,
        Record(source.model, source.method, source.load_ms, daemon=source.daemon),
        tree=tree,
        text=not as_json,
    )
    _run(source, view)
    view.close(as_json=as_json, quiet=quiet)
    if view.record.cancelled:
        ctx.exit(INTERRUPTED)


def _run(source: Source, view: "_View") -> None:
    """Show each step as it comes. An interrupt ends the completion and keeps what was shown."""
    record = view.record
    started = time.perf_counter()
    try:
        with closing(source.steps) as steps:
            for step in steps:
                if not record.steps:
                    started = time.perf_counter()
                view.show(step)
    except KeyboardInterrupt:
        record.cancelled = True
    record.ended = source.finish
    if record.steps:
        record.decode_ms = (time.perf_counter() - started) * 1000


class _View:
    """Writes a completion as it comes in: as text, as trees, or silently."""

    def __init__(
        self, document: documents.Document, source: Source, record: "Record", *, tree: bool, text: bool
    ) -> None:
        self.record = record
        self._document = document
        self._source = source
        self._tree = tree
        self._text = text

    def show(self, step: "StepResult") -> None:
        """Take one step in."""
        text = self._document.with_own_line_ends(step.text)
        self.record.steps.append(step)
        self.record.text += text
        if self._tree:
            self._draw(step)
        elif self._text and text:
            output.write(text)

    def close(self, *, as_json: bool, quiet: bool) -> None:
        """What comes after the last step: the document, or the text below its trees, and the figures."""
        from assistant.commands import report

        if as_json:
            output.write_json(report.document(self.record))
        elif self._tree:
            output.write(self.record.text)
        if sys.stdout.isatty() and not as_json and not self.record.text.endswith("\n"):
            click.echo(err=True)
        if not quiet:
            click.echo(report.sentence(self.record), err=True)

    def _draw(self, step: "StepResult") -> None:
        from assistant.commands import render
        from assistant.commands.terminal import console_for

        console = console_for(stderr=not self._text)
        drawing = render.draw(
            len(self.record.steps) - 1,
            step,
            self._source.token_bytes,
            ascii_only=console.options.ascii_only,
        )
        console.print(drawing)
