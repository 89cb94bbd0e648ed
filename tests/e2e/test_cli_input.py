"""What `eagle-assist complete` makes of files, positions and models, good and bad."""

import errno
import os
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.conftest import CODE, Run, document_of
from tests.support.tiny_folder import write_head, write_model
from tests.support.tiny_tokenizer import tiny_tokenizer


class TestInput:
    def test_standard_input_with_a_position(self, complete: Run) -> None:
        named = complete("-:5:9", "-q", stdin=CODE.encode())
        assert named.exit_code == 0
        assert named.stdout != complete("-", "-q", stdin=CODE.encode()).stdout

    def test_an_empty_file_is_completed(self, complete: Run, tmp_path: Path) -> None:
        (tmp_path / "empty.py").touch()
        found = document_of(complete(tmp_path / "empty.py", "--json"))
        assert found["prompt_tokens"] == 1
        assert found["tokens"]

    def test_dos_line_ends_are_read_as_one_and_written_as_the_file_has_them(self, complete: Run, source: Path) -> None:
        options = ("--method", "plain", "--temperature", "2", "--max-tokens", "100")
        for seed in range(20):
            unix = document_of(complete(f"{source}:9:5", "--json", *options, "--seed", str(seed)))
            if "\n" in unix["text"]:
                break
        source.write_bytes(CODE.replace("\n", "\r\n").encode())
        dos = document_of(complete(f"{source}:9:5", "--json", *options, "--seed", str(seed)))
        assert "\r\n" in dos["text"]
        assert dos["tokens"] == unix["tokens"]
        assert dos["text"] == unix["text"].replace("\n", "\r\n")
        streamed = complete(f"{source}:9:5", "-q", *options, "--seed", str(seed))
        assert streamed.stdout_bytes == dos["text"].encode()

    def test_a_byte_order_mark_changes_nothing(self, complete: Run, source: Path) -> None:
        plain = document_of(complete(f"{source}:5:9", "--json"))
        source.write_bytes(b"\xef\xbb\xbf" + CODE.encode())
        assert document_of(complete(f"{source}:5:9", "--json"))["tokens"] == plain["tokens"]

    def test_broken_utf8_is_completed_at_the_column_that_an_editor_shows(self, complete: Run, tmp_path: Path) -> None:
        (tmp_path / "broken.py").write_bytes(b"x = '\xff\xfe'  # ret\n")
        assert complete(f"{tmp_path / 'broken.py'}:1:16").exit_code == 0
        assert "its columns are 1 to 16" in complete(f"{tmp_path / 'broken.py'}:1:17").stderr

    def test_a_marker_in_a_files_text_is_text(self, complete: Run, tmp_path: Path) -> None:
        marker = "<|fim_middle|>"
        (tmp_path / "a.py").write_text(f"x = '{marker}'\n")
        found = document_of(complete(tmp_path / "a.py", "--json"))
        assert found["prompt_tokens"] == len(tiny_tokenizer().encode(f"x = '{marker}'\n"))

    @pytest.mark.parametrize("name", [".env", "server.pem", "id_rsa"])
    def test_a_file_that_may_hold_secrets_is_refused(self, complete: Run, tmp_path: Path, name: str) -> None:
        (tmp_path / name).write_text("TOKEN=abc\n")
        refused = complete(tmp_path / name)
        assert refused.exit_code == 2
        assert not refused.stdout
        assert "may hold secrets" in refused.stderr
        assert "abc" not in refused.stderr

    def test_a_huge_file_is_completed_from_its_window(self, complete: Run, tmp_path: Path) -> None:
        line = b"value = compute(value, 17)\n"
        (tmp_path / "huge.py").write_bytes(line * (20_000_000 // len(line)))
        found = document_of(complete(f"{tmp_path / 'huge.py'}:500000:9", "--json"))
        assert 384 <= found["prompt_tokens"] <= 768 + 128 + 3

    @pytest.mark.parametrize(
        ("content", "place", "message"),
        [
            (None, "", "there is no file"),
            (b"\x7fELF\0\0\0", "", "is binary"),
            (b"one\ntwo\n", ":9", "has no line 9: its lines are 1 to 3"),
            (b"one\ntwo\n", ":0:1", "has no line 0"),
            (b"one\ntwo\n", ":2:5", "has no column 5 in line 2: its columns are 1 to 4"),
            (b"one\ntwo\n", ":x", "is no position"),
        ],
    )
    def test_a_file_or_position_that_is_no_good_is_one_sentence(
        self, complete: Run, tmp_path: Path, content: bytes | None, place: str, message: str
    ) -> None:
        path = tmp_path / "input.py"
        if content is not None:
            path.write_bytes(content)
        result = complete(f"{path}{place}")
        assert result.exit_code == 2
        assert message in result.stderr
        assert "input.py" in result.stderr
        assert not result.stdout

    def test_a_folder_is_one_sentence(self, complete: Run, tmp_path: Path) -> None:
        result = complete(tmp_path)
        assert (result.exit_code, "is a folder" in result.stderr) == (2, True)

    def test_a_file_without_permission_is_one_sentence(
        self, complete: Run, source: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Permission bits do not bind an administrator, so the operating system's answer is played."""
        opened = Path.open

        def refuse(path: Path, *arguments: Any, **options: Any) -> Any:
            if path == source:
                raise PermissionError(13, "Permission denied", str(path))
            return opened(path, *arguments, **options)

        monkeypatch.setattr(Path, "open", refuse)
        result = complete(source)
        assert (result.exit_code, "permission denied" in result.stderr) == (2, True)

    def test_a_pipe_is_never_waited_for(self, complete: Run, tmp_path: Path) -> None:
        os.mkfifo(tmp_path / "pipe")
        result = complete(tmp_path / "pipe")
        assert (result.exit_code, "is a pipe" in result.stderr) == (2, True)

    def test_an_interrupt_before_the_first_token_is_quiet(
        self, complete: Run, source: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def interrupt(*_: Any) -> None:
            raise KeyboardInterrupt

        monkeypatch.setattr("assistant.documents.read", interrupt)
        result = complete(source)
        assert (result.exit_code, result.stdout, result.stderr) == (130, "", "")

    def test_a_read_only_cache_only_costs_time(
        self,
        complete: Run,
        source: Path,
        home: Path,
        monkeypatch: pytest.MonkeyPatch,
        caplog: pytest.LogCaptureFixture,
    ) -> None:
        """Permission bits do not bind an administrator, so the operating system's answer is played."""
        mkdir = Path.mkdir

        def refuse(path: Path, *arguments: Any, **options: Any) -> None:
            if path.is_relative_to(home):
                raise OSError(errno.EROFS, "Read-only file system", str(path))
            mkdir(path, *arguments, **options)

        monkeypatch.setattr(Path, "mkdir", refuse)
        result = complete(source, "--precision", "bfloat16")
        assert result.exit_code == 0
        assert result.stdout
        assert "the folder is read-only" in caplog.text
        assert not home.exists()


class TestModels:
    def test_no_such_model_names_the_remedies(self, run: Run, source: Path) -> None:
        result = run("complete", str(source), "--model", "nothing-here")
        assert result.exit_code == 2
        assert "'nothing-here'" in result.stderr
        assert "eagle-assist models fetch" in result.stderr

    def test_a_missing_shard_is_named(self, run: Run, tmp_path: Path, source: Path) -> None:
        model = write_model(tmp_path / "sharded", shards=3)
        sound = run("complete", str(source), "--model", str(model), "--precision", "float32", "--max-tokens", "2")
        assert sound.exit_code == 0, sound.stderr
        (model / "model-00002-of-00003.safetensors").unlink()
        result = run("complete", str(source), "--model", str(model), "--precision", "float32")
        assert result.exit_code == 2
        assert "model-00002-of-00003.safetensors" in result.stderr

    def test_truncated_weights_are_named(self, run: Run, tmp_path: Path, source: Path) -> None:
        model = write_model(tmp_path / "cut")
        os.truncate(model / "model.safetensors", 50_000)
        result = run("complete", str(source), "--model", str(model), "--precision", "float32")
        assert result.exit_code == 2
        assert "model.safetensors" in result.stderr

    def test_a_head_of_another_size_is_refused(self, complete: Run, tmp_path: Path, source: Path) -> None:
        head = write_head(tmp_path / "wide-head", hidden=64)
        result = complete(source, "--method", "eagle2", "--head", str(head))
        assert result.exit_code == 2
        assert "hidden size 64" in result.stderr
