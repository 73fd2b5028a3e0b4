"""What a compilation does without is not imported."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from hilo.later import Later

# Each of these cost every program something before it was loaded where it is used.
UNUSED = ("array", "bisect", "hashlib", "heapq", "hilo.formats.mlir_text.dense", "hilo.formats.mlir_text.special",
          "hilo.ir.host", "hilo.ir.interpret", "hilo.ir.process", "hilo.ir.quantized", "hilo.loop.arith.complexes",
          "hilo.loop.inline", "hilo.loop.sizes", "hilo.ops.numeric_complex", "hilo.ops.rounding", "hilo.ops.rows",
          "hilo.ops.shape", "hilo.passes.arguments", "hilo.passes.element_loops", "hilo.passes.futures",
          "hilo.passes.hoist", "hilo.passes.layout", "hilo.passes.narrow", "hilo.passes.orders", "hilo.plan.dynamic",
          "hilo.plan.loops", "hilo.plan.place", "hilo.plan.report", "hilo.rewrite.bodies", "hilo.rewrite.examples",
          "hilo.runtime.cache", "hilo.runtime.chain", "hilo.stages", "json", "llvmlite", "numpy.ctypeslib",
          "numpy.ma")  # fmt: skip
PROGRAM = """
import os, sys
os.environ["HILO_CACHE"] = "0"
import hilo
f = hilo.compile("func.func @main(%x: tensor<3xf32>) -> tensor<3xf32> {"
                 "  %y = stablehlo.add %x, %x : tensor<3xf32>  return %y : tensor<3xf32> }")
print(*sys.modules)
"""


def test_a_small_program_does_not_load_what_it_has_no_use_for() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    loaded = done.stdout.split()
    assert "hilo.pipeline" in loaded
    assert [name for name in UNUSED if name in loaded] == []


def test_a_module_is_loaded_by_the_first_call_of_a_function(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "rarely_used.py").write_text("def double(x, *, times=1): return x * 2 * times")
    monkeypatch.syspath_prepend(tmp_path)
    double = Later("rarely_used").double
    assert "rarely_used" not in sys.modules
    assert (double(3), double(3, times=2)) == (6, 12)
    assert sys.modules.pop("rarely_used")
