"""Which device and which precision a model runs in."""

import torch

from assistant.errors import UsageError
from models.quant import require_int8

PRECISIONS = ("float32", "bfloat16", "float16", "int8")


def choose_device(wanted: str) -> torch.device:
    """`auto` is the first CUDA device where there is one, else the CPU; `mps` only when asked for.

    Raises:
        UsageError: the device is unknown or not on this machine.
    """
    if wanted == "auto":
        return torch.device("cuda:0" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(wanted)
    except RuntimeError as error:
        raise UsageError(f"unknown device {wanted!r}: choose auto, cpu, cuda, cuda:N or mps.") from error
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        raise UsageError(
            f"{wanted} is not on this machine, which has {torch.cuda.device_count()} CUDA devices: choose cpu or auto."
        )
    if device.type == "mps" and not torch.backends.mps.is_available():
        raise UsageError("mps is not on this machine: choose cpu or auto.")
    if device.type not in {"cpu", "cuda", "mps"}:
        raise UsageError(f"unknown device {wanted!r}: choose auto, cpu, cuda, cuda:N or mps.")
    return torch.device("cuda:0") if wanted == "cuda" else device


def choose_precision(wanted: str, device: torch.device, *, lean: bool = True) -> str:
    """`auto` is int8 on x86 CPUs, float32 on others, bfloat16 on CUDA, float16 on mps; only the lean forward has int8.

    Raises:
        UsageError: the precision is unknown, or int8 was asked for where it cannot run.
    """
    if wanted == "auto":
        if device.type == "cpu":
            return "int8" if lean and "fbgemm" in torch.backends.quantized.supported_engines else "float32"
        return "bfloat16" if device.type == "cuda" else "float16"
    if wanted not in PRECISIONS:
        raise UsageError(f"unknown precision {wanted!r}: choose auto or one of {', '.join(PRECISIONS)}.")
    if wanted == "int8" and not lean:
        raise UsageError("this model runs through transformers, which has no int8 here: choose float32 or bfloat16.")
    if wanted == "int8":
        require_int8(device)
    return wanted
