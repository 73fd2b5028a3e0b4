"""`python -m benchmarks jax soak`: whether a process that compiles and calls for long keeps its size.

Each platform has a process of its own, which compiles many different programs (JAX's caches are cleared now and then,
as they keep what they have seen) and then calls one many times. `--keep` holds all programs: what does one cost?
"""

# pyright: reportMissingImports=false
from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
from collections.abc import Iterator

import click

MEBIBYTE = 1 << 20
STEPS = 10  # figures of each part
CLEAR = 25  # programs after which JAX forgets


@click.command("soak")
@click.option("--platforms", default="hilo,cpu", show_default=True, help="Comma-separated, in turn.")
@click.option("--compilations", default=1000, show_default=True)
@click.option("--calls", default=1_000_000, show_default=True)
@click.option("--keep", is_flag=True, help="Keep the programs: the memory that one takes.")
@click.option("--most", default=8.0, show_default=True, help="MB that hilo's last half of either part may grow.")
def soak(platforms: str, compilations: int, calls: int, keep: bool, most: float) -> None:
    """Resident memory over many compilations and calls; the exit status says whether hilo's stays level."""
    grown = 0.0
    print(f"| platform | part | MB, step by step | last half |\n|{'---|' * 4}")
    for platform in platforms.split(","):
        env = {**os.environ, "JAX_PLATFORMS": platform, "HILO_CACHE": "0", "JAX_ENABLE_COMPILATION_CACHE": "0"}
        command = [sys.executable, "-m", "benchmarks.jax_soak", str(compilations), str(calls), str(int(keep))]
        done = subprocess.run(command, env=env, stdout=subprocess.PIPE, text=True, check=False)
        if done.returncode:
            raise SystemExit(f"{platform}: exit status {done.returncode}")
        for part, sizes in json.loads(done.stdout.splitlines()[-1]).items():
            growth = sizes[-1] - sizes[len(sizes) // 2]
            steps = " ".join(f"{s:.0f}" for s in sizes)
            print(f"| {platform} | {part} | {steps} | {growth:+.1f} |", flush=True)
            if platform == "hilo":
                grown = max(grown, growth)
    if grown > most and not keep:
        sys.exit(f"hilo's memory grew by {grown:.1f} MB")


def resident() -> float:
    """MB of the process that are in memory."""
    gc.collect()
    with open("/proc/self/statm") as f:
        return int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / MEBIBYTE


def compile_many(count: int, keep: bool) -> Iterator[None]:
    """Programs of a few operations, no two the same; yields after each."""
    import jax
    import jax.numpy as jnp

    x, kept = jnp.ones((8, 16)), []
    for i in range(count):

        @jax.jit
        def f(x: jax.Array, i: int = i) -> jax.Array:
            return jnp.tanh(x @ x.T * (i + 0.5)).sum(axis=i % 2) + jnp.sin(x[i % 8, :8])

        f(x).block_until_ready()
        if keep:
            kept.append(f)
        elif i % CLEAR == CLEAR - 1:
            jax.clear_caches()
        yield


def call_often(count: int) -> Iterator[None]:
    """Calls of one program, waiting for every hundredth; yields after each."""
    import jax
    import jax.numpy as jnp

    f, x = jax.jit(lambda x: x + 1), jnp.ones(4)
    for i in range(count):
        y = f(x)
        if i % 100 == 0:
            y.block_until_ready()
        yield


def main(compilations: int, calls: int, keep: bool) -> None:
    """The process of one platform: prints sizes as JSON."""
    found: dict[str, list[float]] = {}
    for part, count, work in (
        ("compilations", compilations, compile_many(compilations, keep)),
        ("calls", calls, call_often(calls)),
    ):
        sizes = found[part] = []
        every = max(count // STEPS, 1)
        for i, _ in enumerate(work):
            if i % every == every - 1:
                sizes.append(resident())
                print(f"{part} {i + 1}: {sizes[-1]:.1f} MB", file=sys.stderr, flush=True)
    print(json.dumps(found))


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3] == "1")
