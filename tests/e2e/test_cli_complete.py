"""`eagle-assist complete` on a tiny random model: what it prints, and which options it takes."""

from pathlib import Path

import pytest

from assistant.commands.opening import METHODS
from tests.e2e.conftest import CODE, Run, document_of
from tests.support.tiny_folder import write_model
from tests.support.tiny_tokenizer import tiny_tokenizer


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
            "daemon": bool,
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
        assert found["method"] == {"auto": "adaptive"}.get(method, method)

    def test_auto_without_a_head_looks_in_the_text(self, complete: Run, source: Path) -> None:
        found = document_of(complete(source, "--json", "--method", "auto"))
        assert found["method"] == "adaptive"
        assert found["tokens"] == document_of(complete(source, "--json", "--method", "plain"))["tokens"]


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
            (["--nodes", "513"], "--nodes"),
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
