"""Where one user completes: what the daemon kept of that, or else places in the files of a project.

Nothing that may hold secrets is read, nor what the project or its user leaves out.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from random import Random

from assistant.bench.digging import Source, dig
from assistant.bench.holes import Hole
from assistant.config import Settings
from assistant.config.languages import language_of
from assistant.daemon.anchor import Place, Reader, prompt_at
from assistant.daemon.context.index import Bounds, Index
from assistant.daemon.learned import segments
from assistant.daemon.prompt import Window
from assistant.daemon.text.languages import syntax_of
from assistant.engine.types import Prompt
from assistant.errors import UsageError
from models import fim
from models.loading import LoadedModel
from models.tokenizer import Tokenizer
from models.training.logged import read_log_folder
from models.training.samples import Mix, Sample

_RECENT = 20
"""kept completions for each that is taken: the newest so many say what one works on now"""
_FILES = 20_000
"""of a project, that places are chosen among"""
_ROUNDS = 8
"""places that one file may have"""


@dataclass(frozen=True, slots=True)
class Trace:
    """Prompts as this user's editor would send them."""

    origin: str
    """"learned": completions that the daemon kept; "files": places in a project's files"""
    prompts: tuple[Prompt, ...]
    files: int = 0
    """that the places lie in"""


def trace_of(
    folder: Path, settings: Settings, loaded: LoadedModel, learned: Path, places: int, max_tokens: int
) -> Trace:
    """As many prompts as `places`, or as a small project has; the same work gives the same ones.

    Args:
        folder: of the project.
        settings: that hold in it.
        loaded: the model that is asked.
        learned: where the daemon keeps completions; it is used where it holds enough of this model's.
        places: prompts at most.
        max_tokens: of a completion, for which the model's context has room behind every prompt.

    Raises:
        UsageError: nothing is kept and the project has no place to complete at.
    """
    room = loaded.target.spec.max_positions - max_tokens
    kept = _kept(learned, loaded, room, places)
    if len(kept) == places:
        return Trace("learned", tuple(kept))
    holes = list(holes_in(folder, settings, places))
    if not holes:
        raise UsageError(
            f"{folder} holds no source file that completions can be measured in: name a project's folder "
            "with code in it that is neither ignored, excluded nor generated."
        )
    window = Window(settings.window.prefix, settings.window.suffix).within(room)
    reader = Reader(loaded.tokenizer, fim.detect(loaded.tokenizer), window)
    prompts = (prompt_at(Place(hole.prefix + hole.suffix, len(hole.prefix)), reader, None)[0] for hole in holes)
    return Trace("files", tuple(prompts), len({hole.path for hole in holes}))


def holes_in(folder: Path, settings: Settings, count: int) -> Iterator[Hole]:
    """At most `count` places, a file each as long as there are files, their kinds in turn."""
    context = settings.context
    index = Index(folder, context.may_read, context.exclude, Bounds(file_bytes=context.max_file_kb << 10))
    paths = _code(folder, settings, index)
    Random(0).shuffle(paths)  # noqa: S311
    names: set[str] = set()
    for number, (turn, path) in enumerate(product(range(_ROUNDS), paths)):
        if len(names) == count:
            return
        text = index.text(path)
        kinds = [] if text is None else dig([Source(folder.name, path, text)], 1, turn)
        hole = kinds[number % len(kinds)] if kinds else None
        if hole is not None and hole.name not in names:
            names.add(hole.name)
            yield hole


def _code(folder: Path, settings: Settings, index: Index) -> list[str]:
    """Files of programs in which suggestions are switched on, in the order of their names."""
    found = []
    for path in index.files():
        language = language_of(path)
        is_code = language is not None and bool(syntax_of(language).clauses)
        if is_code and settings.for_document(str(folder / path), language).editor.enabled:
            found.append(path)
        if len(found) == _FILES:
            break
    return sorted(found)


def _kept(folder: Path, loaded: LoadedModel, room: int, count: int) -> list[Prompt]:
    """Prompts of completions that the daemon kept, spread over the newest; fewer where it kept few."""
    if not segments(folder):
        return []
    spec = loaded.target.spec
    mix = Mix(plain=0, continued=0, documented=0, invented=0, infilled=0, window=room)
    try:
        samples = read_log_folder(folder, spec.name, spec.vocab_size, mix).samples
    except UsageError:  # none of them is this model's
        return []
    different = list({sample.ids[: sample.prompt_tokens]: sample for sample in samples}.values())
    newest = different[-_RECENT * count :]
    return [_again(newest[len(newest) * i // count], loaded.tokenizer) for i in range(min(count, len(newest)))]


def _again(sample: Sample, tokenizer: Tokenizer) -> Prompt:
    """The prompt that a completion was made from."""
    ids = sample.ids[: sample.prompt_tokens]
    form = fim.detect(tokenizer)
    parts = None if form is None else form.split(ids, tokenizer)
    return Prompt(ids) if parts is None else Prompt(ids, *parts)
