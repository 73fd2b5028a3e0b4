"""Nodes that become one instruction together, by hilo's own generator: the bits of LLVM's code, NaNs' too."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from support import same_bits
from test_x86_moves import NP, made, random
from x86_agree import HERE, HOST, agree, function
from x86_vector_random import Writer

from hilo.backend import cpu, llvm, x86
from hilo.loop.builder import I64, Builder, Func, Node, VType

pytestmark = pytest.mark.skipif(not HERE, reason="the machine has no AVX-512")

LANES = (2, 4, 8, 16, 32)


def edges(scalar: str, n: int, seed: int) -> np.ndarray:
    """Random values, and ones that hurt."""
    out = random(scalar, n, seed)
    if scalar[0] == "f":
        hurting = np.array([0.0, -0.0, np.nan, -np.nan, np.inf, -np.inf, 1e-45, 1.0], out.dtype)
    elif scalar == "i1":
        return out
    else:
        info = np.iinfo(out.dtype)
        hurting = np.array([0, 1, -1, info.min, info.max, 2, -2, 3], out.dtype)
    rng = np.random.default_rng(seed)
    at = rng.permutation(n)[: (n + 1) // 2]
    out[at] = rng.choice(hurting, at.size)
    return out


class Batch:
    """Functions that store build(x, y, ...) of vectors, and once more in a loop; made at once by both generators."""

    def __init__(self) -> None:
        self.cases: list[tuple[Func, VType, int, str]] = []

    def add(self, t: VType, inputs: int, build: Callable[..., Node], out: str | None = None) -> Func:
        def body(b: Builder, *pointers: Node) -> None:
            *sources, to = pointers
            y = build(b, *[b.load(p, t) for p in sources])
            b.store(to, y)

            def turn(i: Node) -> None:
                parts = [b.load(b.gep(p, b.mul(i, t.lanes * t.size)), t) for p in sources]
                b.store(b.gep(to, b.mul(i, t.lanes * y.type.size)), build(b, *parts))

            b.for_(1, 3, 1, turn)

        f = made(f"f{len(self.cases)}_{t!r}", inputs + 1, body)
        self.cases.append((f, t, inputs, out or t.scalar))
        return f

    def check(self) -> None:
        """Equal bits; of NaNs any is as good as another, as operands may change places."""
        funcs = [f for f, *_ in self.cases]
        assert all(x86.covers(f, HOST) for f in funcs)
        objects = x86.compile(funcs, HOST), cpu.compile(llvm.emit(funcs, HOST), HOST)
        for f, t, inputs, out in self.cases:
            calls = [function(funcs, data, f.name) for data in objects]
            for seed in range(3):
                arrays = [edges(t.scalar, 3 * t.lanes, 10 * seed + i) for i in range(inputs)]
                got, want = (np.zeros(3 * t.lanes, NP[out]) for _ in calls)
                for call, result in zip(calls, (got, want), strict=True):
                    call(*arrays, result)
                same_bits(got, want, *arrays, what=f.name)


def chosen(pred: str, what: Callable[[Builder, Node, Node], Node], other: int) -> Callable[..., Node]:
    """build(x, y, z): `what` of x and y where x is `pred` z, z elsewhere; or, by `other`, x, or 0."""

    def build(b: Builder, x: Node, y: Node, z: Node) -> Node:
        return b.select(b.cmp(pred, x, z), what(b, x, y), (z, x, 0)[other])

    return build


@pytest.mark.parametrize("scalar", ["f32", "f64"])
def test_negated_factors_and_terms_are_part_of_the_product(scalar: str) -> None:
    batch = Batch()
    signs: list[tuple[int, int, int]] = [(i, j, k) for i in (0, 1) for j in (0, 1) for k in (0, 1)]
    for lanes in (1, *LANES):
        for sign in signs:

            def build(b: Builder, *xs: Node, sign: tuple[int, int, int] = sign) -> Node:
                x, y, z = (b.fneg(v) if negative else v for v, negative in zip(xs, sign, strict=True))
                return b.fma(b.fma(x, y, z), y, b.fma(z, y, x))

            f = batch.add(VType(scalar, lanes), 3, build)
            assert "vpxor" not in x86.listing([f], HOST)
    batch.check()


def test_negations_that_others_use_too_stay() -> None:
    batch = Batch()

    def build(b: Builder, x: Node, y: Node) -> Node:
        n = b.fneg(x)
        return b.fadd(b.fma(n, y, x), n)

    batch.add(VType("f32", 16), 2, build)
    batch.check()


@pytest.mark.parametrize("kind", ["fadd", "fsub", "fmul", "fdiv", "add", "sub", "mul", "and", "or", "xor"])
def test_what_a_selection_alone_wants_is_computed_by_its_mask(kind: str) -> None:
    batch = Batch()
    def what(b: Builder, x: Node, y: Node) -> Node:
        return b.binary(kind, x, y)

    for scalar in ("f32", "f64") if kind[0] == "f" else ("i8", "i16", "i32", "i64"):
        for other in range(3):
            build = chosen("olt" if scalar[0] == "f" else "slt", what, other)

            def twice(b: Builder, x: Node, y: Node, z: Node, build: Callable[..., Node] = build) -> Node:
                return b.binary(kind, z, build(b, x, y, z))

            for lanes in LANES:
                batch.add(VType(scalar, lanes), 3, build)
                batch.add(VType(scalar, lanes), 3, twice)
    batch.check()


@pytest.mark.parametrize("scalar", ["i8", "i16", "i32", "i64", "f32", "f64"])
def test_the_smaller_and_the_larger(scalar: str) -> None:
    batch = Batch()
    preds = ("slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge")
    for pred in ("olt", "ole", "ogt", "oge") if scalar[0] == "f" else preds:

        def first(b: Builder, x: Node, y: Node, pred: str = pred) -> Node:
            return b.select(b.cmp(pred, x, y), x, y)

        def second(b: Builder, x: Node, y: Node, pred: str = pred) -> Node:
            return b.select(b.cmp(pred, x, y), y, x)

        def bounded(b: Builder, x: Node, y: Node, pred: str = pred) -> Node:
            three = b.splat(b.const(3, x.type.with_lanes(1)), x.type.lanes)
            return b.select(b.cmp(pred, x, three), three, b.select(b.cmp(pred, three, y), three, y))

        for lanes in (1, *LANES):
            for build in (first, second, bounded):
                batch.add(VType(scalar, lanes), 2, build)
    batch.check()


def test_masks_are_made_of_compares() -> None:
    batch = Batch()
    for scalar, preds in (("f32", ("olt", "oeq", "uno", "oge")), ("i32", ("slt", "eq", "ult", "sge")),
                          ("f64", ("ole", "une", "ord", "ogt"))):  # fmt: skip
        for lanes in LANES:
            t = VType(scalar, lanes)

            def build(b: Builder, x: Node, y: Node, preds: tuple[str, ...] = preds) -> Node:
                p, q, r, s = (b.cmp(pred, x, y) for pred in preds)
                return b.or_(b.and_(p, b.not_(q)), b.and_(b.and_(r, b.cmp(preds[0], y, x)), b.not_(b.xor(s, p))))

            batch.add(t, 2, build, "i1")

            def chosen_by(b: Builder, x: Node, y: Node, preds: tuple[str, ...] = preds) -> Node:
                return b.select(b.and_(b.cmp(preds[1], x, y), b.not_(b.cmp(preds[3], x, y))), x, y)

            batch.add(t, 2, chosen_by)
    batch.check()


def test_selections_of_masks_and_by_one_bit() -> None:
    for lanes in (*LANES, 64):
        for scalar in NP:
            t = VType(scalar, lanes)

            def body(b: Builder, x: Node, y: Node, bit: Node, z: Node, t: VType = t) -> None:
                one, v, w = b.load(bit, VType("i1")), b.load(x, t), b.load(y, t)
                b.store(z, b.pure("select", (one, v, w), t))
                b.store(b.gep(z, t.lanes * t.size), b.pure("select", (b.splat(one, t.lanes), w, v), t))
                flag = b.cmp("slt", b.load(b.gep(bit, 8), I64), 3)
                b.store(b.gep(z, 2 * t.lanes * t.size), b.pure("select", (flag, w, v), t))

            for bit in (0, 1):
                agree(made(f"one_{t!r}", 4, body), edges(scalar, lanes, 1), edges(scalar, lanes, 2),
                      np.array([bit, 2 + bit], np.int64), np.zeros(3 * lanes, NP[scalar]))  # fmt: skip


def test_whether_any_lane_is_set() -> None:
    for lanes in (*LANES, 64):

        def body(b: Builder, m: Node, y: Node, lanes: int = lanes) -> None:
            mask = b.load(m, VType("i1", lanes))
            found = b.pure("any", (mask,), VType("i1"))
            b.store(y, found)
            odd = b.pure("any", (b.not_(b.or_(mask, b.cmp("slt", b.iota(VType("i64", lanes)), 1))),), VType("i1"))
            (z,) = b.if_(odd, lambda: (b.i64(5),), lambda: (b.i64(7),))
            b.store(b.gep(y, 8), z)

        f = made(f"any_{lanes}", 2, body)
        for bits in (np.zeros(lanes), np.ones(lanes), np.arange(lanes) == lanes - 1, np.arange(lanes) == 0):
            agree(f, bits.astype(np.bool_), np.zeros(2, np.int64))


@pytest.mark.parametrize("scalar", ["i8", "i16", "i32"])
def test_lower_halves_of_what_is_computed_in_64_bits(scalar: str) -> None:
    batch = Batch()
    for lanes in LANES:
        t = VType("i64", lanes)

        def first(b: Builder, x: Node, lanes: int = lanes) -> Node:
            at = b.add(b.iota(VType("i64", lanes)), b.splat(b.lane(x, 0), lanes))
            return b.convert("itrunc", b.mul(b.sub(at, 7), b.xor(b.or_(at, 5), 9)), scalar)

        def second(b: Builder, x: Node, y: Node) -> Node:
            small = b.convert("itrunc", y, "i16")
            return b.convert("itrunc", b.and_(b.add(b.convert("sext", small, "i64"), x), 0xFFFFF), scalar)

        def turned(b: Builder, x: Node, y: Node) -> Node:
            return b.convert("itrunc", b.add(b.or_(b.shl(x, 9), b.lshr(x, 55)), y), scalar)

        batch.add(t, 2, turned, scalar)
        batch.add(t, 1, first, scalar)
        batch.add(t, 2, second, scalar)
    batch.check()


def test_vectors_of_several_registers_are_carried() -> None:
    for scalar in ("f64", "i64"):
        for lanes in (8, 16, 32):
            t = VType(scalar, lanes)

            def body(b: Builder, x: Node, n: Node, y: Node, t: VType = t) -> None:
                add: Any = b.fadd if t.is_float else b.add

                def turn(i: Node, s: Node, last: Node, mask: Node) -> tuple[Node, ...]:
                    v = b.load(b.gep(x, b.mul(i, t.lanes * t.size)), t)
                    less = b.cmp("olt" if t.is_float else "slt", v, s)
                    return add(s, v), b.select(less, v, last), b.or_(mask, less)

                zero = b.splat(b.const(0, t.with_lanes(1)), t.lanes)
                none = b.splat(b.const(0, VType("i1")), t.lanes)
                total, last, mask = b.for_(0, b.load(n, I64), 1, turn, (zero, zero, none))
                b.store(y, total)
                b.store(b.gep(y, t.lanes * t.size), b.select(mask, last, total))

            for count in (0, 1, 5):
                agree(made(f"carried_{t!r}", 3, body), edges(scalar, 5 * lanes, count), np.array([count]),
                      np.zeros(2 * lanes, NP[scalar]))  # fmt: skip


@pytest.mark.parametrize("scalar", ["i8", "i16", "i32", "i64"])
def test_two_operations_of_logic_are_one_instruction(scalar: str) -> None:
    kinds = ("and", "or", "xor")
    batch = Batch()
    for lanes in (2, 8, 16, 64):
        t = VType(scalar, lanes)
        for inner in kinds:
            for outer in kinds:

                def three(b: Builder, x: Node, y: Node, z: Node, inner: str = inner, outer: str = outer) -> Node:
                    return b.binary(outer, b.binary(inner, x, y), z)

                def again(b: Builder, x: Node, y: Node, z: Node, inner: str = inner, outer: str = outer) -> Node:
                    u = b.binary(outer, z, b.binary(inner, y, x))
                    v = b.binary(inner, b.binary(outer, x, 77), b.binary(inner, b.xor(x, -1), u))
                    return b.add(b.binary(outer, b.binary(inner, v, x), b.binary(outer, u, v)), x)

                def of_two(b: Builder, x: Node, y: Node, inner: str = inner, outer: str = outer) -> Node:
                    return b.binary(outer, b.binary(inner, x, b.binary(outer, x, -1 if inner == "xor" else 5)), y)

                batch.add(t, 3, three)
                batch.add(t, 3, again)
                batch.add(t, 2, of_two)
        batch.add(t, 2, lambda b, x, y: b.and_(b.not_(x), y))
        batch.add(t, 2, lambda b, x, y: b.or_(b.not_(x), y))
    batch.check()


def test_shifts_of_all_lanes_by_the_same_number() -> None:
    batch = Batch()
    for scalar in ("i8", "i16", "i32", "i64"):
        for lanes in (2, 8, 32, 64):
            t = VType(scalar, lanes)
            for by in {0, 1, t.bits // 2, t.bits - 1}:
                for kind in ("shl", "lshr", "ashr"):

                    def build(b: Builder, x: Node, kind: str = kind, by: int = by) -> Node:
                        return b.binary(kind, b.add(x, 1), by)

                    batch.add(t, 1, build)
    batch.check()


def test_masks_of_vectors_of_several_registers() -> None:
    """In parts where only such vectors want them, whole where others do."""
    batch = Batch()
    for scalar, lanes in (("f64", 16), ("i64", 16), ("f64", 32), ("i64", 64), ("f32", 32), ("i32", 64), ("i16", 64)):
        t = VType(scalar, lanes)
        less, same = ("olt", "oeq") if t.is_float else ("slt", "eq")

        def parts(b: Builder, x: Node, y: Node, z: Node, less: str = less, same: str = same) -> Node:
            p, q = b.cmp(less, x, y), b.cmp(less, y, z)
            r = b.select(b.and_(p, b.not_(q)), x, b.select(b.or_(p, b.cmp(same, x, z)), y, z))
            return b.select(b.xor(q, b.cmp(less, r, x)), r, b.select(p, z, 0))

        def whole(b: Builder, x: Node, y: Node, z: Node, less: str = less) -> Node:
            p, q = b.cmp(less, x, y), b.cmp(less, y, z)
            one, two = (b.splat(b.const(v, VType("i32")), x.type.lanes) for v in (1, 2))
            small = b.select(p, one, two)
            wide = b.select(b.cmp("eq", small, 1), x, y)
            return b.select(b.and_(p, q), wide, z)

        batch.add(t, 3, parts)
        batch.add(t, 3, whole)
    batch.check()


@pytest.mark.parametrize("first", range(0, 90, 30))
def test_random_vectors(first: int) -> None:
    written = [Writer(seed) for seed in range(first, first + 30)]
    funcs = [w.func for w in written]
    assert all(x86.covers(f, HOST) for f in funcs)
    objects = x86.compile(funcs, HOST), cpu.compile(llvm.emit(funcs, HOST), HOST)
    rng = np.random.default_rng(first)
    reals, small = rng.standard_normal((2, 4096)).astype(np.float32), rng.integers(-5, 5, (2, 4096)).astype(np.int32)
    buffers = np.where(rng.random((2, 4096)) < 0.5, reals.view(np.int32), small)
    for w in written:
        outs = []
        for data in objects:
            x, y = buffers.copy()
            outs.append(np.zeros(w.size, np.uint8))
            function(funcs, data, w.func.name)(x, y, outs[-1])
        for at, t in w.stored:
            got, want = (o[at : at + t.lanes * t.size].view(NP[t.scalar]) for o in outs)
            same_bits(got, want, what=(w.func.name, at, t))


@pytest.mark.parametrize("lanes", [4, 8, 16, 32, 64])
def test_the_lanes_behind_the_first_ones(lanes: int) -> None:
    def body(b: Builder, n: Node, y: Node) -> None:
        first = b.cmp("slt", b.iota(VType("i64", lanes)), b.splat(b.load(n, I64), lanes))
        b.store(y, b.not_(first))
        known = b.cmp("slt", b.iota(VType("i64", lanes)), b.splat(b.i64(3), lanes))
        b.store(b.gep(y, lanes), b.not_(known))

    for n in (-300, 0, 1, lanes - 1, lanes, 128, 1 << 40):
        (_, y) = agree(made(f"behind_{lanes}", 2, body), np.array([n], np.int64), np.zeros(2 * lanes, np.bool_))
        assert y[:lanes].sum() == lanes - min(max(n, 0), lanes)
