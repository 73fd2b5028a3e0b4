"""The C text of elementwise kernels gives the same bits as LLVM's code, through loop.arith and loop.math."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
from backend_runs import compile_c, compile_llvm
from support import edges

from hilo.backend.target import Target
from hilo.ir import dtypes as d
from hilo.ir.dtypes import DType
from hilo.loop import arith, math
from hilo.loop.builder import PTR, Builder, Func, Node
from hilo.loop.element import Elem

Unary = Callable[[Builder, Elem], Elem]
FUNCTIONS: list[tuple[str, Unary, DType]] = [
    *((f"{f.__name__}_{t}", f, t) for t in (d.f32, d.f64, d.bf16, d.f16)
      for f in (math.exponential, math.log, math.tanh, math.sine, math.cosine, math.erf, math.log_plus_one, math.cbrt)),
    *((f"gelu_{t}", lambda b, x: gelu(b, x), t) for t in (d.f32, d.bf16)),
    *((f"to_{o}_{t}", lambda b, x, o=o: arith.convert(b, x, o), t)
      for t in (d.f32, d.f64, d.f16, d.i8, d.u32, d.i64)
      for o in (d.bf16, d.f16, d.f64, d.i8, d.u16, d.i64) if o is not t),
    *((f"round_{t}", arith.round_nearest_afz, t) for t in (d.f32, d.f64)),
]  # fmt: skip


def gelu(b: Builder, x: Elem) -> Elem:
    """x / 2 * (1 + erf(x / sqrt 2)), rounded at every step."""
    half, one, root = (arith.convert(b, arith.number(b, v, d.f64), x.dtype) for v in (0.5, 1.0, 0.7071067811865476))
    bell = arith.add(b, one, math.erf(b, arith.multiply(b, x, root)))
    return arith.multiply(b, arith.multiply(b, half, x), bell)


def kernel(name: str, f: Unary, t: DType, n: int) -> tuple[Func, DType]:
    """out[i] = f(x[i]) for n elements, one by one; and the type of out."""
    func = Func(name, [("x", PTR), ("out", PTR)])
    b = Builder(func)
    x, out = func.params
    types = []

    def body(i: Node) -> None:
        y = f(b, arith.load_elem(b, x, b.mul(i, t.itemsize), t))
        types.append(y.dtype)
        arith.store_elem(b, out, b.mul(i, y.dtype.itemsize), y)

    b.for_(0, n, 1, body)
    return func, types[0]


def test_c_and_llvm_agree_bit_for_bit(tmp_path: Path) -> None:
    data = {t: edges(t, more=40) for _, _, t in FUNCTIONS}
    made = [(name, t, *kernel(name, f, t, data[t].size)) for name, f, t in FUNCTIONS]
    funcs = [func for _, _, func, _ in made]
    in_c, native = compile_c(funcs, tmp_path), compile_llvm(funcs, Target.host())
    wrong = []
    for name, t, _, o in made:
        x = data[t]
        a, z = (np.full(x.size, 1, o.np) for _ in range(2))
        in_c(name)(x.ctypes.data, a.ctypes.data)
        native(name)(x.ctypes.data, z.ctypes.data)
        ints = np.dtype(f"u{o.itemsize}")
        nan = np.isnan(a.astype(np.float64)) if o.is_float else np.zeros(a.shape, bool)
        nan_too = np.isnan(z.astype(np.float64)) if o.is_float else nan
        if (nan != nan_too).any() or (a.view(ints) != z.view(ints))[~nan].any():
            wrong.append(name)
    assert wrong == []
