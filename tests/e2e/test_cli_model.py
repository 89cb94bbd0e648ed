"""The whole way with the real default model: a file of this repository, completed where its text was taken out."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
_PROGRAM = (sys.executable, "-m", "eagle_assist")
SOURCE = ROOT / "models" / "target.py"


@pytest.mark.model
def test_the_default_model_writes_the_rest_of_a_line_of_this_repository(tmp_path: Path) -> None:
    """In half a word, behind a class full of the same pattern: the next characters leave little to choose."""
    text = SOURCE.read_text()
    cursor = text.index("    hidden_size: int") + len("    hidden_si")
    cut = tmp_path / "target.py"
    cut.write_text(text[:cursor] + text[text.index("\n", cursor) :])
    line = text.count("\n", 0, cursor) + 1
    process = subprocess.run(
        [*_PROGRAM, "complete", f"{cut}:{line}", "--max-tokens", "16", "--json", "--no-daemon", "--method", "eagle2"],
        cwd=ROOT,
        env=os.environ,
        capture_output=True,
        text=True,
        check=False,
    )
    assert process.returncode == 0, process.stderr
    found = json.loads(process.stdout)
    assert found["text"].startswith("ze: int")
    assert found["model"] == "qwen2.5-coder-0.5b"
    assert found["method"] == "eagle2"
    assert sum(step["accepted"] for step in found["steps"]) > 0
    assert found["tokens_per_step"] > 1
