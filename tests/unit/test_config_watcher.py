"""A configuration that follows its files: real files, saved as editors save them."""

import errno
import os
import queue
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from watchdog.observers import Observer

from assistant.config import Rank, mapping_layer, watcher
from assistant.config.store import ConfigStore
from assistant.config.watcher import ConfigWatcher
from assistant.errors import ConfigError, Problem

PATIENCE_S = 60.0
"""only a failure waits this long"""
NEVER_S = 3600.0


class Followed:
    """A watcher whose callbacks are waited for."""

    def __init__(self, folder: Path) -> None:
        self.user = folder / "config" / "config.toml"
        self.user.parent.mkdir()
        self.changes: queue.Queue[None] = queue.Queue()
        self.problems: queue.Queue[tuple[Problem, ...]] = queue.Queue()
        self.watcher = ConfigWatcher(
            on_change=lambda: self.changes.put(None), on_problems=self.problems.put, environ={}, user_file=self.user
        )

    @property
    def nodes(self) -> int:
        return self.watcher.current().settings.tree.nodes

    def after_change(self, what: Callable[[], Any]) -> Any:
        """What a change brings; a slow save may be seen in its middle, so a later one may be meant."""
        self.changes.get(timeout=PATIENCE_S)
        return what()

    def wait_for(self, wanted: int) -> None:
        while self.after_change(lambda: self.nodes) != wanted:
            pass


@pytest.fixture
def followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Followed]:
    """Looks only when the system gives notice."""
    monkeypatch.setattr(watcher, "_LOOK_S", NEVER_S)
    found = Followed(tmp_path)
    yield found
    found.watcher.close()


def nodes(number: int) -> str:
    return f"[tree]\nnodes = {number}\n"


def replace(path: Path, text: str) -> None:
    """As most editors save: a new file takes the name of the old one."""
    new = path.with_name(f"{path.name}~new")
    new.write_text(text)
    new.replace(path)


class TestSaves:
    def test_created_written_replaced_moved_away_and_deleted(self, followed: Followed) -> None:
        followed.watcher.start()
        followed.user.write_text(nodes(2))
        followed.wait_for(2)
        followed.user.write_text(nodes(3))
        followed.wait_for(3)
        replace(followed.user, nodes(4))
        followed.wait_for(4)
        followed.user.rename(followed.user.with_suffix(".bak"))
        followed.wait_for(0)
        replace(followed.user, nodes(5))
        followed.wait_for(5)
        followed.user.unlink()
        followed.wait_for(0)
        assert not followed.watcher.polling

    def test_an_error_is_told_and_the_last_good_state_stays_until_it_is_mended(self, followed: Followed) -> None:
        followed.user.write_text(nodes(2))
        followed.watcher.start()
        replace(followed.user, "[tree\nnodes = 3\n")
        (problem,) = followed.problems.get(timeout=PATIENCE_S)
        assert (problem.place, problem.line, problem.column) == (str(followed.user), 1, 6)
        assert followed.nodes == 2
        assert followed.watcher.problems == (problem,)
        replace(followed.user, nodes(3))
        assert followed.problems.get(timeout=PATIENCE_S) == ()
        followed.wait_for(3)

    def test_a_file_that_was_wrong_from_the_start_is_told_and_counts_as_absent(self, followed: Followed) -> None:
        followed.user.write_text("[tree]\nnodes = 999\nwidth = 999\n")
        followed.watcher.start()
        assert len(followed.problems.get(timeout=PATIENCE_S)) == 2
        assert followed.nodes == 0
        assert followed.changes.empty()

    def test_files_of_several_projects_are_followed(self, followed: Followed, tmp_path: Path) -> None:
        documents = [tmp_path / name / "src/x.py" for name in ("one", "two")]
        for document in documents:
            document.parent.mkdir(parents=True)
            (document.parents[1] / ".eagle-assist.toml").write_text(nodes(2))
            assert followed.watcher.current(document).settings.tree.nodes == 2
        followed.watcher.start()
        replace(documents[1].parents[1] / ".eagle-assist.toml", nodes(3))
        read = lambda: [followed.watcher.current(document).settings.tree.nodes for document in documents]  # noqa: E731
        while followed.after_change(read) != [2, 3]:
            pass

    def test_a_link_is_followed_to_its_target(self, followed: Followed, tmp_path: Path) -> None:
        target = tmp_path / "dotfiles" / "assist.toml"
        target.parent.mkdir()
        target.write_text(nodes(2))
        followed.user.symlink_to(target)
        followed.watcher.start()
        replace(target, nodes(3))
        followed.wait_for(3)

    def test_no_callback_comes_after_the_end(self, followed: Followed) -> None:
        followed.watcher.start()
        followed.watcher.close()
        followed.user.write_text(nodes(2))
        assert followed.nodes == 2
        assert followed.changes.empty()


