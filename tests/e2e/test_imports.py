"""What is imported when: the contracts between the packages, and what a quick start may not load."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
HEAVY = {"torch", "transformers", "numpy", "tokenizers", "safetensors", "gguf"}


def modules_after(script: str) -> set[str]:
    """Run `script` in a fresh interpreter; return the top-level names of all modules that it loaded."""
    report = "\nimport json, sys\nprint(json.dumps(sorted({name.split('.')[0] for name in sys.modules})))"
    result = subprocess.run(
        [sys.executable, "-c", script + report], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return set(json.loads(result.stdout.splitlines()[-1]))


def start(*arguments: str) -> str:
    """A script that runs the command line on `arguments` and goes on after it."""
    return (
        "import contextlib, io, sys, eagle_assist\n"
        f"sys.argv = ['eagle-assist', *{list(arguments)!r}]\n"
        "with contextlib.suppress(SystemExit), contextlib.redirect_stdout(io.StringIO()):\n"
        "    eagle_assist.main()\n"
    )


@pytest.mark.parametrize(
    "arguments",
    [["--version"], ["--help"], ["complete", "--help"], ["tui", "--help"], ["config", "show"], ["models", "list"]],
    ids=" ".join,
)
def test_quick_commands_load_no_model_library(arguments: list[str]) -> None:
    loaded = modules_after(start(*arguments))
    assert "assistant" in loaded
    assert not loaded & HEAVY


@pytest.mark.parametrize("package", ["lsp", "tui", "assistant.client", "assistant.config", "assistant.protocol"])
def test_an_editors_side_loads_neither_models_nor_the_engine(package: str) -> None:
    script = (
        f"import importlib, pkgutil, {package} as room\n"
        "for module in pkgutil.walk_packages(getattr(room, '__path__', []), room.__name__ + '.'):\n"
        "    importlib.import_module(module.name)\n"
    )
    loaded = modules_after(script)
    assert package.partition(".")[0] in loaded
    assert not loaded & (HEAVY | {"models"})


def test_imports_keep_the_contracts_of_the_architecture() -> None:
    linter = Path(sys.executable).with_name("lint-imports")
    result = subprocess.run([linter, "--no-cache"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout
