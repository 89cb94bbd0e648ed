"""`scripts/train-gpu` in a dry run on the CPU."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "scripts" / "train-gpu"


@pytest.mark.skipif(os.name != "posix", reason="a bash script")
def test_a_dry_run_leaves_a_head_a_curve_and_what_a_later_run_goes_on_from(tiny_model: Path, tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    for number in range(8):
        lines = "".join(f"value_{number}_{i} = compute({number * 100 + i}, 'name {i}')\n" for i in range(30))
        (data / f"module_{number}.py").write_text(lines)
    small = ("--samples", "22", "--write", "12", "--draft-vocab", "64", "--mlp", "16", "--batch-tokens", "600")
    where = ("--model", str(tiny_model), "--data", str(data))
    environment = {
        **os.environ,
        "TRAIN_DEVICE": "cpu",
        "TRAIN_MINUTES": "0.1",
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
    }
    command = ["bash", str(SCRIPT), str(tmp_path / "out"), *where, *small]
    subprocess.run(command, env=environment, check=True, capture_output=True, timeout=200)
    out = tmp_path / "out"
    assert {path.name for path in (out / "head").iterdir()} >= {"config.json", "model.safetensors", "curve.json"}
    assert (out / "training" / "checkpoint.pt").is_file()
    assert list((out / "features" / "train").glob("*.safetensors"))