class TestWithoutNotices:
    def test_files_are_looked_at_instead(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        def exhausted(*_: object, **__: object) -> None:
            raise OSError(errno.ENOSPC, "inotify watch limit reached")

        monkeypatch.setattr(Observer, "schedule", exhausted)
        monkeypatch.setattr(watcher, "_LOOK_S", NEVER_S)
        monkeypatch.setattr(watcher, "_POLL_S", 0.05)
        followed = Followed(tmp_path)
        with followed.watcher:
            assert followed.watcher.polling
            followed.user.write_text(nodes(2))
            followed.wait_for(2)

    def test_a_folder_that_does_not_exist_yet(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(watcher, "_LOOK_S", 0.05)
        followed = Followed(tmp_path)
        followed.user.parent.rmdir()
        with followed.watcher:
            followed.user.parent.mkdir()
            replace(followed.user, nodes(2))
            followed.wait_for(2)


class TestStore:
    """Asking is enough: whoever asks after a save gets what was saved."""

    def test_every_question_sees_the_files_as_they_are(self, tmp_path: Path) -> None:
        user = tmp_path / "user.toml"
        store = ConfigStore(environ={}, user_file=user)
        document = tmp_path / "a/b/x.py"
        document.parent.mkdir(parents=True)
        for number in range(1, 40):
            user.write_text(nodes(number))
            assert store.current(document).settings.tree.nodes == number
        (tmp_path / ".eagle-assist.toml").write_text(nodes(50))
        assert store.current(document).settings.tree.nodes == 50
        (tmp_path / "a/b/.eagle-assist.toml").write_text(nodes(60))
        assert store.current(document).settings.tree.nodes == 60
        (tmp_path / "a/b/.eagle-assist.toml").unlink()
        assert store.current(document).settings.tree.nodes == 50

    def test_what_did_not_change_is_neither_read_nor_merged_again(self, tmp_path: Path) -> None:
        user = tmp_path / "user.toml"
        user.write_text(nodes(2))
        os.utime(user, (1, 1))
        store = ConfigStore(environ={}, user_file=user)
        assert store.current(tmp_path / "x.py") is store.current(tmp_path / "y.py")

    def test_a_client_and_the_command_line_lie_above_the_files(self, tmp_path: Path) -> None:
        user = tmp_path / "user.toml"
        user.write_text("[tree]\nnodes = 2\nwidth = 2\ndepth = 2\n")
        store = ConfigStore(environ={}, command_line={"tree.width": 4}, user_file=user)
        client = mapping_layer(Rank.CLIENT, {"tree.width": 3, "tree.depth": 3}, "nvim")
        tree = store.current(None, client).settings.tree
        assert (tree.nodes, tree.depth, tree.width) == (2, 3, 4)
        assert store.current().settings.tree.depth == 2

    def test_a_wrong_command_line_is_an_error_at_once(self, tmp_path: Path) -> None:
        with pytest.raises(ConfigError, match=r"command line: tree\.nodes must be"):
            ConfigStore(environ={}, command_line={"tree.nodes": 999}, user_file=tmp_path / "user.toml")

    def test_many_folders_are_not_remembered_for_ever(self, tmp_path: Path) -> None:
        store = ConfigStore(environ={}, user_file=tmp_path / "user.toml")
        for number in range(200):
            folder = tmp_path / str(number)
            folder.mkdir()
            (folder / ".eagle-assist.toml").write_text(nodes(3))
            store.current(folder / "x.py")
        assert len(store.refresh(anew=False)) <= 65
        assert len(store.watched) <= 65
