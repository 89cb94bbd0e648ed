"""The command line: finds the subcommand, runs it, and turns whatever goes wrong into one line and an exit code.

Exit codes: 0 done; 2 the user's mistake; 1 a fault of the program; 130 interrupted; 141 the reader of a pipe went away.
A subcommand's module is imported when it is asked for, so that `--version` and `--help` start in tens of milliseconds.
"""

import errno
import importlib
import logging
import os
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

import click

from assistant import faults
from assistant.errors import DaemonError, StorageError, UserError
from eagle_assist import __version__

COMMANDS = {
    "complete": "assistant.commands.complete:complete",
    "lsp": "assistant.commands.lsp:lsp",
    "tui": "assistant.commands.tui:tui",
    "models": "assistant.commands.models:models",
    "heads": "assistant.commands.heads:heads",
    "train": "assistant.commands.train:train",
    "calibrate": "assistant.commands.calibrate:calibrate",
    "tune": "assistant.commands.tune:tune",
    "bench": "assistant.commands.bench:bench",
    "config": "assistant.commands.config:config",
    "doctor": "assistant.commands.doctor:doctor",
    "daemon": "assistant.commands.daemon:daemon",
    "logs": "assistant.commands.logs:logs",
    "purge": "assistant.commands.purge:purge",
}
"""name -> module:attribute"""
INTERRUPTED = 130
PIPE_CLOSED = 141
_OUTPUT_ERRORS = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO}


class Program(click.Group):
    """The top of the command line."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The subcommands in the order of the help."""
        del ctx
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import and return a subcommand."""
        del ctx
        if cmd_name not in COMMANDS:
            return None
        module, _, attribute = COMMANDS[cmd_name].partition(":")
        command = getattr(importlib.import_module(module), attribute)
        assert isinstance(command, click.Command)
        return command

    def invoke(self, ctx: click.Context) -> Any:
        """Run a subcommand; an interrupt and a closed pipe end it quietly, with what was written left as it is."""
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()
        except KeyboardInterrupt:
            ctx.exit(INTERRUPTED)
        except BrokenPipeError:
            _discard_output()
            ctx.exit(PIPE_CLOSED)
        except OSError as error:
            if error.errno not in _OUTPUT_ERRORS or error.filename is not None:
                raise
            _discard_output()
            raise StorageError(f"standard output cannot be written: {error.strerror}.") from error
        return result

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = "eagle-assist",
        complete_var: str | None = None,
        standalone_mode: bool = True,  # noqa: FBT001, FBT002 - click's own signature
        windows_expand_args: bool = True,  # noqa: FBT001, FBT002
        **extra: Any,
    ) -> NoReturn:
        """Run the program and exit; the one place that translates exceptions."""
        del standalone_mode
        try:
            code = super().main(
                args, prog_name, complete_var, standalone_mode=False, windows_expand_args=windows_expand_args, **extra
            )
        except click.exceptions.NoArgsIsHelpError as error:
            error.show()
            code = error.exit_code
        except click.UsageError as error:
            code = _refuse(_usage_sentence(error))
        except (UserError, click.ClickException) as error:
            code = _refuse(str(error))
        except DaemonError as error:
            click.echo(f"eagle-assist: {error}", err=True)
            code = 1
        except click.Abort:
            code = INTERRUPTED
        except Exception as error:  # noqa: BLE001 - the last line of defence
            click.echo(f"eagle-assist: {faults.describe(error, debug='--debug' in (args or sys.argv))}", err=True)
            code = 1
        sys.exit(code if isinstance(code, int) else 0)


def _refuse(sentence: str) -> int:
    click.echo(f"eagle-assist: {' '.join(sentence.split())}", err=True)
    return 2


def _usage_sentence(error: click.UsageError) -> str:
    sentence = error.format_message().rstrip(".")
    return f"{sentence}; see `{error.ctx.command_path} --help`." if error.ctx else f"{sentence}."


def _discard_output() -> None:
    """Give Python's last flush, at exit, somewhere to go."""
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (OSError, ValueError):  # a stream that is no file has no reader to lose
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123, SIM115


_SETTINGS = {"help_option_names": ["-h", "--help"], "max_content_width": 100}


@click.group("eagle-assist", cls=Program, context_settings=_SETTINGS)
@click.version_option(__version__, prog_name="eagle-assist", message="%(prog)s %(version)s")
@click.option("--debug", is_flag=True, help="Show the traceback of a fault of the program.")
def main(*, debug: bool) -> None:
    """Complete code with a language model on your own machine, several tokens a step."""
    del debug
    if logging.lastResort is not None:  # what prints warnings where nobody configured logging
        logging.lastResort.setFormatter(logging.Formatter("eagle-assist: %(message)s"))
