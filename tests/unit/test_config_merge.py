"""What the declaration says, and which source wins."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click
import pytest
import tomli
from hypothesis import given, settings
from hypothesis import strategies as st

from assistant.commands.complete import complete
from assistant.commands.opening import METHODS
from assistant.config import Merged, Rank, Settings, load, mapping_layer
from assistant.config.example import example
from assistant.config.keys import KEYS, dotted
from assistant.config.languages import language_of
from assistant.config.layers import environment_layer
from assistant.config.merge import merge
from assistant.config.overrides import BASES, matches_glob
from assistant.config.versions import check_version, rename
from assistant.errors import ConfigError
from tests.support.settings import Assigned, assignments, toml_of, valid_value

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "config.example.toml"


def value_of(found: Settings, path: tuple[str, ...]) -> Any:
    return getattr(getattr(found, path[0]), path[1])


class TestDeclaration:
    def test_the_example_file_is_written_from_it(self) -> None:
        assert EXAMPLE.read_text(encoding="utf-8") == example(), "run python -m assistant.config.example"

    def test_the_example_equals_the_defaults(self) -> None:
        assert load(user_file=EXAMPLE, environ={}).settings == Settings()

    def test_the_example_documents_every_key(self) -> None:
        document = tomli.loads(EXAMPLE.read_text(encoding="utf-8"))
        assert {
            (section, name) for section, table in document.items() if section != "version" for name in table
        } == set(KEYS)
        for key in KEYS.values():
            assert key.meta.description
            assert key.convert(key.default) == key.default

    def test_what_the_example_says_about_languages_and_patterns_is_valid(self, tmp_path: Path) -> None:
        text = EXAMPLE.read_text(encoding="utf-8")
        tail = text[text.index("# [languages.") :]
        user = tmp_path / "config.toml"
        user.write_text("\n".join(line.removeprefix("# ") for line in tail.splitlines()))
        found = load(user_file=user, environ={}).settings.overrides
        assert {override.key for override in found if override.kind == "languages"} == set(BASES)
        assert any(override.kind == "files" for override in found)

    def test_the_defaults_are_what_the_program_does_without_it(self) -> None:
        from assistant.daemon.prompt import Window
        from assistant.engine.tree import TreeShape
        from assistant.engine.types import GenerateOptions, Sampling
        from models.catalog import DEFAULT_MODEL

        found = Settings()
        assert found.model.name == DEFAULT_MODEL
        for name in ("threshold", "calibrated"):
            assert getattr(found.tree, name) == getattr(TreeShape(), name)
        assert (found.window.prefix, found.window.suffix) == (Window().prefix, Window().suffix)
        assert found.completion.max_tokens == GenerateOptions().max_tokens
        written = found.completion
        assert Sampling(written.temperature, written.top_p, written.top_k, written.seed) == Sampling()
        assert KEYS["model", "method"].choices == METHODS

    def test_an_option_takes_what_its_setting_takes(self) -> None:
        options = {option.name: option.type for option in complete.params}
        for (_, name), key in KEYS.items():
            kind = options.get(name)
            if isinstance(kind, click.IntRange | click.FloatRange) and key.section in {"tree", "completion"}:
                assert kind.min == (key.meta.ge if key.meta.ge is not None else key.meta.gt), name
                if kind.max is not None:
                    assert kind.max == key.meta.le, name

    def test_settings_are_values(self) -> None:
        assert hash(Settings()) == hash(Settings())
        with pytest.raises(AttributeError):
            Settings().tree.nodes = 3  # type: ignore[misc]


class TestPrecedence:
    @given(st.lists(assignments(project=True), min_size=5, max_size=5))
    @settings(max_examples=60)
    def test_the_highest_source_that_sets_a_key_wins(
        self, tmp_path_factory: pytest.TempPathFactory, chosen: list[Assigned]
    ) -> None:
        folder = tmp_path_factory.mktemp("project")
        user, project, environment, client, command_line = (
            {path: value for path, value in layer.items() if KEYS[path].project != "add"} for layer in chosen
        )
        (folder / "user.toml").write_text(toml_of(user), encoding="utf-8")
        (folder / ".eagle-assist.toml").write_text(toml_of(project), encoding="utf-8")
        found = load(
            folder / "deep/er/x.py",
            environ={f"EAGLE_ASSIST_{'__'.join(path).upper()}": _text(value) for path, value in environment.items()},
            client={dotted(path): value for path, value in client.items()},
            command_line={dotted(path): value for path, value in command_line.items()},
            user_file=folder / "user.toml",
        )
        ranked = [
            (Rank(rank), layer) for rank, layer in enumerate((user, project, environment, client, command_line), 1)
        ]
        for path, key in KEYS.items():
            rank, value = next(
                ((rank, layer[path]) for rank, layer in reversed(ranked) if path in layer), (Rank.DEFAULT, key.default)
            )
            assert value_of(found.settings, path) == value
            assert found.origins[dotted(path)].rank is rank

    def test_the_nearest_project_file_counts_alone(self, tmp_path: Path) -> None:
        (tmp_path / ".eagle-assist.toml").write_text("[tree]\nnodes = 3\nwidth = 2\n")
        (tmp_path / "inner").mkdir()
        (tmp_path / "inner/.eagle-assist.toml").write_text("[tree]\nnodes = 4\n")
        found = self.of(tmp_path / "inner/x.py")
        assert (found.settings.tree.nodes, found.settings.tree.width) == (4, Settings().tree.width)
        assert str(found.origins["tree.nodes"]) == f"{tmp_path}/inner/.eagle-assist.toml:2"
        assert self.of(tmp_path / "x.py").settings.tree.nodes == 3

    def test_the_problems_of_all_sources_are_found_at_once(self, tmp_path: Path) -> None:
        (tmp_path / ".eagle-assist.toml").write_text("[tree]\nnodes = 999\n")
        (tmp_path / "user.toml").write_text("[tree\n")
        with pytest.raises(ConfigError) as caught:
            load(
                tmp_path / "x.py",
                environ={"EAGLE_ASSIST_TREE__DEPTH": "deep", "EAGLE_ASSIST_TREE_WIDTH": "3"},
                client={"tree.depht": 3, "a b": 1},
                command_line={"tree.nodes": "8"},
                user_file=tmp_path / "user.toml",
            )
        assert [problem.place for problem in caught.value.problems] == [
            *(str(tmp_path / "user.toml"), str(tmp_path / ".eagle-assist.toml")),
            *("EAGLE_ASSIST_TREE_WIDTH", "EAGLE_ASSIST_TREE__DEPTH", "client", "client", "command line"),
        ]
        assert str(caught.value).endswith("(6 more: see `eagle-assist config check`)")

    @staticmethod
    def of(document: Path) -> Merged:
        return load(document, environ={}, user_file=document.parent / "none.toml")


class TestEnvironment:
    @given(st.data())
    def test_a_value_is_read_as_its_keys_type(self, data: st.DataObject) -> None:
        path = data.draw(st.sampled_from(sorted(KEYS)))
        value = data.draw(valid_value(KEYS[path]))
        layer = environment_layer({f"EAGLE_ASSIST_{'__'.join(path).upper()}": _text(value)})
        assert [entry.value for entry in layer.entries.values()] == ([value] if _text(value).strip() else [])

    def test_other_variables_are_nobodys_affair(self) -> None:
        others = {"EAGLE_ASSIST_HOME": "/x", "EAGLE_ASSIST_TREE__NODES": " ", "EAGLE_ASSIST_OTHER": "1", "PATH": "1"}
        assert not environment_layer(others).entries

    def test_a_language_can_be_set(self) -> None:
        layer = environment_layer({"EAGLE_ASSIST_LANGUAGES__MARKDOWN__ENABLED": "false"})
        assert not merge((layer,)).settings.for_document("a.md").editor.enabled

    @pytest.mark.parametrize(
        "name", ["EAGLE_ASSIST_TREE__NODE", "EAGLE_ASSIST___", "EAGLE_ASSIST_TREE__", "EAGLE_ASSIST___X"]
    )
    def test_what_looks_like_a_setting_and_is_none_is_refused(self, name: str) -> None:
        with pytest.raises(ConfigError) as caught:
            environment_layer({name: "1"})
        assert caught.value.problems[0].place == name


class TestDocuments:
    FILE = (
        "[completion]\nmax_tokens = 50\n[languages.python]\nmax_tokens = 40\nnodes = 2\n[files.'tests/**']\n"
        "max_tokens = 30\n[files.'*_slow.py']\nenabled = false\nmax_tokens = 20\n"
    )

    @pytest.fixture
    def project(self, tmp_path: Path) -> Path:
        (tmp_path / ".eagle-assist.toml").write_text(self.FILE)
        return tmp_path

    @pytest.mark.parametrize(
        ("name", "language", "tokens", "nodes", "enabled"),
        [
            ("a.go", None, 50, 0, True),
            ("a.py", None, 40, 2, True),
            ("a.txt", "python", 40, 2, True),
            ("a.py", "go", 50, 0, True),
            ("tests/deep/a.go", None, 30, 0, True),
            ("src/tests/a.go", None, 50, 0, True),
            ("tests/a_slow.py", None, 20, 2, False),
            ("src/a_slow.py", None, 20, 2, False),
        ],
    )
    def test_a_pattern_wins_over_a_language_and_a_later_one_over_an_earlier(
        self, project: Path, *, name: str, language: str | None, tokens: int, nodes: int, enabled: bool
    ) -> None:
        merged = load(project / name, environ={}, user_file=project / "none.toml")
        found = merged.settings.for_document(str(project / name), language)
        assert (found.completion.max_tokens, found.tree.nodes, found.editor.enabled) == (tokens, nodes, enabled)
        assert found.for_document(str(project / name), language) == found

    def test_what_is_asked_for_now_wins_over_both(self, project: Path) -> None:
        found = load(
            project / "tests/a.py",
            environ={"EAGLE_ASSIST_TREE__NODES": "5"},
            command_line={"completion.max_tokens": 9},
            user_file=project / "none.toml",
        ).settings.for_document(str(project / "tests/a.py"))
        assert (found.completion.max_tokens, found.tree.nodes) == (9, 5)

    def test_an_editor_can_switch_a_language_off(self, project: Path) -> None:
        layer = mapping_layer(Rank.CLIENT, {"languages.go.enabled": False, 'files."*.md".enabled': False}, "nvim")
        found = merge((layer,))
        assert not found.settings.for_document(str(project / "a.go")).editor.enabled
        assert not found.settings.for_document(str(project / "a.md")).editor.enabled
        assert str(found.origins["languages.go.enabled"]) == "nvim"

    def test_patterns_are_relative_to_their_project(self) -> None:
        assert matches_glob("src/*.py", "/p", "/p/src/a.py")
        assert not matches_glob("src/*.py", "/p", "/q/src/a.py")
        assert not matches_glob("src/*.py", "/p", "/p/x/src/a.py")
        assert matches_glob("/home/me/*.py", "/", "/home/me/a.py")

    @pytest.mark.parametrize(
        ("name", "language"),
        [
            ("a.PY", "python"),
            ("Makefile", "makefile"),
            ("x/.env", None),
            ("a.tsx", "typescriptreact"),
            ("README", None),
        ],
    )
    def test_languages_by_name(self, name: str, language: str | None) -> None:
        assert language_of(name) == language


RENAMED: Mapping[int, Mapping[tuple[str, ...], tuple[str, ...]]] = {
    2: {("tree", "size"): ("tree", "nodes"), ("old", "key"): ()},
    3: {("tree", "nodes"): ("tree", "slots")},
}


class TestVersions:
    def test_a_key_of_an_older_version_is_read_under_its_present_name(self) -> None:
        assert rename(("tree", "size"), 1, 3, RENAMED) == ("tree", "slots")
        assert rename(("tree", "nodes"), 2, 3, RENAMED) == ("tree", "slots")
        assert rename(("tree", "size"), 3, 3, RENAMED) == ("tree", "size")

    def test_a_key_that_is_gone_says_since_when(self) -> None:
        with pytest.raises(ValueError, match=r"old\.key means nothing since version 2"):
            rename(("old", "key"), 1, 3, RENAMED)

    def test_a_newer_file_asks_for_a_newer_program(self) -> None:
        assert check_version(None, 3) == check_version(3, 3) == 3
        with pytest.raises(ValueError, match="update eagle-assist"):
            check_version(4, 3)


def _text(value: Any) -> str:
    """A value as one writes it in a shell."""
    if isinstance(value, tuple):
        return ",".join(value)
    return str(value).lower() if isinstance(value, bool) else str(value)
