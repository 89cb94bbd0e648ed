"""Configuration files, good, bad and hostile: a valid configuration, or every problem with its place."""

import os
from pathlib import Path
from typing import Any

import msgspec
import pytest
import tomli
from hypothesis import example as always
from hypothesis import given, settings
from hypothesis import strategies as st

from assistant.config import Rank, Settings, load
from assistant.config.example import example
from assistant.config.files import MAX_BYTES, read_layer
from assistant.config.keys import DOTTED, KEYS, split
from assistant.config.merge import merge
from assistant.config.places import places
from assistant.errors import ConfigError, Problem
from tests.support.settings import Assigned, assignments, documents, toml_of

EXAMPLE = example()
_FRAGMENTS = [
    "[",
    "]",
    "=",
    '"',
    "'",
    "\n",
    "#",
    "{",
    "}",
    ".",
    "true",
    "-1",
    "1e400",
    "nan",
    '"""',
    "\0",
    "\r",
    "é",
    "[[",
]


def problems_of(path: Path, rank: Rank = Rank.USER) -> tuple[Problem, ...]:
    with pytest.raises(ConfigError) as caught:
        read_layer(path, rank)
    return caught.value.problems


def written(tmp_path: Path, text: str | bytes) -> Path:
    path = tmp_path / "config.toml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def check_outcome(path: Path, rank: Rank) -> None:
    """A valid configuration, or problems whose places lie in the file."""
    lines = path.read_bytes().removeprefix(b"\xef\xbb\xbf").decode("utf-8", "replace").replace("\r\n", "\n").split("\n")
    problems: tuple[Problem, ...] = ()
    try:
        found = merge((read_layer(path, rank),)).settings
    except ConfigError as error:
        problems = error.problems
    else:
        for (section, name), key in KEYS.items():
            msgspec.convert(getattr(getattr(found, section), name), key.annotation, strict=True)
        return
    assert problems
    for problem in problems:
        assert problem.place == str(path)
        assert problem.sentence.endswith((".", "?"))
        assert "\n" not in problem.sentence
        assert problem.line is not None
        assert problem.column is not None
        assert 1 <= problem.line <= len(lines)
        assert 1 <= problem.column <= len(lines[problem.line - 1]) + 1


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("any") / "config.toml"


class TestAnyFile:
    @given(st.binary(max_size=200), st.sampled_from([Rank.USER, Rank.PROJECT]))
    def test_any_bytes(self, path: Path, data: bytes, rank: Rank) -> None:
        path.write_bytes(data)
        check_outcome(path, rank)

    @given(st.text("[]{}=\"'\n\r.#, ab1\\", max_size=40))
    @always('"\\')
    @settings(max_examples=200)
    def test_any_punctuation(self, path: Path, text: str) -> None:
        path.write_bytes(text.encode())
        check_outcome(path, Rank.USER)

    @given(documents(), st.sampled_from([Rank.USER, Rank.PROJECT]))
    @settings(max_examples=200)
    def test_any_toml(self, path: Path, text: str, rank: Rank) -> None:
        tomli.loads(text)
        path.write_bytes(text.encode())
        check_outcome(path, rank)

    @given(
        st.lists(st.tuples(st.integers(0, len(EXAMPLE)), st.integers(0, 30), st.sampled_from(_FRAGMENTS)), max_size=3)
    )
    @settings(max_examples=150)
    def test_the_example_with_damage(self, path: Path, damage: list[tuple[int, int, str]]) -> None:
        text = EXAMPLE
        for at, gone, fragment in damage:
            text = text[:at] + fragment + text[at + gone :]
        path.write_bytes(text.encode())
        check_outcome(path, Rank.USER)

    @given(assignments())
    def test_valid_assignments_are_what_is_read(self, path: Path, values: Assigned) -> None:
        path.write_text(toml_of(values), encoding="utf-8")
        layer = read_layer(path, Rank.USER)
        assert {key: entry.value for key, entry in layer.entries.items()} == values


