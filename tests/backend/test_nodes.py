"""Every kind of node that makes a value, on every target, for several lane counts, against numpy; and in C."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from backend_runs import compile_c, compile_llvm

from hilo.backend.target import Target
from hilo.loop.builder import PTR, Builder, Func, Node, VType

N = 64  # elements per array; every lane count divides it
NP = {
    "i1": np.bool_,
    "i8": np.int8,
    "i16": np.int16,
    "i32": np.int32,
    "i64": np.int64,
    "f32": np.float32,
    "f64": np.float64,
}
INTS, FLOATS = ("i8", "i16", "i32", "i64"), ("f32", "f64")


class Case:
    """`build(b, *values)` on operands of types `types`; `reference(*arrays)` gives what it must be, bit for bit."""

    def __init__(
        self,
        name: str,
        types: tuple[str, ...],
        build: Callable[..., Node],
        reference: Callable[..., Any],
        *,
        data: Callable[..., list[np.ndarray]] | None = None,
    ) -> None:
        self.name, self.types, self.build, self.reference, self.data = name, types, build, reference, data

    def arrays(self) -> list[np.ndarray]:
        rng = np.random.default_rng(len(self.name))
        out = [values(t, rng) for t in self.types]
        return self.data(*out) if self.data else out


def values(scalar: str, rng: np.random.Generator) -> np.ndarray:
    """Edge cases first, then random values of many sizes."""
    if scalar == "i1":
        return rng.integers(0, 2, N).astype(np.bool_)
    if scalar in FLOATS:
        t = NP[scalar]
        info = np.finfo(t)
        edges = [
            0.0,
            -0.0,
            1.0,
            -1.0,
            0.5,
            -0.5,
            1.5,
            2.5,
            -2.5,
            np.inf,
            -np.inf,
            np.nan,
            info.max,
            info.tiny,
            info.smallest_subnormal,
            2.0**23 + 1,
            -(2.0**22) - 0.5,
            2.0**52,
            0.49999997,
            -0.7,
            0.7,
        ]
        rest = rng.standard_normal(N - len(edges)) * 10.0 ** rng.integers(-6, 7, N - len(edges))
        a = np.concatenate([edges, rest]).astype(t)
    else:
        t = NP[scalar]
        info = np.iinfo(t)
        edges = [0, 1, -1, 2, 3, 7, info.min, info.max, info.min + 1, info.max - 1]
        rest = rng.integers(info.min, info.max, N - len(edges), dtype=t, endpoint=True) >> t(rng.integers(0, 7))
        a = np.concatenate([np.array(edges, t), rest])
    return rng.permutation(a)


def unsigned(a: np.ndarray) -> np.ndarray:
    return a.view(f"u{a.itemsize}")


def cases() -> Iterator[Case]:
    yield from arithmetic()
    yield from bits()
    yield from comparing()
    yield from converting()
    yield from dots()


def arithmetic() -> Iterator[Case]:
    def small_shift(a: np.ndarray, s: np.ndarray) -> list[np.ndarray]:
        return [a, s & (a.itemsize * 8 - 1)]

    def safe(a: np.ndarray, d: np.ndarray) -> list[np.ndarray]:
        d = np.where((d == 0) | (d == -1), d.dtype.type(3), d)
        return [a, d]

    for t in FLOATS:
        for kind, f in (
            ("fadd", np.add),
            ("fsub", np.subtract),
            ("fmul", np.multiply),
            ("fdiv", np.divide),
            ("copysign", np.copysign),
        ):
            yield Case(f"{kind}_{t}", (t, t), lambda b, x, y, k=kind: b.binary(k, x, y), f)
        for kind, f in (
            ("fneg", np.negative),
            ("fabs", np.abs),
            ("sqrt", np.sqrt),
            ("floor", np.floor),
            ("ceil", np.ceil),
            ("rint", np.rint),
            ("trunc", np.trunc),
        ):
            yield Case(f"{kind}_{t}", (t,), lambda b, x, k=kind: b.unary(k, x), f)
    yield Case(
        "fma_f32",
        ("f32", "f32", "f32"),
        lambda b, x, y, z: b.fma(x, y, z),
        lambda x, y, z: (x.astype(np.longdouble) * y + z).astype(np.float32),
        data=lambda x, y, z: [x, y, -(x * y)],
    )
    yield Case(
        "fma_f64",
        ("f64", "f64", "f64"),
        lambda b, x, y, z: b.fma(x, y, z),
        lambda x, y, z: error_of_product(x, y),
        data=lambda x, y, z: [(v := np.abs(np.nan_to_num(x, posinf=2, neginf=3)) % 1e3 + 1), v + 0.1, -(v * (v + 0.1))],
    )
    for t, least, most in (("f32", -200, 128), ("f64", -1200, 1024)):
        yield Case(
            f"scale_{t}",
            (t, t),
            lambda b, x, n: b.scale(x, n),
            lambda x, n: np.ldexp(x, np.nan_to_num(n).astype(int)),
            data=lambda x, n, low=least, high=most: [
                np.where(np.isnan(x), x, np.copysign(np.clip(np.abs(x), 0.26, 3.9), x)).astype(x.dtype),
                np.where(np.isnan(x), x, np.linspace(low, high, x.size).round()).astype(x.dtype),
            ],
        )
    for t in INTS:
        for kind, f in (
            ("add", np.add),
            ("sub", np.subtract),
            ("mul", np.multiply),
            ("and", np.bitwise_and),
            ("or", np.bitwise_or),
            ("xor", np.bitwise_xor),
        ):
            yield Case(f"{kind}_{t}", (t, t), lambda b, x, y, k=kind: b.binary(k, x, y), f)
        yield Case(
            f"sdiv_{t}",
            (t, t),
            lambda b, x, y: b.binary("sdiv", x, y),
            lambda x, y: np.trunc(x.astype(np.longdouble) / y).astype(x.dtype),
            data=safe,
        )
        yield Case(f"srem_{t}", (t, t), lambda b, x, y: b.binary("srem", x, y), lambda x, y: np.fmod(x, y), data=safe)
        yield Case(
            f"udiv_{t}",
            (t, t),
            lambda b, x, y: b.binary("udiv", x, y),
            lambda x, y: (unsigned(x) // unsigned(y)).view(x.dtype),
            data=safe,
        )
        yield Case(
            f"urem_{t}",
            (t, t),
            lambda b, x, y: b.binary("urem", x, y),
            lambda x, y: (unsigned(x) % unsigned(y)).view(x.dtype),
            data=safe,
        )
        yield Case(f"shl_{t}", (t, t), lambda b, x, y: b.shl(x, y), np.left_shift, data=small_shift)
        yield Case(f"ashr_{t}", (t, t), lambda b, x, y: b.ashr(x, y), np.right_shift, data=small_shift)
        yield Case(
            f"lshr_{t}",
            (t, t),
            lambda b, x, y: b.lshr(x, y),
            lambda x, y: (unsigned(x) >> unsigned(y)).view(x.dtype),
            data=small_shift,
        )


def error_of_product(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """x * y - round(x * y) exactly, which is what fma(x, y, -(x * y)) gives."""
    from fractions import Fraction

    return np.array(
        [float(Fraction(float(a)) * Fraction(float(b)) - Fraction(float(a * b))) for a, b in zip(x, y, strict=True)]
    )


def bits() -> Iterator[Case]:
    for t in INTS:
        w = np.dtype(NP[t]).itemsize * 8

        def each(f: Callable[[int], int], w: int = w) -> Callable[[np.ndarray], np.ndarray]:
            return lambda a: np.array([f(int(v) & ((1 << w) - 1)) for v in a]).astype(a.dtype)

        yield Case(f"ctpop_{t}", (t,), lambda b, x: b.unary("ctpop", x), each(int.bit_count))
        yield Case(f"ctlz_{t}", (t,), lambda b, x: b.unary("ctlz", x), each(lambda v, w=w: w - v.bit_length()))
        yield Case(
            f"cttz_{t}",
            (t,),
            lambda b, x: b.unary("cttz", x),
            each(lambda v, w=w: (v & -v).bit_length() - 1 if v else w),
        )
        yield Case(f"bswap_{t}", (t,), lambda b, x: b.unary("bswap", x), lambda a: a.byteswap())
    for kind, f in (("and", np.logical_and), ("or", np.logical_or), ("xor", np.logical_xor)):
        yield Case(f"{kind}_i1", ("i1", "i1"), lambda b, x, y, k=kind: b.binary(k, x, y), f)


def comparing() -> Iterator[Case]:
    import operator as op

    ops = {"eq": op.eq, "ne": op.ne, "lt": op.lt, "le": op.le, "gt": op.gt, "ge": op.ge}

    def ties(x: np.ndarray, y: np.ndarray) -> list[np.ndarray]:
        return [x, np.where(np.arange(N) % 3 == 0, x, y)]

    for t in INTS:
        for p, f in ops.items():
            if p in ("eq", "ne"):
                yield Case(f"cmp_{p}_{t}", (t, t), lambda b, x, y, p=p: b.cmp(p, x, y), f, data=ties)
            else:
                yield Case(f"cmp_s{p}_{t}", (t, t), lambda b, x, y, p=p: b.cmp("s" + p, x, y), f, data=ties)
                yield Case(
                    f"cmp_u{p}_{t}",
                    (t, t),
                    lambda b, x, y, p=p: b.cmp("u" + p, x, y),
                    lambda x, y, f=f: f(unsigned(x), unsigned(y)),
                    data=ties,
                )
    nan = lambda x, y: np.isnan(x) | np.isnan(y)
    for t in FLOATS:
        for p, name in (("oeq", "eq"), ("une", "ne"), ("olt", "lt"), ("ole", "le"), ("ogt", "gt"), ("oge", "ge")):
            yield Case(f"cmp_{p}_{t}", (t, t), lambda b, x, y, p=p: b.cmp(p, x, y), ops[name], data=ties)
        yield Case(f"cmp_uno_{t}", (t, t), lambda b, x, y: b.cmp("uno", x, y), nan)
        yield Case(f"cmp_ord_{t}", (t, t), lambda b, x, y: b.cmp("ord", x, y), lambda x, y: ~nan(x, y))
    for t in (*INTS, *FLOATS, "i1"):
        yield Case(f"select_{t}", ("i1", t, t), lambda b, c, x, y: b.pure("select", (c, x, y), x.type), np.where)


def converting() -> Iterator[Case]:
    order = ("i1", *INTS)
    for i, small in enumerate(order):
        for wide in order[i + 1 :]:
            yield Case(
                f"zext_{small}_{wide}",
                (small,),
                lambda b, x, w=wide: b.convert("zext", x, w),
                lambda a, w=wide: (a if a.dtype == np.bool_ else unsigned(a)).astype(NP[w]),
            )
            yield Case(
                f"sext_{small}_{wide}",
                (small,),
                lambda b, x, w=wide: b.convert("sext", x, w),
                lambda a, w=wide: -a.astype(NP[w]) if a.dtype == np.bool_ else a.astype(NP[w]),
            )
            yield Case(
                f"itrunc_{wide}_{small}",
                (wide,),
                lambda b, x, s=small: b.convert("itrunc", x, s),
                lambda a, s=small: (a & 1).astype(bool) if s == "i1" else a.astype(NP[s]),
            )
    yield Case("fpext", ("f32",), lambda b, x: b.convert("fpext", x, "f64"), lambda a: a.astype(np.float64))
    yield Case("fptrunc", ("f64",), lambda b, x: b.convert("fptrunc", x, "f32"), lambda a: a.astype(np.float32))
    for f in FLOATS:
        for t in INTS:
            yield Case(
                f"sitofp_{t}_{f}", (t,), lambda b, x, f=f: b.convert("sitofp", x, f), lambda a, f=f: a.astype(NP[f])
            )
            yield Case(
                f"uitofp_{t}_{f}",
                (t,),
                lambda b, x, f=f: b.convert("uitofp", x, f),
                lambda a, f=f: unsigned(a).astype(NP[f]),
            )
            yield Case(
                f"fptosi_{f}_{t}",
                (f,),
                lambda b, x, t=t: b.convert("fptosi", x, t),
                lambda a, t=t: a.astype(NP[t]),
                data=lambda a: [np.clip(np.nan_to_num(a), -120, 120)],
            )
            yield Case(
                f"fptoui_{f}_{t}",
                (f,),
                lambda b, x, t=t: b.convert("fptoui", x, t),
                lambda a, t=t: a.astype("u8").astype(NP[t]),
                data=lambda a: [np.clip(np.abs(np.nan_to_num(a)), 0, 250)],
            )
    for a, z in (("f32", "i32"), ("i32", "f32"), ("f64", "i64"), ("i64", "f64")):
        yield Case(f"bitcast_{a}_{z}", (a,), lambda b, x, z=z: b.bitcast(x, z), lambda x, z=z: x.view(NP[z]))


def dots() -> Iterator[Case]:
    def four(c: np.ndarray, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        products = a.view(np.uint8).astype(np.int32) * b.view(np.int8)
        return c + products.reshape(-1, 4).sum(1, dtype=np.int32)

    def two(c: np.ndarray, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return c + (a.view(np.int16).astype(np.int32) * b.view(np.int16)).reshape(-1, 2).sum(1, dtype=np.int32)

    def same(t: type) -> Callable[..., np.ndarray]:
        return lambda c, a, b: c + (a.view(t).astype(np.int32) * b.view(t)).reshape(-1, 4).sum(1, dtype=np.int32)

    for name, signed, t in (("sdot4", True, np.int8), ("udot4", False, np.uint8)):
        yield Case(name, ("i32", "i32", "i32"), lambda b, c, x, y, s=signed: b.dot_same(s, c, x, y), same(t))
    yield Case("dot4", ("i32", "i32", "i32"), lambda b, c, x, y: b.dot(4, c, x, y), four)
    yield Case("dot2", ("i32", "i32", "i32"), lambda b, c, x, y: b.dot(2, c, x, y), two)

    def pairs(c: np.ndarray, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        halves = [(x.view(np.uint16).astype(np.uint32) << 16).view(np.float32).reshape(-1, 2) for x in (a, b)]
        return c + (halves[0] * halves[1]).sum(1)

    def whole(c: np.ndarray, a: np.ndarray, b: np.ndarray) -> list[np.ndarray]:
        """Whole numbers as bf16, whose sums are exact."""
        numbers = (np.resize(np.arange(-7, 8), 2 * N), np.resize(np.arange(-9, 7), 2 * N))
        bits = [(x.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16).view(np.int32) for x in numbers]
        return [np.resize(np.arange(-4, 5), N).astype(np.float32), *bits]

    yield Case("dot_bf16", ("f32", "i32", "i32"), Builder.dot_bf16, pairs, data=whole)


CASES = list(cases())


def function(case: Case, lanes: int) -> Func:
    """out[i] = build(in0[i], ...) over N elements, by vectors of `lanes`."""
    params = [(f"x{i}", PTR) for i in range(len(case.types))]
    f = Func(f"{case.name}_{lanes}", [*params, ("out", PTR)])
    b = Builder(f)
    *inputs, out = f.params

    def body(i: Node) -> None:
        loaded = []
        for p, scalar in zip(inputs, case.types, strict=True):
            t = VType(scalar, lanes)
            loaded.append(b.load(b.gep(p, b.mul(i, t.size)), t))
        y = case.build(b, *loaded)
        b.store(b.gep(out, b.mul(i, y.type.size)), y)

    b.for_(0, N, lanes, body)
    return f


def run_cases(get: Callable[[str], Any], lanes: int, without: Collection[str] = ()) -> list[str]:
    wrong = []
    for case in CASES:
        if case.name in without:
            continue
        with np.errstate(all="ignore"):
            arrays = [np.ascontiguousarray(a) for a in case.arrays()]
            expected = np.ascontiguousarray(case.reference(*arrays))
        out = np.full(N, 0x55, np.uint8).repeat(expected.itemsize).view(expected.dtype)
        get(f"{case.name}_{lanes}")(*[a.ctypes.data for a in arrays], out.ctypes.data)
        if not same_bits(out, expected):
            wrong.append(case.name)
    return wrong


def same_bits(a: np.ndarray, b: np.ndarray) -> bool:
    """Equal bits; any NaN equals any other."""
    if a.dtype.kind == "f":
        nan = np.isnan(b)
        return bool((np.isnan(a) == nan).all()) and a[~nan].tobytes() == b[~nan].tobytes()
    return a.tobytes() == b.tobytes()


@pytest.mark.parametrize("lanes", [1, 4, 8, 16])
def test_every_value_node_gives_numpys_bits(target: Target, lanes: int) -> None:
    get = compile_llvm([function(c, lanes) for c in CASES], target)
    assert run_cases(get, lanes) == []


def test_every_value_node_in_c(tmp_path: Path) -> None:
    assert run_cases(compile_c([function(c, 1) for c in CASES], tmp_path), 1) == []
