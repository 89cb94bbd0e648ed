"""The merged configuration as it holds for the current folder, and the project's file as a text that is checked."""

from dataclasses import dataclass
from pathlib import Path

from assistant.config import Rank, load
from assistant.config.files import PROJECT_NAME, project_file, text_layer
from assistant.errors import ConfigError, Problem
from assistant.files import write_atomic


@dataclass(frozen=True, slots=True)
class Line:
    """A setting in force."""

    key: str
    value: str
    origin: str
    default: bool


@dataclass(frozen=True, slots=True)
class Configuration:
    """All settings, or all that is wrong with them."""

    lines: tuple[Line, ...] = ()
    problems: tuple[Problem, ...] = ()


def merged(folder: Path) -> Configuration:
    """What holds for documents in `folder`, and where each value came from."""
    try:
        found = load(folder / "document")
    except ConfigError as error:
        return Configuration(problems=tuple(error.problems))
    values = {
        f"{section}.{name}": getattr(settings, name)
        for section, settings in found.settings.sections().items()
        for name in settings.__struct_fields__
    }
    lines = []
    for key, origin in found.origins.items():
        value = _shown(values[key]) if key in values else "for some documents"
        place = str(origin).replace(f"{folder}/", "").replace(str(Path.home()), "~", 1)
        lines.append(Line(key, value, place, origin.rank is Rank.DEFAULT))
    return Configuration(tuple(lines))


def project_path(folder: Path) -> Path:
    """The project's file that holds for `folder`, or the one to make there."""
    return project_file(folder / "document") or folder / PROJECT_NAME


def read(path: Path) -> str:
    """The file's text; "" where there is none that can be read as text."""
    try:
        return path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError):
        return ""


def problems(path: Path, text: str) -> tuple[Problem, ...]:
    """What is wrong with a text for the project's file."""
    try:
        text_layer(path, text, Rank.PROJECT)
    except ConfigError as error:
        return tuple(error.problems)
    return ()


def save(path: Path, text: str) -> None:
    """Put a sound text into the file.

    Raises:
        StorageError: it cannot be written.
    """
    write_atomic(path, (text.rstrip("\n") + "\n" if text.strip() else "").encode())


def _shown(value: object) -> str:
    if isinstance(value, tuple):
        return f"{len(value)} patterns" if len(value) > 1 else repr(list(value))
    if isinstance(value, bool):
        return str(value).lower()
    return f'"{value}"' if isinstance(value, str) else f"{value}"
