"""Which machine measured: what a reader needs to compare a figure with their own."""

import importlib.metadata
import os
import platform

from assistant.engine.cost import machine_name


def describe_machine() -> dict[str, str | int | float | None]:
    """Processor, cores, memory, system and the versions that decide speed."""
    import torch

    return {
        "machine": machine_name("cuda:0" if torch.cuda.is_available() else "cpu"),
        "cpu": machine_name("cpu"),
        "threads": torch.get_num_threads(),
        "memory_gb": _memory_gb(),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "torch": torch.__version__,
        "transformers": _version("transformers"),
        "llama_cpp_python": _version("llama-cpp-python"),
    }


def _memory_gb() -> float | None:
    try:
        return round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9, 1)
    except (ValueError, OSError):
        return None


def _version(distribution: str) -> str | None:
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return None
