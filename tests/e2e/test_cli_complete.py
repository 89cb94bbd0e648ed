"""`eagle-assist complete` on a tiny random model: what it prints, and what it says of input that is no good."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from assistant.commands.opening import METHODS
from tests.e2e.conftest import Run
from tests.support.tiny_folder import write_head, write_model
from tests.support.tiny_tokenizer import tiny_tokenizer

CODE = "import os\n\n\ndef first(values):\n    return values[0]\n\n\ndef last(values):\n    \n\n\nprint(first, last)\n"


@pytest.fixture(name="source")
def fixture_source(tmp_path: Path) -> Path:
    path = tmp_path / "code.py"
    path.write_text(CODE)
    return path


@pytest.fixture(name="complete")
def fixture_complete(run: Run, tiny_model: Path) -> Run:
    def complete(place: object, *options: str, stdin: bytes = b"") -> Result:
        standard = ("--model", str(tiny_model), "--precision", "float32", "--max-tokens", "12")
        return run("complete", str(place), *standard, *options, stdin=stdin)

    return complete


def document_of(result: Result) -> dict[str, Any]:
    """The one JSON document on standard output."""
    assert result.exit_code == 0, result.stderr
    found = json.loads(result.stdout)
    assert isinstance(found, dict)
    return found


class TestOutput:
    def test_the_text_goes_to_stdout_and_the_figures_to_stderr(self, complete: Run, source: Path) -> None:
        result = complete(f"{source}:9:5")
        assert result.exit_code == 0
        assert result.stdout
        assert "tokens in" in result.stderr
        assert "tokens in" not in result.stdout

    def test_quiet_says_nothing_beside_the_text(self, complete: Run, source: Path) -> None:
        loud, quiet = complete(f"{source}:9:5"), complete(f"{source}:9:5", "--quiet")
        assert quiet.stdout == loud.stdout
        assert not quiet.stderr

    def test_json_has_every_field_and_nothing_else_is_printed(self, complete: Run, source: Path) -> None:
        found = document_of(complete(f"{source}:9:5", "--json", "--method", "ngram"))
        kinds = {key: type(value) for key, value in found.items()}
        assert kinds == {
            "text": str,
            "finish_reason": str,
            "tokens": list,
            "prompt_tokens": int,
            "cached_tokens": int,
            "model": str,
            "method": str,
            "steps": list,
            "tokens_per_step": float,
            "acceptance_by_depth": list,
            "time": dict,
        }
        assert found["finish_reason"] in {"stop", "length"}
        assert found["method"] == "ngram"
        assert found["model"] == "tiny"
        assert found["cached_tokens"] == 0
        assert set(found["time"]) == {"load_ms", "prefill_ms", "decode_ms"}
        assert all(isinstance(token, int) for token in found["tokens"])
        for step in found["steps"]:
            assert set(step) == {"nodes", "depth", "width", "accepted", "origins", "draft_ms", "verify_ms"}
            assert 0 <= step["accepted"] <= step["depth"] <= step["nodes"]
        after_the_prefill = sum(len(step["origins"]) for step in found["steps"])
        assert len(found["tokens"]) == 1 + after_the_prefill
        assert found["tokens_per_step"] == pytest.approx(after_the_prefill / len(found["steps"]), abs=1e-4)

    def test_json_and_stream_hold_the_same_text(self, complete: Run, source: Path) -> None:
        assert document_of(complete(f"{source}:9:5", "--json"))["text"] == complete(f"{source}:9:5").stdout

    def test_the_typed_part_of_a_healed_token_is_not_written_again(self, complete: Run, source: Path) -> None:
        found = document_of(complete(f"{source}:5:8", "--json"))
        spelt = b"".join(map(tiny_tokenizer().token_bytes, found["tokens"])).decode("utf-8", "replace")
        assert spelt == " ret" + found["text"]

    def test_max_tokens_ends_it(self, complete: Run, source: Path) -> None:
        found = document_of(complete(f"{source}:1:4", "--json", "--max-tokens", "3", "--method", "plain"))
        assert (len(found["tokens"]), found["finish_reason"]) == (3, "length")

    def test_a_seed_makes_sampling_repeatable(self, complete: Run, source: Path) -> None:
        def sample(seed: str) -> str:
            return complete(source, "--temperature", "1.5", "--seed", seed, "-q").stdout

        assert sample("1") == sample("1")
        assert len({sample(str(seed)) for seed in range(4)}) > 1

    @pytest.mark.parametrize("method", METHODS)
    def test_every_method_writes_the_same_greedy_text(
        self, complete: Run, source: Path, tiny_model: Path, tiny_head: Path, method: str
    ) -> None:
        extra = {
            "plain": [],
            "ngram": [],
            "sps": ["--draft", str(tiny_model)],
        }.get(method, ["--head", str(tiny_head)])
        found = document_of(complete(f"{source}:9:5", "--json", "--method", method, *extra))
        plain = document_of(complete(f"{source}:9:5", "--json", "--method", "plain"))
        assert found["tokens"] == plain["tokens"]
        assert found["method"] == {"auto": "eagle2"}.get(method, method)

    def test_auto_without_a_head_looks_in_the_text(self, complete: Run, source: Path) -> None:
        assert document_of(complete(source, "--json"))["method"] == "ngram"


class TestTree:
    def test_each_step_is_drawn_with_its_nodes_and_the_text_follows(
        self, complete: Run, source: Path, tiny_model: Path
    ) -> None:
        """A model that drafts for itself has every draft accepted."""
        options = ("--method", "sps", "--draft", str(tiny_model), "--depth", "3")
        drawn = complete(f"{source}:9:5", "--tree", *options).stdout
        text = complete(f"{source}:9:5", *options).stdout
        assert drawn.startswith("prefill: ")
        assert ": 3 nodes, depth 3, width 1, 3 accepted; drafted in " in drawn
        assert drawn.count("✓") >= 3
        assert ", draft" in drawn
        assert "(bonus)" in drawn
        assert drawn.endswith(text)

    def test_with_json_the_drawing_goes_to_stderr(self, complete: Run, source: Path) -> None:
        result = complete(source, "--tree", "--json")
        assert document_of(result)["tokens"]
        assert "prefill: " in result.stderr


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

    def test_a_huge_file_is_completed_from_its_window(self, complete: Run, tmp_path: Path) -> None:
        line = b"value = compute(value, 17)\n"
        (tmp_path / "huge.py").write_bytes(line * (20_000_000 // len(line)))
        found = document_of(complete(f"{tmp_path / 'huge.py'}:500000:9", "--json"))
        assert 100 < found["prompt_tokens"] <= 1024

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


class TestOptions:
    @pytest.mark.parametrize(
        ("options", "message"),
        [
            (["--method", "plain", "--head", "x"], "--method plain uses no draft head"),
            (["--method", "eagle2", "--draft", "x"], "--method eagle2 uses no draft model"),
            (["--method", "sps"], "add --draft NAME"),
            (["--method", "eagle2"], "head"),
            (["--method", "eagle2", "--head", "gone"], "No draft head answers to 'gone'"),
            (["--method", "magic"], "'magic' is not one of"),
            (["--nodes", "0"], "--nodes"),
            (["--depth", "many"], "--depth"),
            (["--threshold", "1.5"], "--threshold"),
            (["--temperature", "nan"], "not a finite number"),
            (["--temperature", "-1"], "--temperature"),
            (["--top-p", "0"], "--top-p"),
            (["--max-tokens", "0"], "--max-tokens"),
            (["--device", "gpu"], "'gpu' is not one of auto, cpu, cuda, cuda:N, mps"),
            (["--frobnicate"], "--frobnicate"),
        ],
        ids=lambda value: " ".join(value) if isinstance(value, list) else "",
    )
    def test_options_that_cannot_be_are_one_sentence(
        self, complete: Run, source: Path, options: list[str], message: str
    ) -> None:
        result = complete(source, *options)
        assert result.exit_code == 2
        assert message in result.stderr
        assert not result.stdout

    def test_the_context_bounds_prompt_and_completion(self, run: Run, tmp_path: Path, source: Path) -> None:
        model = write_model(tmp_path / "short", context=64)
        source.write_text(CODE * 9)
        result = run("complete", str(source), "--model", str(model), "--precision", "float32", "--json")
        found = document_of(result)
        assert found["prompt_tokens"] + len(found["tokens"]) <= 64


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
