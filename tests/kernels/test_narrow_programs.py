"""Whole programs on types of at most a byte: native code gives the interpreter's bits, with arguments and constants."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import hilo
from hilo.ir import dtypes
from hilo.ir.dtypes import DType
from hilo.testing import compare

NARROW = [t for t in dtypes.ALL if t.bits < 16 and (t.is_narrow or t.is_float)]
TARGETS = ("host", "x86-sse2")
Arr = np.ndarray[Any, Any]


class Text:
    """A program put together op by op: `add` takes an op's text after `%n = ` and its result types."""

    def __init__(self) -> None:
        self.params: list[str] = []
        self.lines: list[str] = []
        self.results: list[tuple[str, str]] = []

    def arg(self, t: str) -> str:
        self.params.append(t)
        return f"%a{len(self.params) - 1}"

    def add(self, op: str, t: str, *, result: bool = True) -> str:
        name = f"%v{len(self.lines)}"
        self.lines.append(f"{name} = {op}")
        if result:
            self.results.append((name, t))
        return name

    def module(self) -> hilo.Module:
        params = ", ".join(f"%a{i}: {t}" for i, t in enumerate(self.params))
        names, types = (", ".join(x) for x in zip(*self.results, strict=True))
        body = "\n".join(self.lines)
        return hilo.parse(f"func.func @main({params}) -> ({types}) {{\n{body}\nreturn {names} : {types}\n}}")


def region(op: str, e: str) -> str:
    return (f"({{\n^bb0(%x: tensor<{e}>, %y: tensor<{e}>):\n%s = {op} %x, %y : tensor<{e}>\n"
            f"stablehlo.return %s : tensor<{e}>\n}})")  # fmt: skip


def moving(t: DType) -> hilo.Module:
    """What moves, cuts, joins, reduces and scatters elements."""
    e, p = t.mlir, Text()
    m, n = f"tensor<5x37x{e}>", f"tensor<5x3x{e}>"
    a, b, index = p.arg(m), p.arg(n), p.arg("tensor<6x1xi32>")
    flag, start = p.arg("tensor<i1>"), p.arg("tensor<i32>")
    c = p.add(f"stablehlo.constant dense<{'0.5' if t.is_float else '1'}> : tensor<{e}>", f"tensor<{e}>", result=False)
    z = p.add("stablehlo.constant dense<0> : tensor<i32>", "", result=False)
    p.add(f"stablehlo.transpose {a}, dims = [1, 0] : ({m}) -> tensor<37x5x{e}>", f"tensor<37x5x{e}>")
    p.add(f"stablehlo.concatenate {a}, {b}, dim = 1 : ({m}, {n}) -> tensor<5x40x{e}>", f"tensor<5x40x{e}>")
    p.add(f"stablehlo.pad {b}, {c}, low = [1, -1], high = [2, 0], interior = [0, 1] : ({n}, tensor<{e}>) -> "
          f"tensor<8x4x{e}>", f"tensor<8x4x{e}>")  # fmt: skip
    r = p.add(f"stablehlo.reverse {a}, dims = [1] : {m}", m)
    p.add(f"stablehlo.maximum {r}, {a} : {m}", m)
    p.add(f"stablehlo.slice {a} [1:5:2, 0:37:2] : ({m}) -> tensor<2x19x{e}>", f"tensor<2x19x{e}>")
    p.add(f"stablehlo.dynamic_slice {a}, {start}, {z}, sizes = [2, 3] : ({m}, tensor<i32>, tensor<i32>) -> "
          f"tensor<2x3x{e}>", f"tensor<2x3x{e}>")  # fmt: skip
    p.add(f"stablehlo.dynamic_update_slice {a}, {b}, {z}, {start} : ({m}, {n}, tensor<i32>, tensor<i32>) -> {m}", m)
    p.add(f"stablehlo.select {flag}, {a}, {r} : tensor<i1>, {m}", m)
    p.add(f'"stablehlo.gather"({a}, {index}) <{{dimension_numbers = #stablehlo.gather<offset_dims = [1], '
          f"collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, "
          f"slice_sizes = array<i64: 1, 37>}}> : ({m}, tensor<6x1xi32>) -> tensor<6x37x{e}>",
          f"tensor<6x37x{e}>")  # fmt: skip
    u = p.arg(f"tensor<6x37x{e}>")
    for op in ("add", "maximum"):
        for dims, out in (("1", "5x"), ("0", "37x"), ("0, 1", "")):
            p.add(f'"stablehlo.reduce"({a}, {c}) <{{dimensions = array<i64: {dims}>}}> '
                  f"{region('stablehlo.' + op, e)} : ({m}, tensor<{e}>) -> tensor<{out}{e}>",
                  f"tensor<{out}{e}>")  # fmt: skip
        p.add(f'"stablehlo.scatter"({a}, {index}, {u}) <{{scatter_dimension_numbers = #stablehlo.scatter<'
              f"update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], "
              f"index_vector_dim = 1>}}> {region('stablehlo.' + op, e)} : "
              f"({m}, tensor<6x1xi32>, tensor<6x37x{e}>) -> {m}", m)  # fmt: skip
        p.add(f'"stablehlo.reduce_window"({a}, {c}) <{{window_dimensions = array<i64: 1, 3>, '
              f"padding = dense<[[0, 0], [1, 1]]> : tensor<2x2xi64>}}> {region('stablehlo.' + op, e)} : "
              f"({m}, tensor<{e}>) -> {m}", m)  # fmt: skip
    order = "TOTALORDER" if t.is_float else "SIGNED" if t.kind == "i" else "UNSIGNED"
    p.add(f'"stablehlo.sort"({a}) <{{dimension = 1 : i64, is_stable = true}}> ({{\n'
          f"^bb0(%x: tensor<{e}>, %y: tensor<{e}>):\n"
          f"%s = stablehlo.compare LT, %x, %y, {order} : (tensor<{e}>, tensor<{e}>) -> tensor<i1>\n"
          f"stablehlo.return %s : tensor<i1>\n}}) : ({m}) -> {m}", m)  # fmt: skip
    p.add(f"stablehlo.iota dim = 1 : {n}", n)
    p.add(f"stablehlo.bitcast_convert {a} : ({m}) -> tensor<5x37x{t.bits}xi1>", f"tensor<5x37x{t.bits}xi1>")
    for wide in ("ui8", "ui16", "f32", "ui64"):
        bits = int("".join(filter(str.isdigit, wide)))
        k = bits // t.bits
        if bits % t.bits or k == 1:
            continue
        x = p.arg(f"tensor<5x{k}x{e}>")
        w = p.add(f"stablehlo.bitcast_convert {x} : (tensor<5x{k}x{e}>) -> tensor<5x{wide}>", f"tensor<5x{wide}>")
        p.add(f"stablehlo.bitcast_convert {w} : (tensor<5x{wide}>) -> tensor<5x{k}x{e}>", f"tensor<5x{k}x{e}>")
    return p.module()


