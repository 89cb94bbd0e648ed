"""Every error that eagle-assist raises on purpose.

    EagleAssistError                  never raised itself
    ├── UserError                     the user's mistake: one sentence, exit code 2
    │   ├── UsageError                options that contradict each other, or lie out of range
    │   ├── ConfigError               settings that cannot be used, all of them, each with its place
    │   ├── DocumentError             a source file that cannot be read, or a position outside it
    │   ├── ModelError                a model or draft head that cannot be used
    │   │   ├── ModelNotFoundError    nothing here answers to that name; the message names the remedies
    │   │   ├── ModelCorruptError     truncated, wrong hash, missing shard, tensors that do not fit
    │   │   ├── ArchitectureError     a family that no implementation here can run
    │   │   └── HeadMismatchError     a draft head whose shapes do not fit its target
    │   ├── ContextOverflowError      more tokens than the model's context holds
    │   ├── StorageError              the cache or state folder is read-only or full
    │   └── DaemonRunningError        a daemon was to be started where one runs
    ├── DaemonError                   the background service did not do what it was asked: one sentence, exit code 1
    │   ├── DaemonUnavailableError    none runs, and none was to be started or could be
    │   ├── DaemonDiedError           it went away in the middle of an answer
    │   ├── DaemonSilentError         it is there, but says nothing
    │   ├── VersionMismatchError      it is of another version that this program must not replace
    │   └── RefusedError              it refused a request; `code` says why, for programs
    │       └── BusyError             its queue is full, or it is ending
    └── TopologyError                 a draft tree that is no tree (an internal fault: exit code 1)

A message is one sentence (two where the remedy needs its own): what is wrong, where, and what to do.
It never holds the user's code.
"""

from collections.abc import Sequence
from dataclasses import dataclass


class EagleAssistError(Exception):
    """Root of the tree."""


class UserError(EagleAssistError):
    """Something that the user can mend; printed as one line on stderr, exit code 2."""


class UsageError(UserError):
    """Options that contradict each other or lie outside their range."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing wrong in a configuration; as text `PLACE:LINE:COLUMN: sentence`."""

    place: str
    """a file, an environment variable, `command line` or the client that sent the setting"""
    line: int | None
    """from 1; None where the place has no lines"""
    column: int | None
    """from 1, in characters"""
    sentence: str

    def __str__(self) -> str:
        """The problem behind its place, as compilers write it."""
        numbers = "".join(f":{number}" for number in (self.line, self.column) if number is not None)
        return f"{self.place}{numbers}: {self.sentence}"


class ConfigError(UserError):
    """Settings that cannot be used; `problems` holds every one of them, the message the first."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        more = f" ({len(problems) - 1} more: see `eagle-assist config check`)" if len(problems) > 1 else ""
        super().__init__(f"{problems[0]}{more}")
        self.problems = tuple(problems)


class DocumentError(UserError):
    """A source file that cannot be read, or a position that lies outside it."""


class ModelError(UserError):
    """A model or draft head that cannot be used."""


class ModelNotFoundError(ModelError):
    """Nothing on this machine answers to the model's name."""


class ModelCorruptError(ModelError):
    """A model's files are truncated, altered, incomplete or do not fit together."""


class ArchitectureError(ModelError):
    """The model belongs to a family that no implementation here can run."""


class HeadMismatchError(ModelError):
    """A draft head's shapes do not fit the target it was asked to draft for."""


class ContextOverflowError(UserError):
    """A sequence needs more rows than the model's context holds."""


class StorageError(UserError):
    """A folder that eagle-assist writes to is read-only, full or otherwise unusable."""


class DaemonRunningError(UserError):
    """A daemon was to be started where another one runs."""


class DaemonError(EagleAssistError):
    """The background service did not do what it was asked."""


class DaemonUnavailableError(DaemonError):
    """No daemon runs, and none was to be started or could be."""


class DaemonDiedError(DaemonError):
    """The daemon went away in the middle of an answer."""


class DaemonSilentError(DaemonError):
    """The daemon is there but says nothing: it hangs, or is stopped."""


class VersionMismatchError(DaemonError):
    """The running daemon is of another version, which this program must not replace."""


class RefusedError(DaemonError):
    """The daemon refused a request; its code is one of `protocol.Refusal`."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class BusyError(RefusedError):
    """The queue of completions is full, or the daemon is ending; try again later."""

    def __init__(self, message: str, code: str = "busy") -> None:
        super().__init__(code, message)


class TopologyError(EagleAssistError):
    """A draft tree whose parents, root or path values do not form a tree."""
