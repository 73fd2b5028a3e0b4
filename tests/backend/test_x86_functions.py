"""hilo's own generator for x86-64: whole functions, held to LLVM's code and to the tests that all backends pass."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from test_effects import check_flow, flow_functions
from test_nodes import CASES, function, run_cases
from x86_agree import HERE, HOST, agree
from x86_random import Writer, buffers, helper

from hilo.backend import cpu, jit, llvm, x86
from hilo.backend.target import Target
from hilo.loop.builder import F32, F64, I32, I64, PTR, Builder, Func, Node, VType

pytestmark = pytest.mark.skipif(not HERE, reason="the generator makes code for AVX-512 alone")
V = VType("f32", 16)
# What goes to LLVM.
NOT_DONE = {"cttz", "dot4", "dot2", "sdot4", "udot4", "dot"}


def compiled(funcs: Sequence[Func]) -> Callable[[str], Any]:
    for f in funcs:
        assert x86.covers(f, HOST), f.name
    names = {f.name: len(f.params) for f in funcs if not f.attrs.get("private")}
    code = jit.load([x86.compile(funcs, HOST)], list(names))
    return lambda name: code.function(name, *[ctypes.c_void_p] * names[name])


def make(build: Callable[..., None], *params: tuple[str, VType], ret: VType | None = None) -> Func:
    f = Func(build.__name__, list(params)) if ret is None else Func(build.__name__, list(params), ret)
    build(Builder(f), *f.params)
    return f


@pytest.mark.parametrize("lanes", [1, 4, 8, 16])
def test_every_value_node(lanes: int) -> None:
    made = {c.name: function(c, lanes) for c in CASES}
    left = {name for name, f in made.items() if not x86.covers(f, HOST)}
    assert {name.split("_")[0] for name in left} <= NOT_DONE, left
    assert run_cases(compiled([f for name, f in made.items() if name not in left]), lanes, left) == []


def test_control_flow_and_calls() -> None:
    check_flow(compiled(flow_functions()))


@pytest.mark.parametrize("first", range(0, 60, 10))
def test_random_functions(first: int) -> None:
    for seed in range(first, first + 10):
        size, types = (40, 99) if seed % 2 else (120, 2)
        h = helper(seed)
        f = Writer(seed, size, types, h).func
        agree([h, f], *buffers(seed), seed % 21, name=f.name)


@pytest.mark.parametrize("t", [VType("f32", 16), VType("i64", 8), I64, F64], ids=str)
def test_more_values_than_registers(t: VType) -> None:
    """All of many loaded values are alive at once, inside of a loop that carries as many again."""
    count = 40

    def pressure(b: Builder, x: Node, y: Node) -> None:
        size = t.size * t.lanes
        add, mul = ("fadd", "fmul") if t.is_float else ("add", "mul")
        first = [b.load(b.gep(x, size * i), t) for i in range(count)]

        def body(i: Node, *carried: Node) -> list[Node]:
            return [b.binary(add, b.binary(mul, c, a), first[-1 - k])
                    for k, (c, a) in enumerate(zip(carried, (*first[1:], first[0]), strict=True))]  # fmt: skip

        for k, r in enumerate(b.for_(0, 5, 1, body, first)):
            b.store(b.gep(y, size * k), b.binary(add, r, first[k]))

    f = make(pressure, ("x", PTR), ("y", PTR))
    dtype = {"f32": np.float32, "f64": np.float64, "i64": np.int64}[t.scalar]
    values = np.random.default_rng(0).integers(-3, 4, count * 8).astype(dtype)
    agree(f, np.resize(values, count * t.lanes), np.zeros(count * t.lanes, values.dtype))


def test_more_masks_than_registers() -> None:
    def masks(b: Builder, x: Node, y: Node) -> None:
        v = b.load(x, V)
        bits = [b.cmp("olt", b.load(b.gep(x, 64 * i), V), v) for i in range(1, 13)]
        for i, m in enumerate(bits):
            b.store(b.gep(y, 64 * i), b.select(b.xor(m, bits[-1 - i]), v, b.const(float(i), V)))

    agree(make(masks, ("x", PTR), ("y", PTR)), np.random.default_rng(1).standard_normal(16 * 13).astype(np.float32),
          np.zeros(16 * 12, np.float32))  # fmt: skip


def test_values_live_across_calls() -> None:
    def callee(b: Builder, *p: Node) -> None:
        total = p[0]
        for v in p[1:]:
            total = b.add(total, b.convert("fptosi", v, "i64") if v.type.is_float else v)
        b.ret(total)

    def caller(b: Builder, x: Node, y: Node) -> None:
        b.store(b.gep(b.alloca(64), 8), b.load(x, I64))  # and the frame is aligned
        vectors = [b.load(b.gep(x, 64 * i), V) for i in range(4)]
        mask = b.cmp("olt", vectors[0], vectors[1])
        number, real = b.load(b.gep(x, 256), I64), b.load(b.gep(x, 264), F64)

        def body(i: Node, total: Node) -> tuple[Node]:
            args = [b.add(number, b.mul(i, k)) for k in range(9)]
            args[3:3] = [b.fadd(real, b.const(float(k), F64)) for k in range(10)]
            return (b.add(total, b.call("callee", args, I64)),)

        (total,) = b.for_(0, 7, 1, body, (number,))
        b.store(y, b.select(mask, vectors[2], vectors[3]))
        b.store(b.gep(y, 64), total)
        b.store(b.gep(y, 72), real)

    params = [("a", I64)] * 3 + [("f", F64)] * 10 + [("a", I64)] * 6
    first = make(callee, *params, ret=I64)
    x = np.zeros(80, np.float32)
    x[:64] = np.random.default_rng(2).standard_normal(64)
    x[64:68].view(np.int64)[:] = 1234567, 0
    x[66:68].view(np.float64)[:] = 3.75
    agree([first, make(caller, ("x", PTR), ("y", PTR))], x, np.zeros(32, np.float32))


def test_carried_values_change_places() -> None:
    def circles(b: Builder, y: Node, n: Node) -> None:
        numbers = b.for_(0, n, 1, lambda i, p, q, r, s: (q, r, p, b.add(s, q)), [b.i64(k) for k in (1, 20, 300, 0)])
        reals = b.for_(0, n, 1, lambda i, p, q: (q, p), [b.const(1.0, V), b.const(2.0, V)], unroll=3)
        for k, v in enumerate(numbers):
            b.store(b.gep(y, 8 * k), v)
        for k, v in enumerate(reals):
            b.store(b.gep(y, 64 + 64 * k), v)

    f = make(circles, ("y", PTR), ("n", I64))
    for n in range(8):
        agree(f, np.zeros(192, np.uint8), n)


@pytest.mark.parametrize("unroll", [1, 2, 3, 5])
def test_turns_of_unrolled_loops(unroll: int) -> None:
    def turns(b: Builder, y: Node, n: Node, step: Node) -> None:
        for k, (lo, by) in enumerate(((b.i64(0), b.i64(2)), (n, b.i64(3)), (b.i64(-5), step))):
            count, last, total = b.for_(lo, 23, by, lambda i, c, p, s: (b.add(c, 1), i, b.add(s, b.mul(c, p))),
                                        [b.i64(0)] * 3, unroll=unroll)  # fmt: skip
            for j, v in enumerate((count, last, total)):
                b.store(b.gep(y, 24 * k + 8 * j), v)

    f = make(turns, ("y", PTR), ("n", I64), ("step", I64))
    for n in (-4, 0, 16, 20, 22, 23, 40):
        agree(f, np.zeros(9, np.int64), n, 4)


def test_early_end_of_a_function() -> None:
    def early(b: Builder, y: Node, n: Node) -> None:
        b.store(y, b.i64(1))
        b.if_(b.cmp("sgt", n, 3), lambda: b.ret(b.const(7, I32)), rare=True)
        b.store(y, b.i64(2))
        b.ret(b.const(0, I32))

    f = make(early, ("y", PTR), ("n", I64), ret=I32)
    for n in (3, 4):
        assert agree(f, np.zeros(1, np.int64), n)[0][0] == (1 if n > 3 else 2)


def test_deep_nests() -> None:
    """Code is selected without recursion: nests may be as deep as programs want."""

    def deep(b: Builder, y: Node, n: Node) -> None:
        def nest(depth: int, v: Node) -> Node:
            if not depth:
                return b.add(v, 1)
            return b.if_(b.cmp("sgt", b.add(n, v), -depth), lambda: (nest(depth - 1, v),), lambda: (v,))[0]

        b.store(y, nest(60, n))

    agree(make(deep, ("y", PTR), ("n", I64)), np.zeros(1, np.int64), 5)


def test_memory_on_the_stack_is_aligned() -> None:
    def stack(b: Builder, x: Node, y: Node) -> None:
        places = [b.alloca(s, a) for s, a in ((4, 4), (64, 64), (8, 8), (100, 64))]
        for p in places:
            b.store(p, b.load(x, F32))
        for k, p in enumerate(places):
            b.store(b.gep(y, 8 * k), b.and_(b.convert("ptrtoint", p, "i64"), 63 if k % 2 else 3))
        b.memcpy(b.gep(places[3], 4), x, 64)
        b.store(b.gep(y, 64), b.load(b.gep(places[3], 4), V))

    agree(make(stack, ("x", PTR), ("y", PTR)), np.arange(16, dtype=np.float32), np.zeros(128, np.uint8))


@pytest.mark.parametrize("bits", [8, 16, 32, 64])
def test_unsigned_division_by_numbers(bits: int) -> None:
    t, funcs, most = VType(f"i{bits}"), [], (1 << bits) - 1
    numbers = [1, 2, 3, 5, 7, 10, 11, 28, 48, 64, 127, 255, 1003, 2052, 65537, (1 << 31) - 1, 1 << 31, (1 << 32) - 1,
               (1 << 32) + 1, (1 << 62) + 1, (1 << 63) - 1, 1 << 63, (1 << 63) + 1, (1 << 64) - 1]  # fmt: skip
    numbers = [d for d in numbers if d <= most]
    for d in numbers:
        f = Func(f"by{d}", [("x", PTR), ("y", PTR)])
        b = Builder(f)

        def body(i: Node, b: Builder = b, f: Func = f, d: int = d) -> None:
            v = b.load(b.gep(f.params[0], b.mul(i, t.size)), t)
            for k, kind in enumerate(("udiv", "urem")):
                at = b.add(b.mul(i, 2 * t.size), k * t.size)
                b.store(b.gep(f.params[1], at), b.pure(kind, (v, b.const(d, t)), t))

        b.for_(0, 40, 1, body)
        funcs.append(f)
    get = compiled(funcs)
    rng = np.random.default_rng(bits)
    for d in numbers:
        edges = [0, 1, d - 1, d, d + 1, 2 * d - 1, most, most - 1, most // d * d, most // d * d - 1, most // 2]
        x = [e & most for e in edges]
        x += [int(rng.integers(0, 1 << 63)) >> int(rng.integers(0, 63)) & most for _ in range(40 - len(x))]
        given, out = np.array(x, f"u{bits // 8}"), np.zeros(80, f"u{bits // 8}")
        get(f"by{d}")(given.ctypes.data, out.ctypes.data)
        assert out.tolist() == [v for n in x for v in (n // d, n % d)], d


@pytest.mark.parametrize("t", [I32, I64, V.with_scalar("i32"), VType("i64", 16)], ids=str)
def test_rotations(t: VType) -> None:
    def rotations(b: Builder, x: Node, y: Node) -> None:
        v = b.load(x, t)
        for k, by in enumerate((1, 13, t.bits - 1)):
            right = b.lshr(v, t.bits - by)
            r = b.or_(b.shl(v, by), right) if k % 2 else b.or_(right, b.shl(v, by))
            b.store(b.gep(y, 2 * k * t.size * t.lanes), r)
            b.store(b.gep(y, (2 * k + 1) * t.size * t.lanes), b.add(right, b.or_(b.shl(v, by), b.lshr(v, by))))

    x = np.random.default_rng(0).integers(-(1 << 62), 1 << 62, 16)
    agree(make(rotations, ("x", PTR), ("y", PTR)), x, np.zeros(6 * 16, np.int64))


def test_copies_and_fills_of_any_size() -> None:
    def copies(b: Builder, x: Node, y: Node) -> None:
        at = 0
        for size in (*range(36), 47, 63, 64, 65, 100, 127, 128, 200, 511, 512, 513, 1023, 1024, 1025, 1500):
            b.memcpy(b.gep(y, at), b.gep(x, 3), size)
            b.memset(b.gep(y, at + size + 1), (0, 255, 7, -128)[size % 4], size)
            at += 2 * size + 3
        b.memcpy(b.gep(y, at), x, b.load(x, I64))

    x = np.random.default_rng(3).integers(0, 256, 2000).astype(np.uint8)
    x[:8].view(np.int64)[:] = 77
    agree(make(copies, ("x", PTR), ("y", PTR)), x, np.zeros(20000, np.uint8))


@pytest.mark.parametrize("t", [VType("i8"), VType("i16"), I32, I64], ids=str)
def test_numbers_changed_in_memory(t: VType) -> None:
    def changes(b: Builder, y: Node, n: Node) -> None:
        other = b.load(y, t)
        for k, kind in enumerate(("add", "sub", "and", "or", "xor", "add", "mul")):
            at = b.gep(y, b.mul(b.add(n, k), t.size))
            by = b.const(k * 37 - 90, t) if k % 2 else other
            b.store(at, b.binary(kind, b.load(at, t), by))
        at = b.gep(y, 20 * t.size)
        v = b.load(at, t)  # what is loaded before another store is not read behind it
        b.store(b.gep(y, b.mul(b.add(n, 19), t.size)), other)
        b.store(at, b.add(v, 1))

    given = np.random.default_rng(4).integers(-100, 100, 32).astype(f"i{t.size}")
    agree(make(changes, ("y", PTR), ("n", I64)), given, 1)


def test_a_compare_that_several_selections_ask_for() -> None:
    def repeated(b: Builder, y: Node, n: Node) -> None:
        less = b.cmp("slt", n, 5)
        values = [b.select(less, b.add(n, k), b.mul(n, k)) for k in range(4)]
        values += b.for_(0, n, 1, lambda i, s: (b.select(b.cmp("sgt", i, s), b.add(s, i), b.sub(s, 1)),), (n,),
                         unroll=2)  # fmt: skip
        for k, v in enumerate(values):
            b.store(b.gep(y, 8 * k), v)

    f = make(repeated, ("y", PTR), ("n", I64))
    for n in range(9):
        agree(f, np.zeros(5, np.int64), n)


@pytest.mark.parametrize("aligned", [False, True])
def test_many_parameters(aligned: bool) -> None:
    """More than there are registers, all of them alive to the end."""

    def many(b: Builder, *p: Node) -> None:
        if aligned:
            b.store(b.alloca(64), p[0])
        (total,) = b.for_(0, p[0], 1, lambda i, s: (b.add(b.mul(s, 3), p[-1]),), (p[1],))
        for v in p:
            total = b.add(b.mul(total, 7), v)
        b.ret(total)

    def calls(b: Builder, y: Node, n: Node) -> None:
        b.store(y, b.call("many", [b.add(n, k * k) for k in range(40)], I64))

    first = make(many, *[(f"p{k}", I64) for k in range(40)], ret=I64)
    agree([first, make(calls, ("y", PTR), ("n", I64))], np.zeros(1, np.int64), 5)


def test_vectors_selected_by_one_compare_of_numbers() -> None:
    def chosen(b: Builder, x: Node, y: Node, n: Node) -> None:
        v, w = b.load(x, V.with_scalar("i32")), b.load(b.gep(x, 64), V.with_scalar("i32"))
        small = b.cmp("slt", n, 3)
        b.store(y, b.select(small, v, b.sub(v, w)))
        b.store(b.gep(y, 64), b.select(small, b.mul(v, w), w))
        b.store(b.gep(y, 128), b.select(small, n, b.mul(n, 5)))

    f = make(chosen, ("x", PTR), ("y", PTR), ("n", I64))
    for n in (2, 3):
        agree(f, np.arange(32, dtype=np.int32), np.zeros(40, np.int32), n)


@pytest.mark.parametrize("t", [I32, I64], ids=str)
def test_low_parts(t: VType) -> None:
    def low(b: Builder, x: Node, y: Node) -> None:
        v = b.load(x, t)
        for k, mask in enumerate((0xFF, 0xFFFF, 0xFFFFFFFF, 0x7F, 0x1FF)):
            b.store(b.gep(y, 16 * k), b.and_(v, mask))
            b.store(b.gep(y, 16 * k + 8), b.and_(b.lshr(v, 7), mask))

    agree(make(low, ("x", PTR), ("y", PTR)), np.array([-0x0123456789ABCDEF]), np.zeros(10, np.int64))


def test_memory_repeated_in_a_register() -> None:
    def repeated(b: Builder, x: Node, y: Node) -> None:
        at = 0
        for t in (VType("f32", 2), VType("f64", 1), VType("i32", 4), VType("f32", 8), VType("i16", 4)):
            for size in (16, 32, 64):
                n = size // t.size
                if n <= t.lanes:
                    continue
                v = b.load(b.gep(x, 4), t, align=1)
                w = b.load(b.gep(x, 40), t, align=1)
                for given in ((v, v), (w, v)):
                    if t.lanes > 1:
                        r = b.shuffle(*given, [k % t.lanes for k in range(n)])
                        b.store(b.gep(y, at), b.fadd(r, r) if t.is_float else b.add(r, r))
                    at += size

    agree(make(repeated, ("x", PTR), ("y", PTR)), np.random.default_rng(6).integers(0, 9, 64), np.zeros(512, np.int64))


def test_values_are_handed_over_as_by_llvm() -> None:
    """Half of the code made by LLVM: callers and callees understand each other."""
    wide = VType("f64", 16)

    def callee(b: Builder, x: Node, i: Node, y: Node, z: Node) -> None:
        b.ret(b.fadd(b.fmul(x, y), b.splat(b.fadd(z, b.convert("sitofp", i, "f64")), 16)))

    def caller(b: Builder, x: Node, y: Node) -> None:
        values = [b.load(b.gep(x, 128 * i), wide) for i in range(2)]
        b.store(y, b.call("callee", [values[0], b.load(x, I64), values[1], b.load(x, F64)], wide))

    funcs = [make(callee, ("x", wide), ("i", I64), ("y", wide), ("z", F64), ret=wide),
             make(caller, ("x", PTR), ("y", PTR))]  # fmt: skip
    assert all(x86.covers(f, HOST) for f in funcs)
    x = np.random.default_rng(5).standard_normal(32)
    results = []
    for first in (x86.compile, by_llvm):
        for second in (x86.compile, by_llvm):
            code = jit.load([first(funcs[:1], HOST), second(funcs[1:], HOST)], ["caller"])
            y = np.zeros(16)
            code.function("caller", ctypes.c_void_p, ctypes.c_void_p)(x.ctypes.data, y.ctypes.data)
            results.append(y.tobytes())
    assert len(set(results)) == 1


def by_llvm(funcs: Sequence[Func], target: Target) -> bytes:
    return cpu.compile(llvm.emit(funcs, target), target)
