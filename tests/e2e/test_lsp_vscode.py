"""A real VS Code in a browser: ghost text is shown, accepted by word and whole, and undone."""

import json
import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
EDITORS = Path(__file__).parent / "editors"
PROGRAMS = {name: shutil.which(name) for name in ("node", "npm", "chromium")}
MISSING = [name for name, path in PROGRAMS.items() if path is None]


@pytest.fixture(scope="module")
def setup(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """VS Code and the packed extension: in the folder of EAGLE_ASSIST_VSCODE, in pytest's cache, or in a new one."""
    named, cache = os.environ.get("EAGLE_ASSIST_VSCODE"), getattr(request.config, "cache", None)
    folder = Path(named) if named else cache.mkdir("vscode") if cache else tmp_path_factory.mktemp("vscode")
    subprocess.run([EDITORS / "vscode-setup.sh", folder], check=True, timeout=600)
    return folder


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.skipif(bool(MISSING), reason=f"not installed: {', '.join(MISSING)}")
def test_vs_code_shows_ghost_text_and_accepts_it_by_word_and_whole(setup: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tests.support.lsp_server", "--idle-exit", "60", "--steps", "1", "--size", "10"]
    environment = {**os.environ, "EAGLE_ASSIST_HOME": str(tmp_path / "home"), "PYTHONPATH": str(ROOT)}
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    node, chromium = str(PROGRAMS["node"]), str(PROGRAMS["chromium"])
    script = [node, str(EDITORS / "vscode.mjs"), str(setup), str(tmp_path), chromium, json.dumps(command), str(port)]
    result = subprocess.run(script, env=environment, capture_output=True, text=True, check=False, timeout=600)
    assert result.returncode == 0, result.stderr
    found = json.loads(result.stdout.splitlines()[-1])
    assert "al = 0" in found["shown"], "the scripted daemon writes what stands before the cursor again"
    assert found["afterWord"] == "total = 0\ntotal"
    assert found["afterTab"].startswith("total = 0\ntotal = 0\n")
    assert found["afterUndo"] == found["afterWord"], "undo takes back what Tab inserted, exactly"
