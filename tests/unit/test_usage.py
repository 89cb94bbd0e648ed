"""Where one user completes: places that nobody objects to, and prompts as they were."""

from pathlib import Path

import pytest

from assistant.bench.usage import Trace, holes_in, trace_of
from assistant.config import Settings
from assistant.config.declaration import Context, Editor
from assistant.config.overrides import Override
from assistant.daemon.learned import LearnedLog
from assistant.errors import UsageError
from models import fim
from models.loading import LoadedModel, load
from tests.support.tiny_folder import write_model

CODE = '''"""Sums."""

import os


def total_{0}(values, start=0):
    """Add all of the values to a start, which may be left out."""
    result_{0} = start + sum(value * {0} for value in values)
    print("the total of all values", result_{0}, os.sep)
    return round(result_{0}, ndigits=2)
'''


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "shop"
    names = ("a.py", "b.py", "deep/c.py", "secrets.py", "made.py", "node_modules/d.py", "left.py")
    for number, name in enumerate(names):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(CODE.format(number))
    (folder / ".gitignore").write_text("made.py\n")
    (folder / "README.md").write_text("# Prose that goes on and on\n" * 9)
    return folder


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> LoadedModel:
    return load(str(write_model(tmp_path_factory.mktemp("models") / "tiny")), "float32")


def test_only_files_that_may_be_read_have_places(project: Path) -> None:
    settings = Settings(
        context=Context(secret_patterns=("secrets.*",), exclude=("left.py",)),
        overrides=(Override("files", "b.py", "enabled", value=False),),
    )
    holes = list(holes_in(project, settings, 40))
    assert {hole.path for hole in holes} == {"a.py", "deep/c.py"}
    assert len({hole.name for hole in holes}) == len(holes) > 6
    assert len({hole.kind for hole in holes}) >= 4
    for hole in holes:
        assert hole.prefix + hole.answer + hole.suffix == (project / hole.path).read_text()


def test_each_file_has_one_place_before_any_has_two(project: Path) -> None:
    found = [hole.path for hole in holes_in(project, Settings(), 5)]
    assert sorted(found) == ["a.py", "b.py", "deep/c.py", "left.py", "secrets.py"]
    assert found == [hole.path for hole in holes_in(project, Settings(), 5)]


def test_without_code_nothing_can_be_measured(project: Path, loaded: LoadedModel, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no source file"):
        trace_of(project, Settings(editor=Editor(enabled=False)), loaded, tmp_path / "none", 3, 8)


def test_prompts_leave_room_and_are_the_editors(project: Path, loaded: LoadedModel, tmp_path: Path) -> None:
    trace = trace_of(project, Settings(), loaded, tmp_path / "none", 6, 8)
    assert (trace.origin, len(trace.prompts), trace.files) == ("files", 6, 5)
    form = fim.detect(loaded.tokenizer)
    assert form is not None
    assert any(prompt.suffix and form.split(prompt.ids, loaded.tokenizer) for prompt in trace.prompts)
    assert all(len(prompt.ids) + 8 <= loaded.target.spec.max_positions for prompt in trace.prompts)


def test_what_was_kept_is_completed_again(project: Path, loaded: LoadedModel, tmp_path: Path) -> None:
    folder, tokenizer = tmp_path / "learned", loaded.tokenizer
    form = fim.detect(tokenizer)
    assert form is not None
    log = LearnedLog(folder, loaded.target.spec.name, "float32", 1 << 20)
    asked = [form.build([7, number], [9], tokenizer) for number in range(10, 15)]
    for ids in [*asked, asked[-1]]:
        log.add([*ids, 3], [4, 5])
    others = LearnedLog(folder, "other", "int8", 1 << 20)
    others.add([1, 2], [3])
    for kept in (log, others):
        kept.flush()

    def trace(places: int) -> Trace:
        return trace_of(project, Settings(), loaded, folder, places, 8)

    assert [prompt.ids for prompt in trace(5).prompts] == [(*ids, 3) for ids in asked]
    assert trace(5).origin == "learned"
    assert trace(5).prompts[0].prefix == (7, 10, 3)
    assert trace(5).prompts[0].suffix == (9,)
    assert trace(6).origin == "files", "too few were kept"
