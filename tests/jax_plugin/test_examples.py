"""The programs of examples/jax, in small sizes: each fails by itself if its result is not what it should be."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

Run = Callable[..., subprocess.CompletedProcess[str]]

EXAMPLES = Path(__file__).parents[2] / "examples" / "jax"
NAMES = sorted(p.stem for p in EXAMPLES.glob("*.py") if p.stem != "report")
NEEDS = {"mlp": ["optax"], "transformer": ["optax", "equinox"]}


def test_there_are_examples() -> None:
    assert len(NAMES) >= 5


@pytest.mark.parametrize("example", NAMES)
def test_example(run: Run, example: str) -> None:
    for needed in NEEDS.get(example, []):
        pytest.importorskip(needed, reason=f"needs {needed}: pip install {needed}")
    path = str(EXAMPLES / f"{example}.py")
    program = f"""
import runpy, sys
sys.argv = [{example!r}, "--small"]
sys.path.insert(0, {str(EXAMPLES)!r})
runpy.run_path({path!r}, run_name="__main__")
"""
    done = run(program, {"JAX_PLATFORMS": "hilo"})
    assert f"example {example}  platform hilo" in done.stdout
