"""What a step costs on one machine: milliseconds of verifying n rows and of drafting to a depth; and their store.

A tree's shape is good when it gives the most tokens a millisecond here, and costs differ between machines, models and
precisions by more than anything that a shape changes. So they are measured once (`measure.py`) and kept in the cache
folder.
"""

import hashlib
import json
import os
import platform
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch

from assistant import paths
from assistant.files import write_atomic
from models import kernels
from models.target import TargetSpec


@dataclass(frozen=True, slots=True)
class Costs:
    """One machine, model and precision. Medians; rows between two measured sizes are interpolated."""

    machine: str
    model: str
    precision: str
    device: str
    threads: int
    context: int
    """rows in the cache while it was measured"""
    width: int
    """nodes expanded on each level of a draft"""
    weight_bytes: int | None
    """of the weights that one forward reads; None where the model does not tell"""
    verify_ms: Mapping[int, float]
    """rows in one forward -> milliseconds"""
    head: str
    """which head the drafts were timed with; empty without one"""
    draft_ms: Mapping[int, float]
    """depth of a draft -> milliseconds; empty without a head"""
    spread_ms: Mapping[str, Sequence[float]]
    """("verify N" or "draft N") -> first and third quartile"""

    @property
    def bandwidth_gb_s(self) -> float | None:
        """10^9 bytes of weights read a second in a forward of the fewest rows, which does little besides."""
        if self.weight_bytes is None:
            return None
        return self.weight_bytes / self.verify_ms[min(self.verify_ms)] / 1e6

    def verify(self, rows: int) -> float:
        """Milliseconds of one forward over `rows` rows."""
        return _interpolate(self.verify_ms, rows)

    def draft(self, depth: int) -> float:
        """Milliseconds of drafting to `depth`; 0 without a head."""
        return _interpolate({0: 0.0, **self.draft_ms}, depth)

    def to_json(self) -> dict[str, Any]:
        """A JSON object; numbers as keys become strings there."""
        fields = asdict(self)
        for name in ("verify_ms", "draft_ms"):
            fields[name] = {str(key): value for key, value in fields[name].items()}
        return {**fields, "bandwidth_gb_s": self.bandwidth_gb_s}

    @classmethod
    def from_json(cls, row: Mapping[str, Any]) -> "Costs":
        """What `to_json` wrote. Raises KeyError, TypeError or ValueError where it did not."""
        fields = {name: row[name] for name in cls.__slots__}
        for name in ("verify_ms", "draft_ms"):
            fields[name] = {int(key): float(value) for key, value in row[name].items()}
        return cls(**fields)


def save(costs: Costs) -> Path:
    """Keep costs for later policies.

    Raises:
        StorageError: the cache folder cannot be written.
    """
    path = _path(costs.machine, costs.model, costs.precision, costs.threads)
    write_atomic(path, json.dumps(costs.to_json(), indent=1).encode())
    return path


def load(spec: TargetSpec) -> Costs | None:
    """What was measured for this machine, target and number of threads; None where nothing readable is kept."""
    try:
        path = _path(machine_name(spec.device), spec.name, spec.precision, torch.get_num_threads())
        text = path.read_text(encoding="utf-8")
        return Costs.from_json(json.loads(text))
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def machine_name(device: torch.device | str) -> str:
    """The processor and its cores, or the GPU: what a figure of speed belongs to."""
    device = torch.device(device)
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    instructions = _instructions()
    return f"{_cpu_model()}{f' ({instructions})' if instructions else ''}, {os.cpu_count()} cores"


def _cpu_model() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    named = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(named, platform.processor() or platform.machine())


def _instructions() -> str:
    """The widest instructions that matter here: processors of one name differ in them."""
    capabilities = torch.cpu.get_capabilities()
    known = (("amx_int8", "AMX"), ("avx512_vnni", "AVX-512 VNNI"), ("avx512_f", "AVX-512"), ("avx2", "AVX2"))
    return next((label for name, label in known if capabilities.get(name)), "")


def _path(machine: str, model: str, precision: str, threads: int) -> Path:
    loops = "torch" if kernels.find() is None else "compiled"
    key = hashlib.sha256(f"{machine}\n{model}\n{precision}\n{threads}\n{loops}".encode()).hexdigest()[:16]
    return paths.cache_dir() / "costs" / f"{key}.json"


def _interpolate(points: Mapping[int, float], at: int) -> float:
    """Linear between measured points, and beyond the last along the last piece."""
    known = sorted(points)
    if len(known) == 1 or at <= known[0]:
        return points[known[0]]
    upper = min(max(bisect_left(known, at), 1), len(known) - 1)
    low, high = known[upper - 1], known[upper]
    return points[low] + (points[high] - points[low]) * (at - low) / (high - low)
