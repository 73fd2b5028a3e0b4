"""Who gets hilo: those who ask for it."""

from __future__ import annotations

import subprocess
from collections.abc import Callable

import pytest

Run = Callable[..., subprocess.CompletedProcess[str]]

ASK = "import jax, sys; x = jax.numpy.ones(2) + 1; "
WHO = "print(jax.default_backend(), x.devices(), 'hilo' in jax.devices()[0].client.platform_version)"


def test_nobody_gets_it_unasked(run: Run) -> None:
    out = run(ASK + WHO + "; print((jax.device_put(x, jax.devices('hilo')[0]) * 2).devices())", {}).stdout
    assert out.splitlines() == ["cpu {CpuDevice(id=0)} False", "{HiloDevice(id=0)}"]


def test_it_is_not_loaded_for_others(run: Run) -> None:
    out = run(ASK + WHO + "; print('hilo.runtime' in sys.modules)", {"JAX_PLATFORMS": "cpu"}).stdout
    assert out.splitlines() == ["cpu {CpuDevice(id=0)} False", "False"]
    asks = "import jax; jax.devices('hilo')"
    assert "Unknown backend" in run(asks, {"JAX_PLATFORMS": "cpu"}, fails=True).stderr


def test_both(run: Run) -> None:
    program = ASK + "y = jax.device_put(x, jax.devices('cpu')[0]); print(x.devices(), y.devices(), (y + 1).devices())"
    out = run(program, {"JAX_PLATFORMS": "hilo,cpu"}).stdout
    assert out.split() == ["{HiloDevice(id=0)}", "{CpuDevice(id=0)}", "{CpuDevice(id=0)}"]


@pytest.mark.parametrize("more", [{}, {"JAX_PLATFORMS": "cpu"}])
def test_in_place_of_cpu(run: Run, more: dict[str, str]) -> None:
    out = run(ASK + WHO, {"HILO_JAX_AS_CPU": "1", **more}).stdout
    assert out.splitlines() == ["cpu {CpuDevice(id=0)} True"]


def test_a_switch_that_is_neither(run: Run) -> None:
    assert "HILO_JAX_AS_CPU=maybe: it is 1 or 0" in run(ASK + WHO, {"HILO_JAX_AS_CPU": "maybe"}).stderr


def test_many_devices_are_one(run: Run) -> None:
    out = run(ASK + "print(jax.device_count())", {"JAX_PLATFORMS": "hilo", "JAX_NUM_CPU_DEVICES": "8"}).stdout
    assert out == "1\n"


def test_processes_that_fork_and_end(run: Run, name: dict[str, str]) -> None:
    program = """
import os, warnings, threading, jax, jax.numpy as jnp
warnings.simplefilter("ignore")
f = jax.jit(lambda a: (a @ a).sum())
x = jnp.ones((600, 600))
f(x).block_until_ready()
child = os.fork()
if child == 0:
    os._exit(0 if float(f(x)) == 600**3 else 1)
_, status = os.waitpid(child, 0)
assert status == 0, status
threading.Thread(target=lambda: [f(x) for _ in range(50)]).start()  # all still in flight when the process ends
f(x)
print("over")
"""
    done = run(program, name)
    assert done.stdout == "over\n"
    assert "Error" not in done.stderr
