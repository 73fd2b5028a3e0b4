"""`python -m benchmarks jax`: hilo's PJRT client beside JAX's own CPU client.

`client`: dispatch, transfers and first calls, both clients in one process, in turns. `examples`: the programs of
examples/jax, each in a process of its own per platform, in turns.
"""

# pyright: reportMissingImports=false
from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from typing import Any

import click
import numpy as np

EXAMPLES = Path(__file__).parent.parent / "examples" / "jax"
PLATFORMS = ("hilo", "cpu")
CALLERS = 8

Task = tuple[Callable[[], object], int, Callable[[], None]]  # work, calls in a row for a figure, what comes before
Make = Callable[[Any], Task]


@click.group("jax")
def jax_group() -> None:
    """JAX on hilo beside JAX on its own CPU client."""


@jax_group.command("client")
@click.option("--rounds", default=41, show_default=True)
def client(rounds: int) -> None:
    """Medians of dispatch, transfers and first calls, in one process."""
    os.environ["JAX_PLATFORMS"] = ",".join(PLATFORMS)
    os.environ["HILO_CACHE"] = "0"  # first calls compile
    import jax

    jax.config.update("jax_enable_compilation_cache", False)
    devices = {p: jax.devices(p)[0] for p in PLATFORMS}
    print(f"| what | hilo | jax's client | ratio |\n|{'---|' * 4}")
    for name, scale, unit, make in WORK:
        tasks = {p: make(d) for p, d in devices.items()}
        times = in_turns(tasks, rounds if unit != "ms" else max(rounds // 2, 5))
        ours, theirs = (median(times[p]) * scale for p in PLATFORMS)
        print(f"| {name} | {ours:.2f} {unit} | {theirs:.2f} {unit} | {ours / theirs:.2f} |", flush=True)


def in_turns(tasks: dict[str, Task], rounds: int) -> dict[str, list[float]]:
    """Seconds of a call of each task, one figure a round; a first round is not counted."""
    times: dict[str, list[float]] = {p: [] for p in tasks}
    for _ in range(rounds + 1):
        for p, (work, count, prepare) in tasks.items():
            prepare()
            begin = time.perf_counter()
            for _ in range(count):
                work()
            times[p].append((time.perf_counter() - begin) / count)
    return {p: t[1:] for p, t in times.items()}


def nothing() -> None:
    """Comes before tasks that need no preparation."""


def call(size: int, count: int) -> Make:
    """A compiled x + 1 on f32[size], call and wait."""

    def make(device: Any) -> Task:
        import jax

        f, x = jax.jit(lambda x: x + 1), jax.device_put(np.ones(size, np.float32), device)
        return lambda: f(x).block_until_ready(), count, nothing

    return make


def put(size: int, count: int) -> Make:
    """From numpy to the device."""

    def make(device: Any) -> Task:
        import jax

        a = np.ones(size, np.float32)
        return lambda: jax.device_put(a, device).block_until_ready(), count, nothing

    return make


def fetch(size: int, count: int) -> Make:
    """From the device to numpy; of a new result each time, since JAX keeps what it has fetched."""

    def make(device: Any) -> Task:
        import jax

        f, x = jax.jit(lambda x: x + 1), jax.device_put(np.ones(size, np.float32), device)
        results: Iterator[Any] = iter(())

        def prepare() -> None:
            nonlocal results
            results = iter([f(x).block_until_ready() for _ in range(count)])

        return lambda: np.asarray(next(results)), count, prepare

    return make


def first(device: Any) -> Task:
    """Trace, compile and run x * c + k: another program each time."""
    import jax

    x = jax.device_put(np.ones(4, np.float32), device)
    numbers = iter(range(1, 1 << 30))

    def work() -> object:
        c = float(next(numbers))
        return jax.jit(lambda x: x * c + (c + 1))(x).block_until_ready()

    return work, 1, nothing


def layers(device: Any) -> Task:
    """The same of a step of training with 30 or so operations."""
    import jax
    import jax.numpy as jnp

    x = jax.device_put(np.ones((16, 32), np.float32), device)
    w = jax.device_put(np.ones((32, 32), np.float32), device)
    numbers = iter(range(1, 1 << 30))

    def work() -> object:
        c = float(next(numbers))

        def loss(w: Any, x: Any) -> Any:
            h = jnp.tanh(x @ w * c)
            return jax.nn.softmax(h @ w).var()

        return jax.jit(lambda w, x: w - 0.1 * jax.grad(loss)(w, x))(w, x).block_until_ready()

    return work, 1, nothing


def threads(device: Any) -> Task:
    """Eight threads that call x + 1 on f32[64], 200 times each; the time of one call."""
    import jax

    f, x = jax.jit(lambda x: x + 1), jax.device_put(np.ones(64, np.float32), device)
    f(x)

    def caller() -> None:
        for _ in range(200):
            f(x).block_until_ready()

    def work() -> None:
        callers = [threading.Thread(target=caller) for _ in range(CALLERS)]
        for c in callers:
            c.start()
        for c in callers:
            c.join()

    return work, 1, nothing


WORK: list[tuple[str, float, str, Make]] = [
    ("x + 1 on f32[4], call and wait", 1e6, "us", call(4, 200)),
    ("x + 1 on f32[1M], call and wait", 1e6, "us", call(1 << 20, 5)),
    ("device_put f32[4]", 1e6, "us", put(4, 100)),
    ("device_put f32[1M]", 1e6, "us", put(1 << 20, 10)),
    ("np.asarray of f32[4]", 1e6, "us", fetch(4, 50)),
    ("np.asarray of f32[1M]", 1e6, "us", fetch(1 << 20, 2)),
    ("first call of x * c + k: trace, compile, run", 1e3, "ms", first),
    ("first call of a training step", 1e3, "ms", layers),
    (f"a call by {CALLERS} threads", 1e6 / (CALLERS * 200), "us", threads),
]


@jax_group.command("examples")
@click.option("--rounds", default=5, show_default=True)
@click.option("--names", default="", help="Comma-separated.  [default: all]")
@click.option("--small", is_flag=True, help="Sizes for a quick test.")
def examples(rounds: int, names: str, small: bool) -> None:
    """Time of a step, and of the first, which compiles, of each program in examples/jax."""
    print(f"| program | hilo, ms | jax's client, ms | ratio | first call, s | jax's, s |\n|{'---|' * 6}")
    wanted = set(filter(None, names.split(",")))
    for path in sorted(EXAMPLES.glob("*.py")):
        if path.stem == "report" or (wanted and path.stem not in wanted):
            continue
        found: dict[str, list[dict[str, float]]] = {p: [] for p in PLATFORMS}
        for _ in range(rounds):
            for p in PLATFORMS:
                found[p].append(run_example(path, p, small))
        steps = [median(f["step_ms"] for f in found[p]) for p in PLATFORMS]
        begins = [median(f["first_call_s"] for f in found[p]) for p in PLATFORMS]
        print(f"| {path.stem} | {steps[0]:.3f} | {steps[1]:.3f} | {steps[0] / steps[1]:.2f} | {begins[0]:.2f} "
              f"| {begins[1]:.2f} |", flush=True)  # fmt: skip


def run_example(path: Path, platform: str, small: bool) -> dict[str, float]:
    """The figures that an example prints."""
    command = [sys.executable, str(path), "--json", *(["--small"] if small else [])]
    env = {**os.environ, "JAX_PLATFORMS": platform, "HILO_CACHE": "0"}
    done = subprocess.run(command, capture_output=True, text=True, env=env, check=False)
    if done.returncode:
        raise SystemExit(f"{path.name} on {platform}:\n{done.stderr[-2000:]}")
    figures = json.loads(done.stdout.splitlines()[-1])
    if figures["platform"] != platform:
        raise SystemExit(f"{path.name} ran on {figures['platform']} rather than on {platform}")
    return figures
