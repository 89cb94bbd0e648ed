"""The plots of the report, drawn from records alone. Needs matplotlib (the extra `bench`)."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from assistant.bench.stats import expected_chain_tokens
from assistant.bench.tables import Row, typical
from assistant.errors import UsageError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_SIZE = (7.2, 4.0)


def plot_speedups(rows: Sequence[Row], path: Path) -> None:
    """A bar a method: its speed-up over plain decoding, with the quartiles of its tasks."""
    shown = [row for row in rows if row.get("speedup")]
    figure, axes = _figure(height=0.9 + 0.28 * len(shown))
    lies = _quartiles(shown, "speedup")
    middle = [typical(row, "speedup") or 0.0 for row in shown]
    below = [value - lie["q1"] for value, lie in zip(middle, lies, strict=True)]
    above = [lie["q3"] - value for value, lie in zip(middle, lies, strict=True)]
    places = range(len(shown))
    axes.barh(places, middle, xerr=(below, above), color="#4878a8", ecolor="#333333", capsize=2)
    axes.set_yticks(places, [str(row["method"]) for row in shown], fontsize=8)
    axes.invert_yaxis()
    axes.axvline(1.0, color="#999999", linewidth=0.8)
    axes.set_xlabel("speed-up over plain decoding (whiskers: quartiles of the tasks)")
    _write(figure, path)


def plot_by_nodes(rows: Sequence[Row], key: str, label: str, path: Path) -> None:
    """A line a method over the nodes of its trees, with the quartiles of its tasks."""
    figure, axes = _figure()
    for method, points in _families(rows).items():
        nodes = [row["nodes"] for row in points]
        values = [typical(row, key) or 0.0 for row in points]
        lies = _quartiles(points, key)
        axes.plot(nodes, values, marker="o", markersize=3.5, linewidth=1.2, label=method)
        axes.fill_between(nodes, [lie["q1"] for lie in lies], [lie["q3"] for lie in lies], alpha=0.12)
    axes.set_xlabel("nodes verified in a step, at most")
    axes.set_ylabel(label)
    axes.set_ylim(bottom=0)
    axes.legend(fontsize=8, frameon=False)
    _write(figure, path)


def plot_by_data(rows: Sequence[Row], path: Path) -> None:
    """A line a way of training and tree size: tokens a step over training tokens."""
    figure, axes = _figure()
    for unroll in sorted({row["unroll"] for row in rows}):
        points = sorted((row for row in rows if row["unroll"] == unroll), key=lambda row: int(row["training_tokens"]))
        way = "one step" if unroll == 1 else f"{unroll} steps"
        for nodes, style in (("8", "o--"), ("60", "o-")):
            known = [row for row in points if nodes in row["tokens_per_step"]]
            values = [row["tokens_per_step"][nodes] for row in known]
            tokens = [row["training_tokens"] / 1000 for row in known]
            axes.plot(tokens, values, style, markersize=3.5, linewidth=1.2, label=f"{way}, {nodes} nodes")
    axes.set_xscale("log")
    axes.set_xlabel("thousand training tokens")
    axes.set_ylabel("tokens a step")
    axes.legend(fontsize=8, frameon=False)
    _write(figure, path)


def plot_by_temperature(rows: Sequence[Row], path: Path) -> None:
    """The speed-up over plain decoding by temperature, with the quartiles of its tasks."""
    figure, axes = _figure()
    lies = _quartiles(rows, "speedup")
    heat = [row["temperature"] for row in rows]
    axes.plot(heat, [row["speedup"] for row in rows], marker="o", markersize=3.5, linewidth=1.2)
    axes.fill_between(heat, [lie["q1"] for lie in lies], [lie["q3"] for lie in lies], alpha=0.15)
    axes.axhline(1.0, color="#999999", linewidth=0.8)
    axes.set_xlabel("temperature")
    axes.set_ylabel("speed-up over plain decoding")
    axes.set_ylim(bottom=0)
    _write(figure, path)


def plot_by_length(rows: Sequence[Row], path: Path) -> None:
    """Milliseconds a token of plain and of adaptive decoding by the tokens before."""
    figure, axes = _figure()
    before = [row["length"] for row in rows]
    axes.plot(before, [row["plain_ms"] for row in rows], marker="o", markersize=3.5, label="plain")
    ours = [row["ms_per_step"] / row["tokens_per_step"] for row in rows]
    axes.plot(before, ours, marker="o", markersize=3.5, label="adaptive")
    axes.set_xlabel("tokens before")
    axes.set_ylabel("ms a token")
    axes.set_ylim(bottom=0)
    axes.legend(fontsize=8, frameon=False)
    _write(figure, path)


def plot_costs(costs: Sequence[Mapping[str, Any]], path: Path) -> None:
    """Milliseconds of one forward against its rows, a line a precision, with quartiles."""
    figure, axes = _figure()
    for cost in costs:
        sizes = sorted(int(n) for n in cost["verify_ms"])
        lies = [cost["spread_ms"][f"verify {n}"] for n in sizes]
        values = [cost["verify_ms"][str(n)] for n in sizes]
        axes.plot(sizes, values, marker="o", markersize=3.5, label=cost["precision"])
        axes.fill_between(sizes, [lie[0] for lie in lies], [lie[1] for lie in lies], alpha=0.15)
    axes.set_xlabel("rows in one forward of the target")
    axes.set_ylabel("ms")
    axes.set_ylim(bottom=0)
    axes.legend(fontsize=8, frameon=False)
    _write(figure, path)


def plot_chains(rows: Sequence[Row], path: Path) -> None:
    """Tokens a step of chains: measured, and expected from acceptance."""
    chains = chain_rows(rows)
    figure, axes = _figure()
    lengths = [row["drafts"] for row in chains]
    for key, style, color, label in (
        ("tokens_per_step", "o-", "#222222", "measured"),
        ("expected", "s--", "#4878a8", "expected, with each row's own a"),
        ("expected_first", "^:", "#c06030", "expected, with a of the first draft"),
    ):
        axes.plot(lengths, [row[key] for row in chains], style, color=color, label=label)
    axes.set_xlabel("K, drafts in the chain")
    axes.set_ylabel("tokens a step")
    axes.legend(fontsize=8, frameon=False)
    _write(figure, path)


def plot_memory(samples: Sequence[Mapping[str, Any]], path: Path) -> None:
    """What a process holds over its requests, and what of it is keys and values."""
    figure, axes = _figure()
    requests = [sample["requests"] for sample in samples]
    axes.plot(requests, [sample["resident_mb"] for sample in samples], color="#222222", label="resident memory")
    axes.plot(requests, [sample["cache_mb"] for sample in samples], color="#4878a8", label="keys and values")
    axes.set_xlabel("requests")
    axes.set_ylabel("MB")
    axes.set_ylim(bottom=0)
    axes.legend(fontsize=8, frameon=False)
    _write(figure, path)


def chain_rows(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """Chains by length, each with (1 - a^(K+1)) / (1 - a) for its own acceptance and for the first draft's."""
    chains = sorted(
        (row for row in rows if row.get("width") == 1 and row.get("draft_acceptance") is not None),
        key=lambda row: int(row["nodes"]),
    )
    return [
        {
            **row,
            "drafts": row["nodes"],
            "expected": expected_chain_tokens(row["draft_acceptance"], row["nodes"]),
            "expected_first": expected_chain_tokens(row["acceptance_by_depth"][0], row["nodes"]),
        }
        for row in chains
    ]


