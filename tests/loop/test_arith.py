"""Loop arithmetic against the reference, bit for bit, over edge values: interpreted, and native with 1 and 8 lanes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support import Native, differences, edges, interpreted, made, pairs, same_bits, scalar_func, ulps

import hilo.ops  # noqa: F401
from hilo.backend.target import Target
from hilo.ir.dtypes import COMMON, DType
from hilo.ir.registry import REGISTRY
from hilo.ir.types import TensorType

UNARY = {"negate": "iufc", "abs": "ifc", "sign": "ifc", "not": "biu", "popcnt": "iu", "count_leading_zeros": "iu",
         "floor": "f",
         "ceil": "f", "round_nearest_even": "f", "round_nearest_afz": "f", "is_finite": "f", "real": "fc", "imag": "fc",
         "chlo.square": "iufc", "chlo.conj": "fc", "chlo.is_inf": "f", "chlo.is_pos_inf": "f",
         "chlo.is_neg_inf": "f"}  # fmt: skip
BINARY = {"add": "biufc", "subtract": "iufc", "multiply": "biufc", "divide": "iufc", "remainder": "iuf",
          "maximum": "biufc",
          "minimum": "biufc", "and": "biu", "or": "biu", "xor": "biu", "shift_left": "iu", "shift_right_logical": "iu",
          "shift_right_arithmetic": "iu", "power": "iu", "chlo.next_after": "f"}  # fmt: skip
DIRECTIONS = ("EQ", "NE", "GE", "GT", "LE", "LT")
# parts of c128 are rounded more than once natively; c64 in f64 may round twice
ULPS = {("divide", "c128"): 3, ("multiply", "c128"): 2, ("abs", "c128"): 1, ("sign", "c128"): 3, ("square", "c128"): 2,
        ("abs", "c64"): 1, ("sign", "c64"): 1}  # fmt: skip


def kind_of(name: str) -> Any:
    return REGISTRY[name if "." in name else f"stablehlo.{name}"]


def cases(t: DType) -> list[tuple[Any, list[np.ndarray], dict[str, Any]]]:
    """Every op on type `t`: (definition, operands, attributes)."""
    x = edges(t)
    xs = pairs(x, edges(t, 1))
    out: list[tuple[Any, list[np.ndarray], dict[str, Any]]] = []
    out += [(kind_of(n), [x], {}) for n, kinds in UNARY.items() if t.kind in kinds]
    out += [(kind_of(n), xs, {}) for n, kinds in BINARY.items() if t.kind in kinds]
    out += [(kind_of("compare"), xs, {"comparison_direction": d}) for d in DIRECTIONS]
    if t.is_float:
        out += [(kind_of("compare"), xs, {"comparison_direction": d, "compare_type": "TOTALORDER"}) for d in DIRECTIONS]
        for e, m in ((5, 7), (8, 23), (4, 0), (1, 3), (5, 10), (8, 7), (11, 52), (3, 60)):
            out.append((kind_of("reduce_precision"), [x], {"exponent_bits": e, "mantissa_bits": m}))
    pred = np.random.default_rng(0).integers(0, 2, xs[0].size).astype(bool)
    out.append((kind_of("select"), [pred, *xs], {}))
    out.append((kind_of("clamp"), [xs[0], np.resize(x, xs[0].size), xs[1]], {}))
    out += [(kind_of("convert"), [x], {"type": TensorType(d, x.shape)}) for d in COMMON]
    if t.name in ("f32", "f64"):
        out.append((kind_of("complex"), xs, {}))
    return out


def distance(got: np.ndarray, want: np.ndarray) -> np.ndarray:
    """In ulps; a part of a complex number may be lost that is nothing beside the other one."""
    if got.dtype.kind != "c":
        return ulps(got, want)
    far = []
    with np.errstate(all="ignore"):
        for g, w in ((got.real, want.real), (got.imag, want.imag)):
            far.append(np.where(np.abs(g - w) <= 2.0**-300 * np.abs(want), 0, ulps(g, w)))
    return np.maximum(*far)


def check(kind: Any, t: DType, got: np.ndarray, want: np.ndarray, arrays: list[np.ndarray], what: object) -> None:
    allowed = ULPS.get((kind.name, t.name))
    if allowed is None:
        same_bits(got, want, *arrays, what=what)
        return
    far = distance(got, want)
    if (kind.name, t.name) == ("multiply", "c128"):  # products of large parts overflow before they meet an infinity
        with np.errstate(all="ignore"):
            (a, b), (c, d) = ((x.real, x.imag) for x in arrays)
            plain = np.empty_like(got)
            plain.real, plain.imag = a * c - b * d, a * d + b * c
        far = np.where(~np.isfinite(want) & ~differences(got, plain), 0, far)
    at = int(np.argmax(far))
    assert far.max() <= allowed, f"{what}: {far.max()} ulp at {[a[at] for a in arrays]}: {got[at]!r}, not {want[at]!r}"


@pytest.mark.parametrize("t", COMMON, ids=str)
def test_interpreted_with_many_lanes(t: DType) -> None:
    for kind, arrays, attrs in cases(t):
        op = made(kind, [TensorType(_dtype(a), a.shape) for a in arrays], attrs)
        n = arrays[0].size
        got = interpreted(scalar_func("f", op, n), op, arrays, n)
        check(kind, t, got, kind.evaluate(*arrays, **op.attrs.own()), arrays, (kind, t, attrs))


@pytest.mark.parametrize("target", ["host", "x86-avx2", "x86-sse2"])
@pytest.mark.parametrize("t", COMMON, ids=str)
def test_native(t: DType, target: str) -> None:
    if not Target.host().includes(Target.named(target)):
        pytest.skip(f"this machine does not run {target}")
    funcs, runs = [], []
    for i, (kind, arrays, attrs) in enumerate(cases(t)):
        op = made(kind, [TensorType(_dtype(a), a.shape) for a in arrays], attrs)
        for lanes in (1, 8):
            funcs.append(scalar_func(f"f{i}_{lanes}", op, lanes))
            runs.append((funcs[-1].name, kind, op, arrays, lanes))
    native = Native(funcs, target)
    for name, kind, op, arrays, lanes in runs:
        got = native.run(name, op, arrays, lanes)
        check(kind, t, got, kind.evaluate(*arrays, **op.attrs.own()), arrays, (kind, t, op.attrs, lanes))


def _dtype(a: np.ndarray) -> DType:
    from hilo.ir.dtypes import from_numpy

    return from_numpy(a.dtype)
