"""A real Emacs, with eglot and with lsp-mode: a completion arrives and is inserted."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SCRIPT = Path(__file__).parent / "editors" / "emacs.el"
EMACS = shutil.which("emacs")


@pytest.mark.slow
@pytest.mark.skipif(EMACS is None, reason="Emacs is not installed (Debian: emacs-nox elpa-eglot elpa-lsp-mode)")
@pytest.mark.parametrize("client", ["eglot", "lsp-mode"])
def test_emacs_is_offered_a_completion_and_inserts_all_of_it(client: str, tmp_path: Path) -> None:
    assert EMACS is not None
    project = tmp_path / "project"
    project.mkdir()
    path = project / "code.txt"
    path.write_text("total = 0\n")
    environment = {
        **os.environ, "EAGLE_ASSIST_HOME": str(tmp_path / "home"), "PYTHONPATH": str(ROOT),
        "HOME": str(tmp_path), "TMPDIR": str(tmp_path),
    }  # fmt: skip
    command = [EMACS, "--batch", "-l", str(SCRIPT), client, str(path), sys.executable]
    result = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=120)
    assert result.returncode == 0, result.stderr
    found = json.loads(result.stdout.splitlines()[-1])
    assert found["candidates"] == ["total = 0 …"]
    assert found["text"] == "total = 0\ntotal = 0\ntot", "the last ten characters again, as the scripted daemon writes"