def products(t: DType) -> hilo.Module:
    e, p = t.mlir, Text()
    a, b = p.arg(f"tensor<9x33x{e}>"), p.arg(f"tensor<33x5x{e}>")
    x, y = p.arg(f"tensor<3x9x8x{e}>"), p.arg(f"tensor<3x17x8x{e}>")
    wide = ("f32", "bf16") if t.is_float else ("i32", "i8") if t.kind == "i" else ("ui32", "ui8")
    for out in (e, *wide):
        p.add(f"stablehlo.dot_general {a}, {b}, contracting_dims = [1] x [0] : (tensor<9x33x{e}>, tensor<33x5x{e}>) -> "
              f"tensor<9x5x{out}>", f"tensor<9x5x{out}>")  # fmt: skip
        p.add(f"stablehlo.dot_general {x}, {y}, batching_dims = [0] x [0], contracting_dims = [2] x [2] : "
              f"(tensor<3x9x8x{e}>, tensor<3x17x8x{e}>) -> tensor<3x9x17x{out}>", f"tensor<3x9x17x{out}>")  # fmt: skip
    return p.module()


def values(m: hilo.Module, seed: int) -> list[Arr]:
    rng = np.random.default_rng(seed)
    out = []
    for t in (p.tensor for p in m["main"].params):
        if t.dtype.bits <= 8 and t.dtype.kind != "b":
            out.append(rng.integers(0, 1 << t.dtype.bits, t.shape, np.uint8).view(t.dtype.np))
        else:
            out.append(np.asarray(rng.integers(0, 2 if t.dtype.kind == "b" else 5, t.shape)).astype(t.dtype.np))
    return out


@pytest.mark.parametrize("t", NARROW, ids=str)
def test_programs_that_move_elements(t: DType) -> None:
    m = moving(t)
    arrays = values(m, 1)
    want = hilo.interpret(m, *arrays)
    for target in TARGETS:
        got = hilo.compile(m, target=target)(*arrays)
        for k, (g, w) in enumerate(zip(got, want, strict=True)):
            assert g.dtype == w.dtype
            ok = compare.identical(g, w)
            assert ok.all(), f"result {k} on {target}: {compare.difference(g, w, ok)}"
    bound = hilo.compile(m, constants=dict(enumerate(arrays)))()
    assert all(compare.identical(g, w).all() for g, w in zip(bound, want, strict=True))


@pytest.mark.parametrize("t", NARROW, ids=str)
def test_products(t: DType) -> None:
    """Integers exactly; floats are summed in f32, in any order: they differ by roundings of that, then their own."""
    m = products(t)
    arrays = values(m, 2)
    want = hilo.interpret(m, *arrays)
    for target in TARGETS:
        for k, (g, w) in enumerate(zip(hilo.compile(m, target=target)(*arrays), want, strict=True)):
            if t.is_int:
                assert (g == w).all(), k
                continue
            a, b = arrays[:2] if k % 2 == 0 else arrays[2:]
            sizes = [np.nan_to_num(np.abs(x.astype(np.float64)), posinf=0.0) for x in (a, b)]
            terms = sizes[0] @ (sizes[1] if k % 2 == 0 else np.swapaxes(sizes[1], 1, 2))
            ok = compare.close(g, w, 1, 4 * a.shape[-1] * 2.0**-23 * terms)
            assert ok.all(), f"result {k} on {target}: {compare.difference(g, w, ok)}"
            same = compare.identical(g, w)
            assert g.dtype == np.float32 or same.mean() > 0.9  # rounded to a narrow type, few differ at all