class TestPlaces:
    @given(documents())
    @settings(max_examples=300)
    def test_every_key_of_a_valid_document_is_found_where_it_stands(self, text: str) -> None:
        text = text.replace("\r\n", "\n")
        found = places(text)
        assert set(found) >= set(paths_of(tomli.loads(text)))
        for path, offset in found.items():
            match = DOTTED.match(text, offset)
            assert match is not None
            parts = split(match[0])
            assert any(path[-length:] == parts[:length] for length in range(1, len(parts) + 1))

    def test_lines_and_columns_are_those_of_the_key(self, tmp_path: Path) -> None:
        path = written(tmp_path, '\n# é\ntree = { "nodes" = 8, deepth = 3 }\n [window]\n\tprefix."a b" = [\n1]\n')
        assert [(p.line, p.column) for p in problems_of(path)] == [(3, 23), (5, 2)]


def paths_of(table: dict[str, Any], above: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    """The paths of a document's keys, those inside arrays left out."""
    found = []
    for name, value in table.items():
        found.append((*above, name))
        if isinstance(value, dict):
            found += paths_of(value, (*above, name))
    return found


class TestProblems:
    def test_all_are_found_each_with_line_column_and_the_nearest_key(self, tmp_path: Path) -> None:
        text = "[tre]\nnodes = 1\n[tree]\n  depht = 2\nnodes = 999\nwidth = 'x'\n[languages.Python]\nenabled = true\n"
        assert list(map(str, problems_of(written(tmp_path, text)))) == [
            f"{tmp_path}/config.toml:2:1: there is no key tre.nodes; did you mean tree.nodes?",
            f"{tmp_path}/config.toml:4:3: there is no key tree.depht; did you mean tree.depth?",
            f"{tmp_path}/config.toml:5:1: tree.nodes must be a whole number, 0 to 512, not 999.",
            f'{tmp_path}/config.toml:6:1: tree.width must be a whole number, 0 to 64, not "x".',
            f'{tmp_path}/config.toml:8:1: "Python" is no language id: they are in lower case, like python or cpp.',
        ]

    @pytest.mark.parametrize(
        ("text", "line", "column", "sentence"),
        [
            ("[tree\n", 1, 6, "no valid TOML: expected ']'"),
            ("tree = 5\n", 1, 1, "tree is a table; write [tree]"),
            ("languages = 5\n", 1, 1, "languages needs a table such as [languages.python]"),
            ("[tree]\nnodes = true\n", 2, 1, "a whole number, 0 to 512, not true"),
            ("[tree]\nnodes = 8.0\n", 2, 1, "a whole number"),
            ("[tree]\nthreshold = nan\n", 2, 1, "a number, 0 to 1, not nan"),
            ("[completion]\ntop_p = 0\n", 2, 1, "a number, above 0, to 1, not 0"),
            ("[completion]\nmultiline = 'sometimes'\n", 2, 1, "one of auto, always, never"),
            ("[model]\ndevice = 'tpu'\n", 2, 1, "cuda, cuda:N or mps"),
            ("[context]\nexclude = 'build'\n", 2, 1, "a list of"),
            ("[context]\nexclude = ['']\n", 2, 1, "none of them empty"),
            ("[context]\nexclude = ['!']\n", 2, 1, "is no pattern"),
            ("nodes = 8\n", 1, 1, "did you mean tree.nodes?"),
            ("[files.'*.md']\ncolour = 1\n", 2, 1, 'files."*.md".colour; `eagle-assist config example` lists'),
            ("[languages.go]\nenable = true\n", 2, 1, "did you mean languages.go.enabled?"),
            ("version = 2\n[new]\nkey = 1\n", 1, 1, "this program knows up to 1; update eagle-assist"),
            ("version = 'x'\n", 1, 1, "version must be a whole number"),
            ("x = " + "9" * 5000, 1, 5, "too many digits"),
            ("\n\nx = " + "[" * 5000, 3, 5, "nested too deeply"),
            ("a" + ".a" * 5000 + " = 1", 1, 1, "nested too deeply"),
            ("a = '\0'", 1, 6, "no valid TOML"),
        ],
    )
    def test_one_problem(self, tmp_path: Path, text: str, line: int, column: int, sentence: str) -> None:
        problem = problems_of(written(tmp_path, text))[0]
        assert sentence in problem.sentence
        assert (problem.line, problem.column) == (line, column)

    def test_undecodable_bytes_name_their_place(self, tmp_path: Path) -> None:
        (problem,) = problems_of(written(tmp_path, b"\xef\xbb\xbf# \xc3\xa9\n# \xc3\xa9\xff\n"))
        assert (problem.line, problem.column) == (2, 4)
        assert "byte 0xff is no UTF-8" in problem.sentence

    def test_a_byte_order_mark_and_dos_line_ends_change_nothing(self, tmp_path: Path) -> None:
        path = written(tmp_path, b"\xef\xbb\xbf[tree]\r\nnodes = 3\r\n")
        assert read_layer(path, Rank.USER).entries["tree", "nodes"].origin.line == 2

    def test_what_is_no_readable_file_is_one_sentence(self, tmp_path: Path) -> None:
        folder, loop, pipe = tmp_path / "folder", tmp_path / "loop", tmp_path / "pipe"
        folder.mkdir()
        loop.symlink_to(loop)
        os.mkfifo(pipe)
        for path, reason in ((folder, "no regular file"), (loop, "cannot be read"), (pipe, "no regular file")):
            (problem,) = problems_of(path)
            assert reason in problem.sentence
            assert problem.place == str(path)

    def test_a_huge_file_is_refused_unread(self, tmp_path: Path) -> None:
        (problem,) = problems_of(written(tmp_path, b"#" * (MAX_BYTES + 1)))
        assert "larger than 256 KiB" in problem.sentence

    def test_very_many_problems_take_no_time_to_speak_of(self, tmp_path: Path) -> None:
        """Looking for the nearest key is slow, so it ends after a hundred."""
        found = problems_of(written(tmp_path, "\n".join(f"key{number} = 1" for number in range(15_000))))
        assert len(found) == 101
        assert "14900 more values" in found[-1].sentence

    def test_a_message_repeats_little_of_what_stands_there(self, tmp_path: Path) -> None:
        text = f"[model]\ndevice = '{'x' * 10_000}'\n{'y' * 10_000} = '\\u001b[2J'\n"
        for problem in problems_of(written(tmp_path, text)):
            assert len(problem.sentence) < 400
            assert problem.sentence.isprintable()


class TestProject:
    @pytest.mark.parametrize(
        "text",
        [
            "[daemon]\nlog_level = 'debug'\n",
            "[learning]\nenabled = true\n",
            "[editor]\ndebounce_ms = 0\n",
            "[model]\nprecision = 'float32'\n",
            "[model]\ndevice = 'cpu'\n",
            "[model]\nname = './weights.gguf'\n",
            "[model]\nname = '/tmp/weights.gguf'\n",
            "[model]\nhead = '../head'\n",
            "[model]\ndraft = 'someone/repository'\n",
            "[context]\nsecret_patterns = ['!.env']\n",
            "[context]\nexclude = ['!build/']\n",
        ],
    )
    def test_what_belongs_to_the_person_or_the_machine_is_refused(self, tmp_path: Path, text: str) -> None:
        (problem,) = problems_of(written(tmp_path, text), Rank.PROJECT)
        assert problem.line == 2
        assert "a project's file may" in problem.sentence

    def test_the_same_is_fine_in_the_users_own_file(self, tmp_path: Path) -> None:
        text = "[daemon]\nlog_level = 'debug'\n[model]\nname = './w.gguf'\nhead = '~/h'\ndraft = 'someone/repository'\n"
        found = load(user_file=written(tmp_path, text), environ={}).settings
        assert found.model.name == str(tmp_path / "w.gguf")
        assert found.model.head == str(Path.home() / "h")
        assert found.model.draft == "someone/repository"

    def test_it_adds_to_the_files_that_are_left_alone(self, tmp_path: Path) -> None:
        (tmp_path / ".eagle-assist.toml").write_text(
            "[context]\nsecret_patterns = ['*.vault', '.env']\nexclude = ['a']\n"
        )
        user = written(tmp_path, "[context]\nexclude = ['b']\n")
        found = load(tmp_path / "x.py", user_file=user, environ={}).settings.context
        assert found.secret_patterns == (*Settings().context.secret_patterns, "*.vault")
        assert found.exclude == ("b", "a")
        assert found.is_secret(str(tmp_path / "deep/my.vault"))
        assert found.is_secret(str(tmp_path / ".ssh/config"))
        assert not found.is_secret(str(tmp_path / "vault.py"))
