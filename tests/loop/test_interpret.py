"""The interpreter of the loop IR: every kind of node, the exact fma, and what it refuses."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest

from hilo.errors import Error
from hilo.loop.builder import F32, F64, I1, I8, I16, I32, I64, PTR, Builder, Node, VType
from hilo.loop.exact import fma
from hilo.loop.interpret import apply, run
from hilo.loop.nodes import Func

RNG = np.random.default_rng(30)


def function(params: list[tuple[str, VType]], build: Callable[..., Node | None], ret: VType | None = None) -> Func:
    func = Func("f", params, ret) if ret else Func("f", params)
    b = Builder(func)
    b.ret(build(b, *func.params))
    return func


def exactly(x: Fraction) -> float:
    """The nearest f64, ties to even."""
    try:
        return float(x)
    except OverflowError:
        return np.inf if x > 0 else -np.inf


@pytest.mark.parametrize("spread", [2, 30, 500, 1000])
def test_fma_rounds_once_f64(spread: int) -> None:
    a, b, c = RNG.uniform(-1, 1, (3, 600)) * 2.0 ** RNG.integers(-spread, spread, (3, 600))
    with np.errstate(all="ignore"):
        c[:200] = -(a * b)[:200] * (1 + 2.0**-52 * RNG.integers(-3, 4, 200))  # most of the digits cancel
    got = np.asarray(run_fma(a, b, c))
    for x, y, z, r in zip(a.tolist(), b.tolist(), c.tolist(), got.tolist()):
        if np.isfinite(z):
            want = exactly(Fraction(x) * Fraction(y) + Fraction(z))
            assert r == want, (x, y, z)


def run_fma(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    with np.errstate(all="ignore"):
        return fma(a, b, c)


@pytest.mark.parametrize("spread", [2, 20, 70])
def test_fma_rounds_once_f32(spread: int) -> None:
    a, b, c = (RNG.uniform(-1, 1, (3, 600)) * 2.0 ** RNG.integers(-spread, spread, (3, 600))).astype(np.float32)
    with np.errstate(all="ignore"):
        c[:300] = a[:300] * b[:300] * np.float32(2.0**24)  # ties of the product's tail
    got = run_fma(a, b, c)
    for x, y, z, r in zip(a.tolist(), b.tolist(), c.tolist(), got.tolist()):
        if not np.isfinite(z):
            continue
        exact = Fraction(x) * Fraction(y) + Fraction(z)
        below = np.nextafter(np.float32(r), np.float32(-np.inf))
        above = np.nextafter(np.float32(r), np.float32(np.inf))
        if np.isfinite([r, below, above]).all():
            error = abs(Fraction(r) - exact)
            assert error <= abs(Fraction(float(below)) - exact)
            assert error <= abs(Fraction(float(above)) - exact)


def test_fma_of_special_numbers() -> None:
    a = np.array([np.inf, 0, 0, np.nan, 1e200, -0.0, 1e308, 5e-324])
    b = np.array([1, np.inf, -1, 1, 1e200, 1, 10, 0.5])
    c = np.array([-np.inf, 1, 0, 1, -np.inf, -0.0, -1e308, 0])
    got = run_fma(a, b, c)
    assert np.isnan(got[[0, 1, 3]]).all()
    assert got[2] == 0
    assert not np.signbit(got[2])
    assert got[4] == -np.inf
    assert np.signbit(got[5])
    assert got[6] == np.inf
    assert got[7] == 0


@pytest.mark.parametrize("t", [I8, I16, I32, I64], ids=repr)
def test_integers_wrap(t: VType) -> None:
    dtype = np.dtype(f"i{t.size}")
    low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
    x = np.array([low, high, -1, 7, 0], dtype)
    y = np.array([-1, 1, 3, 2, 5], dtype)
    kinds = ["add", "sub", "mul", "and", "or", "xor", "shl", "ashr", "lshr", "udiv", "urem"]
    shift = np.array([0, 1, 2, 3, 4], dtype)
    shifts = ("shl", "ashr", "lshr")
    out = apply(lambda b, p, q, s: [b.binary(k, p, s if k in shifts else q) for k in kinds], x, y, shift)
    mask = (1 << t.bits) - 1

    def signed(v: int) -> int:
        v &= mask
        return v - (1 << t.bits) if v >> (t.bits - 1) else v

    meaning: dict[str, Callable[[int, int, int], int]] = {
        "add": lambda p, q, s: p + q, "sub": lambda p, q, s: p - q, "mul": lambda p, q, s: p * q,
        "and": lambda p, q, s: p & q, "or": lambda p, q, s: p | q, "xor": lambda p, q, s: p ^ q,
        "shl": lambda p, q, s: p << s, "ashr": lambda p, q, s: p >> s, "lshr": lambda p, q, s: (p & mask) >> s,
        "udiv": lambda p, q, s: (p & mask) // (q & mask), "urem": lambda p, q, s: (p & mask) % (q & mask),
    }  # fmt: skip
    for kind, got in zip(kinds, out):
        want = [signed(meaning[kind](*map(int, v))) for v in zip(x, y, shift)]
        assert got.tolist() == want, kind


def test_signed_division_truncates() -> None:
    x, y = np.array([7, -7, 7, -7, 0]), np.array([2, 2, -2, -2, 3])
    quotient, rest = apply(lambda b, p, q: (b.binary("sdiv", p, q), b.binary("srem", p, q)), x, y)
    assert quotient.tolist() == [3, -3, -3, 3, 0]
    assert rest.tolist() == [1, -1, 1, -1, 0]


@pytest.mark.parametrize(("x", "y"), [(1, 0), (-(2**63), -1)])
def test_what_traps_is_an_error(x: int, y: int) -> None:
    with pytest.raises(Error, match="division"):
        apply(lambda b, p, q: [b.binary("sdiv", p, q)], np.array([x, 1]), np.array([y, 1]))


def test_bit_counts() -> None:
    x = np.array([0, 1, -1, 0x00F0, -(2**31), 12], np.int32)
    kinds = ("ctpop", "ctlz", "cttz", "bswap")
    ones, leading, trailing, swapped = apply(lambda b, p: [b.unary(k, p) for k in kinds], x)
    assert ones.tolist() == [0, 1, 32, 4, 1, 2]
    assert leading.tolist() == [32, 31, 0, 24, 0, 28]
    assert trailing.tolist() == [32, 0, 0, 4, 31, 2]
    assert swapped.tolist() == [0, 1 << 24, -1, -(1 << 28), 128, 12 << 24]


def test_comparisons() -> None:
    x, y = np.array([1.0, np.nan, 2.0, -0.0]), np.array([2.0, 1.0, 2.0, 0.0])
    names = ["oeq", "une", "olt", "ole", "ogt", "oge", "uno", "ord"]
    got = apply(lambda b, p, q: [b.cmp(n, p, q) for n in names], x, y)
    assert [g.tolist() for g in got] == [
        [False, False, True, True], [True, True, False, False], [True, False, False, False], [True, False, True, True],
        [False, False, False, False], [False, False, True, True], [False, True, False, False],
        [True, False, True, True],
    ]  # fmt: skip
    i, j = np.array([-1, 1], np.int8), np.array([1, -1], np.int8)
    slt, ult = apply(lambda b, p, q: [b.cmp("slt", p, q), b.cmp("ult", p, q)], i, j)
    assert slt.tolist() == [True, False]
    assert ult.tolist() == [False, True]


def test_conversions() -> None:
    x = np.array([-1, 200, 3], np.int16)

    def build(b: Builder, p: Node) -> list[Node]:
        bit = b.cmp("slt", p, 0)
        return [b.convert("sext", p, "i64"), b.convert("zext", p, "i32"), b.convert("itrunc", p, "i8"),
                b.convert("sitofp", p, "f32"), b.convert("uitofp", p, "f64"), b.convert("zext", bit, "i8"),
                b.convert("sext", bit, "i32"), b.convert("itrunc", p, "i1")]  # fmt: skip

    got = [g.tolist() for g in apply(build, x)]
    assert got == [[-1, 200, 3], [65535, 200, 3], [-1, -56, 3], [-1.0, 200.0, 3.0], [65535.0, 200.0, 3.0], [1, 0, 0],
                   [-1, 0, 0], [True, False, True]]  # fmt: skip
    y = np.array([1.5, -2.5, 3e9])

    def from_floats(b: Builder, p: Node) -> list[Node]:
        return [b.convert("fptosi", p, "i64"), b.convert("fptoui", b.fabs(p), "i32"), b.convert("fptrunc", p, "f32"),
                b.bitcast(p, "i64")]  # fmt: skip

    whole, unsigned, narrow, bits = apply(from_floats, y)
    assert whole.tolist() == [1, -2, 3_000_000_000]
    assert unsigned.view(np.uint32).tolist() == [1, 2, 3_000_000_000]
    assert narrow.dtype == np.float32
    assert bits.tolist() == y.view(np.int64).tolist()


def test_lanes() -> None:
    v = VType("i32", 4)

    def build(b: Builder, out: Node) -> None:
        i = b.iota(v)
        mixed = b.shuffle(i, b.splat(b.const(9, I32), 4), (3, 4, 0, 1))
        b.store(out, b.insert(mixed, b.add(b.lane(i, 2), 40), 3))

    out = np.zeros(4, np.int32)
    run(function([("out", PTR)], build), out)
    assert out.tolist() == [3, 9, 0, 42]


def test_masked_memory_gather_and_scatter() -> None:
    data, out = np.arange(10, dtype=np.float32), np.zeros(8, np.float32)

    def build(b: Builder, src: Node, dst: Node) -> None:
        f4 = VType("f32", 4)
        mask = b.cmp("slt", b.iota(VType("i32", 4)), 3)
        b.store(dst, b.load(b.gep(src, 28), f4, mask=mask))  # the fourth lane would be out of bounds
        offsets = b.mul(b.iota(VType("i64", 4)), 8)
        b.scatter(b.gep(dst, 4), b.sub(b.const(12, offsets.type), b.mul(b.iota(offsets.type), 4)),
                  b.gather(src, offsets, f4), mask=mask)  # fmt: skip

    run(function([("src", PTR), ("dst", PTR)], build), data, out)
    assert out.tolist() == [7, 8, 4, 2, 0, 0, 0, 0]


def test_loops_and_branches() -> None:
    def build(b: Builder, n: Node) -> Node:
        def turn(i: Node, total: Node) -> list[Node]:
            odd = b.cmp("eq", b.and_(i, 1), 1)
            return [b.add(total, b.if_(odd, lambda: [i], lambda: [b.i64(0)])[0])]

        (total,) = b.for_(0, n, 1, turn, [b.i64(0)])
        (halved,) = b.while_([total], lambda x: b.cmp("sgt", x, 10), lambda x: [b.lshr(x, 1)])
        return halved

    func = function([("n", I64)], build, I64)
    assert int(run(func, 10)) == 6  # 25 -> 12 -> 6
    assert int(run(func, 0)) == 0
    assert int(run(func, -5)) == 0


def test_calls_and_tables_of_pointers() -> None:
    inner = function([("p", PTR), ("x", F64)], lambda b, p, x: b.fadd(b.load(p, F64), x), F64)
    inner.name = "inner"

    def build(b: Builder, bufs: Node) -> None:
        first, second = b.load(bufs, PTR), b.load(b.gep(bufs, 8), PTR)
        y = b.call("inner", [first, b.const(2.0, F64)], F64)
        z = b.callptr(b.funcptr("twice"), [y], F64)
        b.store(second, z)

    x, out = np.array([40.0]), np.zeros(1)
    run(function([("bufs", PTR)], build), [x, out], funcs=[inner], externals={"twice": lambda v: v * 2})
    assert out[0] == 84


def test_stack_memory_copies_and_counters() -> None:
    def build(b: Builder, p: Node) -> Node:
        a = b.alloca(16)
        b.memset(a, 1, 16)
        b.memcpy(p, a, 8)
        old = b.effect("atomic_add", (b.gep(p, 8), b.i64(5)), I64)
        b.prefetch(p)
        b.fence()
        return old

    x = np.array([0, 7])
    assert int(run(function([("p", PTR)], build, I64), x)) == 7
    assert x.tolist() == [0x0101010101010101, 12]


def test_bounds_are_checked() -> None:
    load = function([("p", PTR)], lambda b, p: b.load(b.gep(p, 8), I64), I64)
    with pytest.raises(Error, match="outside of every buffer"):
        run(load, np.zeros(1, np.int64))
    with pytest.raises(Error, match="C-contiguous"):
        run(load, np.zeros((4, 4))[:, 1])
    with pytest.raises(Error, match="not known"):
        run(function([("x", F32)], lambda b, x: b.call("nobody", [x], F32), F32), 1.0)


def test_a_mask_selects() -> None:
    x = np.array([1.0, -1.0, np.nan])
    (got,) = apply(lambda b, p: [b.select(b.cmp("ogt", p, 0.0), p, b.const(7.0, p.type))], x)
    assert got.tolist() == [1, 7, 7]
    (kept,) = apply(lambda b, p: [b.not_(b.cmp("ogt", p, 0.0))], x)
    assert kept.tolist() == [False, True, True]
    assert kept.dtype == np.bool_
    assert repr(I1) == "i1"
