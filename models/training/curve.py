"""The learning curve: what the log says, as JSON and as a picture."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from assistant.files import atomic_file, write_atomic


def write_curve(rows: Sequence[Mapping[str, Any]], folder: Path) -> None:
    """Write `curve.json`, and `curve.png` where matplotlib is installed.

    Args:
        rows: a training log's evaluations, in order.
        folder: where to.
    """
    write_atomic(folder / "curve.json", json.dumps(list(rows), indent=1).encode())
    try:
        import matplotlib as mpl
    except ImportError:
        return
    mpl.use("agg")
    from matplotlib import pyplot as plt

    tokens = [row["tokens"] / 1e6 for row in rows]
    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.2), layout="constrained")
    for nodes in rows[0]["tokens_per_step"].get("all", {}) if rows else ():
        left.plot(tokens, [row["tokens_per_step"]["all"][nodes] for row in rows], marker=".", label=f"{nodes} drafts")
    left.set(xlabel="million training tokens", ylabel="tokens per step", title="On held-out texts")
    for estimated in range(len(rows[0]["top1_by_estimated"]) if rows else 0):
        shares = [100 * row["top1_by_estimated"][estimated] for row in rows]
        right.plot(tokens, shares, marker=".", label=f"{estimated} of its own")
    right.set(xlabel="million training tokens", ylabel="top-1 in %", title="Agreement by estimated features")
    for axes in (left, right):
        axes.grid(alpha=0.3)
        axes.legend(fontsize=8)
    with atomic_file(folder / "curve.png") as temporary:
        figure.savefig(temporary, dpi=110, format="png")
    plt.close(figure)
