"""Programs of JAX, each in a process of its own, on hilo under both names."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import hilo

PROGRAMS = Path(__file__).parent / "programs"
SECONDS = 300
HILO = {"JAX_PLATFORMS": "hilo"}
AS_CPU = {"HILO_JAX_AS_CPU": "1"}
OURS = ("JAX_", "HILO_", "XLA_")  # variables that the tests set themselves

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(params=[HILO, AS_CPU], ids=["hilo", "cpu"])
def name(request: pytest.FixtureRequest) -> dict[str, str]:
    """What a user sets to have hilo under one of its names."""
    return request.param


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Run a program, a file of `programs` or a text, with these variables; it must succeed unless `fails`."""
    pytest.importorskip("jax", reason="needs JAX: pip install '.[jax]'")
    plugins = tmp_path / "jax_plugins"  # where JAX looks for plugins of a checkout, which has no entry points
    plugins.mkdir()
    (plugins / "hilo_of_checkout.py").write_text("from hilo.jax import initialize\n")
    path = os.pathsep.join([str(tmp_path), str(Path(hilo.__file__).parents[1]), str(PROGRAMS)])
    clean = {k: v for k, v in os.environ.items() if not k.startswith(OURS)}

    def run(program: str, environment: dict[str, str], fails: bool = False) -> subprocess.CompletedProcess[str]:
        what = [str(PROGRAMS / program)] if program.endswith(".py") else ["-c", program]
        done = subprocess.run(
            [sys.executable, "-X", "faulthandler", *what],
            env={**clean, "PYTHONPATH": path, "HILO_CACHE_DIR": str(tmp_path / "cache"), **environment},
            capture_output=True, text=True, timeout=SECONDS, check=False,
        )  # fmt: skip
        assert (done.returncode != 0) == fails, f"exit {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done

    return run
