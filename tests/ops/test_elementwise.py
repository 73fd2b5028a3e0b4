"""Reference semantics of elementwise ops: pairs of bytes, floats against exact arithmetic, special values, errors."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from support import edges, made, pairs, same_bits

from hilo.errors import VerifyError
from hilo.ir import dtypes
from hilo.ir.dtypes import COMMON, DType, from_numpy
from hilo.ir.registry import REGISTRY, lookup
from hilo.ir.types import Dim, TensorType, bounded
from hilo.ops import numeric

INF, NAN = math.inf, math.nan
OURS = {
    "chlo",
    "chlo_broadcast",
    "compare",
    "complex",
    "convert",
    "elementwise_arith",
    "elementwise_bits",
    "elementwise_math",
}


def run(name: str, *arrays: Any, **attrs: Any) -> np.ndarray:
    """The op on arrays, checked against what `infer` says of the result."""
    kind = lookup(name if "." in name else f"stablehlo.{name}")
    xs = [np.asarray(a) for a in arrays]
    op = made(kind, [TensorType(from_numpy(x.dtype), x.shape) for x in xs], attrs)
    assert kind.evaluate is not None
    out = kind.evaluate(*xs, **op.attrs.own())
    assert isinstance(out, np.ndarray)
    assert (from_numpy(out.dtype), out.shape) == (op.dtype, op.shape)
    return out


def all_pairs(t: DType) -> list[np.ndarray]:
    x = np.arange(256, dtype=np.uint8).view(t.np)
    return pairs(x, x)


def truncated(a: int, b: int) -> int:
    q = abs(a) // abs(b)
    return q if (a < 0) == (b < 0) else -q


def int_power(a: int, n: int) -> int:
    if n >= 0:
        return pow(a, n, 1 << 8)
    return {1: 1, -1: 1 if n % 2 == 0 else -1}.get(a, 0)


INT_OPS = {
    "add": lambda a, b: a + b,
    "subtract": lambda a, b: a - b,
    "multiply": lambda a, b: a * b,
    "divide": lambda a, b: truncated(a, b) if b else -1,
    "remainder": lambda a, b: a - truncated(a, b) * b if b else a,
    "maximum": max,
    "minimum": min,
    "and": lambda a, b: a & b,
    "or": lambda a, b: a | b,
    "xor": lambda a, b: a ^ b,
    "power": int_power,
    "shift_left": lambda a, b: a << (b & 255) if (b & 255) < 8 else 0,
    "shift_right_logical": lambda a, b: (a & 255) >> (b & 255),
}


@pytest.mark.parametrize("t", [dtypes.i8, dtypes.u8], ids=str)
@pytest.mark.parametrize("name", INT_OPS)
def test_all_pairs_of_bytes(name: str, t: DType) -> None:
    x, y = all_pairs(t)
    want = numeric.wrap_int(np.array([INT_OPS[name](a, b) for a, b in zip(x.tolist(), y.tolist())], np.int64), t)
    same_bits(run(name, x, y), want, x, y, what=name)


def test_arithmetic_shifts_fill_with_the_highest_bit() -> None:
    for t in (dtypes.i8, dtypes.u8):
        x, y = all_pairs(t)
        want = (
            np.array([v >> min(n & 255, 8) for v, n in zip(x.view(np.int8).tolist(), y.tolist())])
            .astype(np.int8)
            .view(t.np)
        )
        same_bits(run("shift_right_arithmetic", x, y), want, x, y)


@pytest.mark.parametrize("t", [d for d in COMMON if d.is_int], ids=str)
def test_integers_at_the_ends_of_every_type(t: DType) -> None:
    x, y = pairs(edges(t), edges(t, 1))
    lo, hi = numeric.int_range(t)

    def wrapped(v: int) -> int:
        return (v - lo) % (hi - lo + 1) + lo

    for name in ("add", "subtract", "multiply", "divide", "remainder"):
        want = [wrapped(INT_OPS[name](a, b)) for a, b in zip(x.tolist(), y.tolist())]
        assert run(name, x, y).tolist() == want, name
    v = edges(t)
    assert run("negate", v).tolist() == [wrapped(-a) for a in v.tolist()]
    assert run("not", v).tolist() == [wrapped(~a) for a in v.tolist()]
    assert run("popcnt", v).tolist() == [bin(a & ((1 << t.bits) - 1)).count("1") for a in v.tolist()]
    assert run("count_leading_zeros", v).tolist() == [
        t.bits - (a & ((1 << t.bits) - 1)).bit_length() for a in v.tolist()
    ]
    assert run("chlo.square", v).tolist() == [wrapped(a * a) for a in v.tolist()]
    if t.kind == "i":
        assert run("abs", v).tolist() == [wrapped(abs(a)) for a in v.tolist()]
        assert run("sign", v).tolist() == [(a > 0) - (a < 0) for a in v.tolist()]


@pytest.mark.parametrize("t", [dtypes.bf16, dtypes.f16], ids=str)
@pytest.mark.parametrize("name", ["add", "subtract", "multiply", "divide"])
def test_narrow_arithmetic_rounds_the_exact_result(name: str, t: DType) -> None:
    rng = np.random.default_rng(2)
    x, y = (rng.integers(0, 1 << 16, 4000, dtype=np.uint16).view(t.np) for _ in range(2))
    with np.errstate(invalid="ignore"):
        fine = np.isfinite(x) & np.isfinite(y) & (y.astype(np.float32) != 0)
    x, y = x[fine], y[fine]
    near = rng.integers(-300, 300, x.size)  # also operands of like size, where sums cancel
    with np.errstate(invalid="ignore", over="ignore"):
        close = (x.view(np.int16) + near.astype(np.int16)).view(t.np)
        usable = np.isfinite(close) & (close.astype(np.float32) != 0)
    y = np.where(usable & (np.arange(x.size) % 2 == 0), close, y)
    exact = {
        "add": lambda a, b: a + b,
        "subtract": lambda a, b: a - b,
        "multiply": lambda a, b: a * b,
        "divide": lambda a, b: a / b,
    }
    got = run(name, x, y).astype(np.float64)
    half = {dtypes.bf16: Fraction(1, 2**8), dtypes.f16: Fraction(1, 2**11)}[t]
    least = {dtypes.bf16: Fraction(1, 2**134), dtypes.f16: Fraction(1, 2**25)}[t]
    top = {dtypes.bf16: Fraction(2) ** 128 - Fraction(2) ** 119, dtypes.f16: Fraction(65520)}[t]
    for a, b, g in zip(x.astype(float).tolist(), y.astype(float).tolist(), got.tolist()):
        want = exact[name](Fraction(a), Fraction(b))
        if math.isinf(g):
            assert abs(want) >= top, (a, b, g)
            continue
        error = abs(Fraction(g) - want)
        exponent = math.frexp(abs(g))[1] - 1 if g else -2000
        assert error <= max(half * Fraction(2) ** exponent if exponent > -2000 else 0, least), (a, b, g)


def test_extrema_of_floats() -> None:
    for t in (np.float32, np.float64, dtypes.bf16.np, np.float16):
        x = np.array([0.0, -0.0, NAN, 1.0, NAN, -INF, 2.0], t)
        y = np.array([-0.0, 0.0, 1.0, NAN, NAN, INF, 2.0], t)
        same_bits(run("maximum", x, y), np.array([0.0, 0.0, NAN, NAN, NAN, INF, 2.0], t))
        same_bits(run("minimum", x, y), np.array([-0.0, -0.0, NAN, NAN, NAN, -INF, 2.0], t))


def test_signs_and_rounding() -> None:
    x = np.array([0.0, -0.0, 0.5, -0.5, 1.5, 2.5, -2.5, 0.49999997, 8388609.0, -INF, NAN, 1e-45], np.float32)
    same_bits(run("sign", x), np.array([0.0, -0.0, 1, -1, 1, 1, -1, 1, 1, -1, NAN, 1], np.float32))
    same_bits(run("round_nearest_afz", x), np.array([0.0, -0.0, 1, -1, 2, 3, -3, 0, 8388609, -INF, NAN, 0], np.float32))
    same_bits(
        run("round_nearest_even", x), np.array([0.0, -0.0, 0, -0.0, 2, 2, -2, 0, 8388609, -INF, NAN, 0], np.float32)
    )
    same_bits(run("floor", x), np.array([0.0, -0.0, 0, -1, 1, 2, -3, 0, 8388609, -INF, NAN, 0], np.float32))
    same_bits(run("ceil", x), np.array([0.0, -0.0, 1, -0.0, 2, 3, -2, 1, 8388609, -INF, NAN, 1], np.float32))
    assert run("is_finite", x).tolist() == [True] * 9 + [False, False, True]


def test_remainder_is_fmod() -> None:
    x, y = pairs(edges(dtypes.f64), edges(dtypes.f64, 1))
    want = [
        NAN if math.isinf(a) or b == 0 or a != a or b != b else math.fmod(a, b) for a, b in zip(x.tolist(), y.tolist())
    ]
    same_bits(run("remainder", x, y), np.array(want), x, y)


def test_compare() -> None:
    x = np.array([0.0, NAN, 1.0, -INF, NAN], np.float32)
    y = np.array([-0.0, 1.0, 2.0, INF, NAN], np.float32)
    want = {"EQ": [1, 0, 0, 0, 0], "NE": [0, 1, 1, 1, 1], "LT": [0, 0, 1, 1, 0], "LE": [1, 0, 1, 1, 0],
            "GT": [0, 0, 0, 0, 0], "GE": [1, 0, 0, 0, 0]}  # fmt: skip
    for d, w in want.items():
        assert run("compare", x, y, comparison_direction=d).tolist() == [bool(v) for v in w], d
    order = np.array([-NAN, -INF, -1.0, -1e-45, -0.0, 0.0, 1e-45, 1.0, INF, NAN])
    for t in (np.float32, np.float16, dtypes.bf16.np, np.float64):
        v = np.unique(order.astype(t).view(f"i{np.dtype(t).itemsize}"))  # f16 and bf16 have no 1e-45
        v = np.array(
            sorted(v.tolist(), key=lambda b: b if b >= 0 else ~b - (1 << 64)), f"i{np.dtype(t).itemsize}"
        ).view(t)
        ranks = np.arange(v.size)
        a, b = pairs(v, v)
        i, j = pairs(ranks, ranks)
        for d, f in {"EQ": np.equal, "NE": np.not_equal, "LT": np.less, "GE": np.greater_equal}.items():
            assert (run("compare", a, b, comparison_direction=d, compare_type="TOTALORDER") == f(i, j)).all(), (d, t)
    assert run("compare", np.array([1 + 2j]), np.array([1 + 3j]), comparison_direction="LT").tolist() == [True]
    assert run("compare", np.array([2 + 2j]), np.array([1 + 3j]), comparison_direction="LE").tolist() == [False]
    assert run("compare", np.array([False]), np.array([True]), comparison_direction="LT").tolist() == [True]


def test_select_and_clamp_with_rank_0_operands() -> None:
    x, y = np.array([1.0, 2.0]), np.array([3.0, 4.0])
    assert run("select", np.array(False), x, y).tolist() == [3, 4]
    assert run("select", np.array([True, False]), x, y).tolist() == [1, 4]
    assert run("clamp", np.array(1.5), np.array([1.0, 2, 5, NAN]), np.array(3.0))[:3].tolist() == [1.5, 2, 3]
    assert run("clamp", np.array([3, 3]), np.array([1, 7]), np.array(2)).tolist() == [2, 2]  # min above max: max wins


def test_complex_arithmetic_against_exact_fractions() -> None:
    rng = np.random.default_rng(3)
    for t in (np.complex64, np.complex128):
        part = np.float32 if t is np.complex64 else np.float64
        x, y = ((rng.standard_normal((500, 2)) * 2.0 ** rng.integers(-40, 40, (500, 2))).astype(part) for _ in range(2))
        y[:250] = x[:250, ::-1] * part(1 + 1e-6)  # real parts that nearly cancel
        for name in ("multiply", "divide"):
            got = run(name, x.view(t)[:, 0], y.view(t)[:, 0])
            for p, q, g in zip(x.tolist(), y.tolist(), got):
                (a, b), (c, d) = map(Fraction, p), map(Fraction, q)
                n = c * c + d * d
                want = (
                    (a * c - b * d, a * d + b * c) if name == "multiply" else ((a * c + b * d) / n, (b * c - a * d) / n)
                )
                for w, v in zip(want, (g.real, g.imag)):
                    assert abs(Fraction(float(v)) - w) <= abs(w) * Fraction(
                        1, 2**23 if part is np.float32 else 2**52
                    ), (name, p, q)


def test_complex_at_the_ends_of_the_range() -> None:
    big, tiny = 1.5e308, 3e-308
    assert run("abs", np.array([big + big * 1j]) / 2).tolist() == pytest.approx([math.hypot(big / 2, big / 2)])
    assert run("abs", np.array([complex(INF, NAN), complex(NAN, -INF)])).tolist() == [INF, INF]
    assert run("divide", np.array([big + big * 1j]), np.array([big + big * 1j])).tolist() == [1]
    assert run("divide", np.array([tiny + tiny * 1j]), np.array([tiny * 1j])).tolist() == [1 - 1j]
    assert run("divide", np.array([1 + 1j]), np.array([complex(INF, INF)])).tolist() == [0]
    assert np.isinf(run("divide", np.array([1 + 1j]), np.array([0j])).real).all()
    same_bits(run("sign", np.array([0j, 3 + 4j, complex(NAN, 1)])), np.array([0j, 0.6 + 0.8j, complex(NAN, NAN)]))
    assert run("power", np.array([0j, 0j, 2 + 0j]), np.array([0j, 2 + 0j, 3 + 0j])).tolist() == [1, 0, 8]


def test_parts() -> None:
    x = np.array([1 - 2j, complex(NAN, -0.0)], np.complex64)
    same_bits(run("real", x), np.array([1, NAN], np.float32))
    same_bits(run("imag", x), np.array([-2, -0.0], np.float32))
    same_bits(run("imag", np.array([NAN, 1.0])), np.array([0.0, 0.0]))
    same_bits(
        run("complex", np.array([INF, -0.0]), np.array([NAN, -0.0])), np.array([complex(INF, NAN), complex(-0.0, -0.0)])
    )


@pytest.mark.parametrize("name", ["sqrt", "exponential", "log", "sine", "tanh", "logistic", "cbrt", "log_plus_one"])
def test_no_warning_gets_out(name: str) -> None:
    for t in COMMON:
        if t.is_float or t.is_complex:
            run(name, edges(t))


def test_types_that_are_not_compiled_yet_evaluate_too() -> None:
    for t in (d for d in dtypes.ALL if d.is_int and d.bits < 8):
        lo, hi = numeric.int_range(t)
        v = np.arange(lo, hi + 1).astype(np.int8 if t.kind == "i" else np.uint8).astype(t.np)
        x, y = pairs(v, v)
        for name in ("add", "subtract", "multiply", "divide", "remainder", "maximum", "minimum"):
            want = [(INT_OPS[name](int(a), int(b)) - lo) % (hi - lo + 1) + lo for a, b in zip(x, y)]
            assert run(name, x, y).astype(int).tolist() == want, (t, name)
    for t in dtypes.NARROW_FLOATS:
        v = np.arange(1 << t.bits, dtype=np.uint8).view(t.np)
        x, y = pairs(v, v)
        with np.errstate(all="ignore"):
            wide = [a.astype(np.float64) for a in (x, y)]
            exact = numeric.convert(wide[0] * wide[1], t)
        same_bits(run("multiply", x, y), exact, x, y, what=t)
        assert (run("compare", x, y, comparison_direction="LT") == (wide[0] < wide[1])).all()
        run("reduce_precision", v, exponent_bits=2, mantissa_bits=1)
        run("chlo.erf", v)


# ---- every op of these files
def ours() -> list[Any]:
    import hilo.ops  # noqa: F401

    return [d for d in REGISTRY.values() if d.cls is not None and d.cls.__module__.split(".")[-1] in OURS]


@pytest.mark.parametrize("kind", ours(), ids=str)
def test_examples(kind: Any) -> None:
    """Every piece is there, and evaluate, infer, expand, sharding and cost agree on each example."""
    assert kind.doc
    assert kind.examples
    assert kind.evaluate
    assert kind.scalar or kind.element or kind.expand
    for types, attrs in kind.examples:
        op = made(kind, types, attrs)
        xs = [np.resize(edges(t.dtype), t.shape) if t.size else np.zeros(t.shape, t.dtype.np) for t in types]
        out = kind.evaluate(*xs, **op.attrs.own())
        assert isinstance(out, np.ndarray)
        assert (out.dtype, out.shape) == (op.dtype.np, op.shape), types
        rule = kind.sharding if isinstance(kind.sharding, str) else kind.sharding(*types, out=op.type, **op.attrs.own())
        assert rule.count(",") == max(len(types) - 1, 0)
        if kind.expand is not None:
            assert kind.expand(*op.operands, **op.attrs.own()).type is op.type
        if kind.cost is not None:
            assert kind.cost(*types, out=op.type, **op.attrs.own())[0] >= 0


def t(*shape: Any, dtype: DType = dtypes.f32) -> TensorType:
    return TensorType(dtype, shape)


@pytest.mark.parametrize(
    ("name", "types", "attrs", "rule"),
    [
        ("add", [t(2), t(3)], {}, "C1"),
        ("add", [t(2), t(2, dtype=dtypes.f64)], {}, "C1"),
        ("and", [t(2), t(2)], {}, "I1"),
        ("sine", [t(2, dtype=dtypes.i32)], {}, "I1"),
        ("abs", [t(2, dtype=dtypes.u8)], {}, "I1"),
        ("floor", [t(2, dtype=dtypes.c64)], {}, "I1"),
        ("compare", [t(2), t(2, dtype=dtypes.f64)], {"comparison_direction": "EQ"}, "C1"),
        ("compare", [t(2), t(3)], {"comparison_direction": "EQ"}, "C2"),
        ("compare", [t(2), t(2)], {"comparison_direction": "EQ", "compare_type": "SIGNED"}, "C3"),
        ("compare", [t(2), t(2)], {"comparison_direction": "??"}, "I3"),
        ("select", [t(2, dtype=dtypes.i8), t(2), t(2)], {}, "I1"),
        ("select", [t(3, dtype=dtypes.i1), t(2), t(2)], {}, "C1"),
        ("select", [t(2, dtype=dtypes.i1), t(2), t(3)], {}, "C2"),
        ("clamp", [t(3), t(2), t()], {}, "C1"),
        ("clamp", [t(), t(2), t(3)], {}, "C2"),
        ("clamp", [t(dtype=dtypes.i8), t(2), t()], {}, "C3"),
        ("complex", [t(2, dtype=dtypes.f16), t(2, dtype=dtypes.f16)], {}, "I1"),
        ("complex", [t(2), t(3)], {}, "C1"),
        ("convert", [t(2)], {"type": t(3)}, "C1"),
        ("bitcast_convert", [t(2)], {"type": t(2, dtype=dtypes.f64)}, "C1"),
        ("bitcast_convert", [t(2)], {"type": t(2, 3, dtype=dtypes.i8)}, "C1"),
        ("bitcast_convert", [t(2)], {"type": t(1, dtype=dtypes.c64)}, "C2"),
        ("reduce_precision", [t(2)], {"exponent_bits": 0, "mantissa_bits": 2}, "C2"),
        ("reduce_precision", [t(2)], {"exponent_bits": 1, "mantissa_bits": -1}, "C3"),
        ("chlo.broadcast_add", [t(2), t(3)], {}, ""),
        ("chlo.broadcast_add", [t(2), t(2, 3)], {"broadcast_dimensions": (2,)}, ""),
        ("add", [t(2)], {}, ""),
        ("add", [t(2), t(2)], {"nonsense": 1}, ""),
    ],
)
def test_what_breaks_a_rule(name: str, types: list[TensorType], attrs: dict[str, Any], rule: str) -> None:
    with pytest.raises(VerifyError) as e:
        made(lookup(name if "." in name else f"stablehlo.{name}"), types, attrs)
    assert e.value.rule == rule
    assert str(e.value)


def test_symbolic_dims_merge() -> None:
    some: Dim = bounded(None)
    op = made(lookup("stablehlo.add"), [t(some, 3), t(2, some)], {})
    assert op.type is t(2, 3)
    assert made(lookup("stablehlo.negate"), [t(some)], {}).type is t(some)