def has_lines(rows: Sequence[Row]) -> bool:
    """Whether `plot_by_nodes` has anything to draw: a method with trees of several sizes."""
    return bool(_families(rows))


def _families(rows: Sequence[Row]) -> dict[str, list[Row]]:
    """Rows of one method by growing trees; methods with one tree alone draw no line."""
    families: dict[str, list[Row]] = {}
    for row in rows:
        if row.get("nodes") and row.get("tokens_per_step"):
            families.setdefault(str(row["family"]), []).append(row)
    return {
        name: sorted(points, key=lambda row: int(row["nodes"])) for name, points in families.items() if len(points) > 1
    }


def _figure(height: float = _SIZE[1]) -> "tuple[Figure, Axes]":
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise UsageError("the report's plots need matplotlib: install eagle-assist[bench].") from None
    figure = Figure(figsize=(_SIZE[0], height), layout="constrained")
    axes = figure.subplots()
    axes.spines[["top", "right"]].set_visible(False)
    return figure, axes


def _write(figure: "Figure", path: Path) -> None:
    from matplotlib import rc_context

    # The same records give the same file: no date, and names that do not come from the clock.
    with rc_context({"svg.hashsalt": "eagle-assist"}):
        figure.savefig(path, format="svg", metadata={"Date": None})


def _quartiles(rows: Sequence[Row], key: str) -> list[Mapping[str, float]]:
    """How a figure lies over the tasks, row by row; the figure itself where that is not known."""
    return [row.get(f"{key}_by_task") or {"q1": row[key], "q3": row[key]} for row in rows]
