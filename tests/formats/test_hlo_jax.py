"""HLO that JAX and XLA's CPU compiler print: it computes what the StableHLO of the same program does.

The programs are in jax_programs.py. XLA's own parser judges what is printed; it runs in a child process, since it
aborts on some texts.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hilo
from hilo.errors import Unsupported
from hilo.formats import parse
from hilo.formats.hlo_text import print_module
from hilo.ir.verify import verify

pytest.importorskip("jax", reason="jax, whose programs are read, is not installed")
pytestmark = pytest.mark.filterwarnings("ignore")  # of jax, not of hilo

import jax_programs  # noqa: E402

# XLA's CPU compiler makes calls of its own libraries of these.
LIBRARIES = {"linear_algebra", "triangular", "top_k"}


def close(a: np.ndarray[Any, Any], b: np.ndarray[Any, Any]) -> bool:
    """Equal integers, nearly equal floats: XLA's passes rewrite what they compute."""
    if a.dtype != b.dtype or a.shape != b.shape:
        return False
    if a.dtype.kind in "biu":
        return np.array_equal(a, b)
    wide = np.complex128 if a.dtype.kind == "c" else np.float64
    rtol = 2e-2 if a.dtype.itemsize == 2 else 2e-5
    return np.allclose(a.astype(wide), b.astype(wide), rtol=rtol, atol=1e-5, equal_nan=True)


def texts(p: jax_programs.Program) -> dict[str, str]:
    lowered = p.lowered()
    return {
        "stablehlo": jax_programs.stablehlo(lowered),
        "before": jax_programs.before(lowered),
        "after": jax_programs.after(lowered),
    }


_JUDGE = """
import sys
from jaxlib import _hlo
for line in sys.stdin:
    try:
        _hlo.hlo_module_from_text(open(line.strip()).read())
        print("ok", flush=True)
    except Exception as e:
        print(" ".join(str(e).split()), flush=True)
"""


@pytest.fixture(scope="module")
def xla() -> Iterator[Callable[[Path], str]]:
    """What XLA's parser says to a file: "ok", an error, or nothing if it aborts."""
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", _JUDGE], stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL,
                          text=True) as child:  # fmt: skip

        def judge(file: Path) -> str:
            assert child.stdin is not None
            assert child.stdout is not None
            print(file, file=child.stdin, flush=True)
            return child.stdout.readline().strip()

        yield judge


@pytest.mark.parametrize("program", jax_programs.PROGRAMS, ids=lambda p: p.name)
def test_computes_the_same(program: jax_programs.Program, tmp_path: Path, xla: Callable[[Path], str]) -> None:
    arguments = program.arguments()
    written = texts(program)
    modules = {kind: parse(text, f"{program.name}.{kind}") for kind, text in written.items()}
    expected: list[Any] | None = None
    for kind, m in modules.items():
        verify(m, types=True)
        text = print_module(m)
        again = parse(text)
        assert print_module(again) == text
        file = tmp_path / f"{kind}.hlo"
        file.write_text(text)
        assert xla(file) == "ok"
        try:
            results = hilo.interpret(m, *arguments)
        except Unsupported:
            assert program.name in LIBRARIES
            continue
        if expected is None:
            expected = results
        assert len(results) == len(expected)
        for k, (a, b) in enumerate(zip(results, expected, strict=True)):
            assert close(a, b), (kind, k, a, b)
        for a, b in zip(hilo.interpret(again, *arguments), results, strict=True):
            assert close(a, b), kind  # a special function is written as what it is made of


@pytest.mark.parametrize("name", ["dense", "scanned", "conditional", "attention", "training_step"])
def test_compiles_to_the_same(name: str) -> None:
    program = next(p for p in jax_programs.PROGRAMS if p.name == name)
    arguments = program.arguments()
    made = {kind: hilo.compile(text)(*arguments) for kind, text in texts(program).items()}
    for kind in ("before", "after"):
        for a, b in zip(made[kind], made["stablehlo"], strict=True):
            assert close(np.asarray(a), np.asarray(b)), kind
