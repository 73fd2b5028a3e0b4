"""The C text of a program, compiled without contraction of floats, gives the native code's bits."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from support import edges, same_bits

import hilo
from hilo.ir.dtypes import DType, bf16, f32, f64, i32

CC = shutil.which("gcc")
pytestmark = pytest.mark.skipif(CC is None, reason="no gcc")

PROGRAMS = {
    "arithmetic": """func.func @main(%x: tensor<NxT>, %y: tensor<NxT>) -> tensor<NxT> {
      %a = stablehlo.multiply %x, %y : tensor<NxT>
      %b = stablehlo.add %a, %x : tensor<NxT>
      %c = stablehlo.divide %b, %y : tensor<NxT>
      %d = stablehlo.maximum %c, %a : tensor<NxT>
      return %d : tensor<NxT>
    }""",
    "functions": """func.func @main(%x: tensor<NxT>, %y: tensor<NxT>) -> (tensor<NxT>, tensor<NxT>) {
      %a = stablehlo.exponential %x : tensor<NxT>
      %b = stablehlo.logistic %y : tensor<NxT>
      %c = stablehlo.power %a, %b : tensor<NxT>
      %d = stablehlo.tanh %c : tensor<NxT>
      %e = stablehlo.sine %x : tensor<NxT>
      return %d, %e : tensor<NxT>, tensor<NxT>
    }""",
    "integers": """func.func @main(%x: tensor<Nxi32>, %y: tensor<Nxi32>) -> (tensor<Nxi32>, tensor<Nxf32>) {
      %a = stablehlo.multiply %x, %y : tensor<Nxi32>
      %b = stablehlo.divide %a, %x : tensor<Nxi32>
      %c = stablehlo.shift_left %b, %y : tensor<Nxi32>
      %d = stablehlo.convert %c : (tensor<Nxi32>) -> tensor<Nxf32>
      return %c, %d : tensor<Nxi32>, tensor<Nxf32>
    }""",
    "moved": """func.func @main(%x: tensor<40x30xf32>, %y: tensor<30xf32>) -> (tensor<30x40xf32>, tensor<30xf32>) {
      %z = stablehlo.constant dense<0.0> : tensor<f32>
      %b = stablehlo.broadcast_in_dim %y, dims = [1] : (tensor<30xf32>) -> tensor<40x30xf32>
      %a = stablehlo.subtract %x, %b : tensor<40x30xf32>
      %t = stablehlo.transpose %a, dims = [1, 0] : (tensor<40x30xf32>) -> tensor<30x40xf32>
      %m = stablehlo.reduce(%a init: %z) applies stablehlo.maximum across dimensions = [0]
          : (tensor<40x30xf32>, tensor<f32>) -> tensor<30xf32>
      return %t, %m : tensor<30x40xf32>, tensor<30xf32>
    }""",
}


class Context(ctypes.Structure):
    """`struct hilo_ctx` of docs/architecture.md."""

    _fields_ = (("parallel_for", ctypes.c_void_p), ("constants", ctypes.c_void_p), ("host_call", ctypes.c_void_p),
                ("threads", ctypes.c_int64))  # fmt: skip


def run_c(text: str, arrays: Sequence[np.ndarray], results: Sequence[np.ndarray], place: Path) -> None:
    """Compile C text and call its entry; `results` are filled."""
    (place / "program.c").write_text(text)
    flags = ["-std=gnu11", "-O2", "-ffp-contract=off", "-shared", "-fPIC"]
    command = [str(CC), *flags, "-o", str(place / "program.so"), str(place / "program.c"), "-lm"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    entry = ctypes.CDLL(str(place / "program.so")).entry
    unit = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)
    loop = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 3, ctypes.c_int64, ctypes.c_int64)

    @loop
    def parallel_for(_: int, fn: int, bufs: int, units: int, chunk: int) -> None:
        for begin in range(0, units, chunk):
            unit(fn)(bufs, begin, min(begin + chunk, units))

    context = Context(ctypes.cast(parallel_for, ctypes.c_void_p), None, None, 1)
    pointers = [(ctypes.c_void_p * len(a))(*(x.ctypes.data for x in a)) for a in (arrays, results)]
    arena = np.zeros(1 << 20, np.uint8)
    entry.restype = ctypes.c_int32
    assert entry(ctypes.byref(context), *pointers, ctypes.c_void_p((arena.ctypes.data + 63) & ~63)) == 0


@pytest.mark.parametrize(
    ("name", "t"),
    [*((name, t) for name in ("arithmetic", "functions") for t in (f32, f64, bf16)), ("integers", i32), ("moved", f32)],
)
def test_c_gives_the_same_bits(name: str, t: DType, tmp_path: Path) -> None:
    text = PROGRAMS[name].replace("T", t.name)
    x, y = edges(t, 1), edges(t, 2)
    if name == "moved":
        x, y = np.resize(x, (40, 30)), np.resize(y, 30)
    else:
        x, y = np.resize(x, 4001), np.resize(np.roll(y, 3), 4001)
        text = text.replace("N", str(x.size))
    f = hilo.compile(text, threads=1)
    want = f(x, y)
    got = [np.zeros(w.shape, w.dtype) for w in want]
    run_c(f.text("c"), (x, y), got, tmp_path)
    for g, w in zip(got, want, strict=True):
        same_bits(g, w)
