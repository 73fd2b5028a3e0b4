"""Figures as lines, tables, summaries and pictures. Imports nothing but numpy, and matplotlib where it draws."""

# pyright: reportMissingImports=false
from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

OURS = ("hilo", "hilo-bound")
WRONG = 0.01  # a difference of results, of the largest magnitude, with which a time does not count
EQUAL = 0.97  # two values within 3 % are equal

#: How the names of mainstream rows begin: models, products, convolutions, attention.
MAINSTREAM = ("mnist", "mlp", "resnet", "mobilenet", "bert", "gpt2", "transformer", "mat", "bmm", "conv", "dwconv",
              "attention")  # fmt: skip


def ratio(row: dict[str, Any], peer: str) -> float | None:
    """The peer's time divided by hilo's. Peers that hold weights as constants are compared with hilo's that does."""
    ours = "hilo-bound" if peer in ("onnxruntime", "openvino") and "hilo-bound" in row else "hilo"
    if row.get(f"{peer}_difference", 0) > WRONG:
        return None
    return row[peer] / row[ours] if peer in row and ours in row else None


def format_row(row: dict[str, Any], peers: Sequence[str]) -> str:
    cells = [f"{row['name']:28}"]
    for p in peers:
        if p not in row:
            if f"{p}_error" in row:
                cells.append(f"{p}: {row[f'{p}_error'][:70]}")
            continue
        r = None if p in OURS else ratio(row, p)
        difference = f", difference {row[f'{p}_difference']:.1e}" if f"{p}_difference" in row else ""
        once = " (one call)" if row.get(f"{p}_once") else ""
        cells.append(f"{p} {row[p]:.4f} ms{once}{'' if r is None else f' = {r:.2f}x'}{difference}")
    return "  ".join(cells)


def table(rows: Sequence[dict[str, Any]], peers: Sequence[str]) -> str:
    """The figures as a table for docs/benchmarks.md."""
    ours = [p for p in peers if p in OURS]
    others = [p for p in peers if p not in OURS]
    with_limit = any("limit" in r for r in rows)
    head = ["module", *(f"{p} ms" for p in ours), *(["% of limit"] if with_limit else [])]
    head += [x for p in others for x in (f"{p} ms", f"{p} / hilo")]
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    for r in rows:
        cells = [r["name"], *(_number(r.get(p)) for p in ours)]
        if with_limit:
            cells.append(_percent(r))
        for p in others:
            q = ratio(r, p)
            cells += [_number(r.get(p)) + (" (one call)" if f"{p}_once" in r else ""), "" if q is None else f"{q:.2f}"]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _percent(row: dict[str, Any]) -> str:
    best = min((row[p] for p in OURS if p in row), default=None)
    return f"{100 * row['limit'] / best:.0f}" if best and row.get("limit") else ""


def summary(rows: Sequence[dict[str, Any]], peers: Sequence[str]) -> str:
    """For each peer, and the fastest of each row: geometric mean of the ratios, and the rows where hilo is slower; by
    medians, and by minima."""
    minima = [{**r, **{p.removesuffix("_best"): x for p, x in r.items() if p.endswith("_best")}} for r in rows]
    return f"By medians:\n{_summary(rows, peers)}\n\nBy minima:\n{_summary(minima, peers)}"


def _summary(rows: Sequence[dict[str, Any]], peers: Sequence[str]) -> str:
    others = [p for p in peers if p not in OURS]
    lines = [summary_of(p, [(r["name"], ratio(r, p)) for r in rows]) for p in others]
    if len(others) > 1:
        least = [(r["name"], min((q for p in others if (q := ratio(r, p)) is not None), default=None)) for r in rows]
        lines.append(summary_of("the fastest of each row", least))
        lines.append(summary_of("of mainstream rows", [(n, q) for n, q in least if n.startswith(MAINSTREAM)]))
    return "\n".join(lines)


def summary_of(what: str, ratios: Sequence[tuple[str, float | None]]) -> str:
    """The geometric mean of the ratios, and the rows where hilo is slower."""
    found = [(n, q) for n, q in ratios if q is not None]
    if not found:
        return f"{what}: nothing to compare"
    mean = math.exp(sum(math.log(q) for _, q in found) / len(found))
    slower = [f"{n} {q:.2f}" for n, q in sorted(found, key=lambda x: x[1]) if q < EQUAL]
    behind = f"slower in {len(slower)}{': ' if slower else ''}{', '.join(slower)}"
    return f"{what}: {mean:.2f} in the geometric mean of {len(found)} rows; {behind}"


def _number(x: float | None) -> str:
    return "" if x is None else f"{x:.4f}" if x < 1 else f"{x:.3g}"


def plot(figures: dict[str, Any], path: str) -> None:
    """Horizontal marks per row and peer on a logarithmic axis; right of 1, hilo is faster."""
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    rows = figures["rows"]
    others = [p for p in figures["peers"] if p not in OURS]
    fig, ax = plt.subplots(figsize=(8, 0.22 * len(rows) + 1.2))
    for k, p in enumerate(others):
        points = [(q, i) for i, r in enumerate(rows) if (q := ratio(r, p)) is not None]
        ax.scatter(*zip(*points, strict=True), s=22, label=p, marker="osD^vPX"[k % 7], alpha=0.8)
    ax.axvline(1, color="black", linewidth=0.8)
    ax.set_xscale("log")
    ax.set_yticks(range(len(rows)), [r["name"] for r in rows], fontsize=7)
    ax.set_ylim(len(rows) - 0.5, -0.5)
    ax.set_xlabel("time of the peer / time of hilo")
    ax.grid(axis="both", linewidth=0.3)
    ax.legend(fontsize=7, loc="lower right")
    fig.tight_layout()
    fig.savefig(path)
