"""`python -m benchmarks compile`: CPU seconds of compilations, each in a process of its own (compile_once.py); least of
several, hilo and XLA in turn."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from benchmarks.modules import cases
from benchmarks.report import summary_of

PEERS = ("hilo", "xla")
_LONG = 1.0  # seconds of CPU beyond which two rounds are enough


@click.command("compile")
@click.option("--names", default="", help="Comma-separated names of modules, or how they begin.  [default: all]")
@click.option("--threads", default=2, show_default=True)
@click.option("--rounds", default=5, show_default=True)
def compile_command(names: str, threads: int, rounds: int) -> None:
    """Compile every module in fresh processes: CPU seconds, first, again, and from the cache; and peak memory."""
    rows = []
    for case in cases(filter(None, names.split(","))):
        figures = compile_figures(case.text, threads, rounds)
        rows.append({"name": case.name, **figures})
        print(case.name, {k: round(v, 4) for k, v in figures.items()}, file=sys.stderr, flush=True)
    print(table(rows))


def compile_figures(text: str, threads: int, rounds: int) -> dict[str, float]:
    """The least of each figure: `hilo_compile`, `hilo_again`, `hilo_peak_mb`, the same of xla; `hilo_kept`: a first
    compilation of a text that is in the cache."""
    best: dict[str, float] = {}

    def note(name: str, value: float) -> None:
        best[name] = min(best.get(name, value), value)

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "program.mlir")
        path.write_text(text)
        for done in range(rounds):
            if done > 1 and best["hilo_compile"] + best["xla_compile"] > _LONG:
                break
            for peer in PEERS:
                first, again, peak = once(peer, path, threads, {"HILO_CACHE": "0"})
                note(f"{peer}_compile", first)
                note(f"{peer}_again", again)
                note(f"{peer}_peak_mb", peak)
        for turn in range(3):
            first, _, _ = once("hilo", path, threads, {"HILO_CACHE": "1", "HILO_CACHE_DIR": f"{folder}/cache"})
            if turn:  # the first filled it
                note("hilo_kept", first)
    return best


def table(rows: Sequence[dict[str, Any]]) -> str:
    """The figures in milliseconds, for docs/benchmarks.md, and the geometric means."""
    columns = [f"{what}{p}" for what in ("", "again: ") for p in (*PEERS, "xla / hilo")]
    head = ["module", *columns, "kept", *(f"{p} MB" for p in PEERS)]
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    for r in rows:
        cells = [r["name"]]
        for what in ("compile", "again"):
            ours, theirs = r[f"hilo_{what}"], r[f"xla_{what}"]
            cells += [f"{ours * 1e3:.1f}", f"{theirs * 1e3:.1f}", f"{theirs / ours:.2f}"]
        cells += [f"{r['hilo_kept'] * 1e3:.1f}", *(f"{r[f'{p}_peak_mb']:.0f}" for p in PEERS)]
        lines.append("| " + " | ".join(cells) + " |")
    for what in ("compile", "again"):
        ratios = [(r["name"], r[f"xla_{what}"] / r[f"hilo_{what}"]) for r in rows]
        lines += ["", f"{what}: {summary_of('xla', ratios)}"]
    return "\n".join(lines)


def once(peer: str, path: Path, threads: int, variables: dict[str, str]) -> tuple[float, float, float]:
    """Seconds of the first compilation and of the second, and megabytes."""
    root = Path(__file__).parent
    env = {**os.environ, **variables}
    env.pop("PYTHONDONTWRITEBYTECODE", None)  # as a user has it: files are compiled to bytecode once
    env["OPENBLAS_NUM_THREADS"] = "1"  # its idle thread spins for 30 ms: numpy's, no compiler's
    done = subprocess.run([sys.executable, str(root / "compile_once.py"), peer, str(path), str(threads)], text=True,
                          capture_output=True, env=env, check=False)  # fmt: skip
    if done.returncode:
        last = done.stderr.strip().splitlines()[-1:] or ["failed"]
        raise click.ClickException(f"{peer}: {last[0][:200]}")
    first, again, peak = map(float, done.stdout.split())
    return first, again, peak
