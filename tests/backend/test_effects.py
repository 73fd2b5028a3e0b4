"""Memory, control flow and calls, on every target and in C."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from backend_runs import compile_c, compile_llvm, usable

from hilo.backend import cpu, llvm
from hilo.backend.llvm_text import number
from hilo.backend.target import Target
from hilo.loop.builder import F32, I32, I64, PTR, Builder, Func, Node, VType

LANES = (1, 4, 8, 16)


def make(name: str, params: list[str], build: Callable[..., Any], **attrs: Any) -> Func:
    f = Func(name, [(p, PTR) for p in params], **attrs)
    b = Builder(f)
    build(b, *f.params)
    return f


def masked(t: VType) -> Func:
    """out = x where the byte m is not 0, else keep; and zero[i] = masked load of x."""

    def build(b: Builder, x: Node, m: Node, out: Node, zero: Node) -> None:
        mask = b.load(m, VType("i1", t.lanes))
        v = b.load(x, t, mask=mask)
        b.store(out, v, mask=mask)
        b.store(zero, v)

    return make(f"masked_{t}", ["x", "m", "out", "zero"], build)


def indexed(t: VType, with_mask: bool) -> Func:
    """out[i[l]] = x[j[l]], byte offsets."""

    def build(b: Builder, x: Node, j: Node, i: Node, m: Node, out: Node) -> None:
        offsets = VType("i64", t.lanes)
        mask = b.load(m, VType("i1", t.lanes)) if with_mask else None
        v = b.gather(x, b.load(j, offsets), t, mask=mask)
        b.scatter(out, b.load(i, offsets), v, mask=mask)

    return make(f"indexed_{t}_{int(with_mask)}", ["x", "j", "i", "m", "out"], build)


def lanes_shuffled(n: int) -> Func:
    def build(b: Builder, x: Node, out: Node) -> None:
        t = VType("i32", n)
        v = b.load(x, t)
        w = b.insert(v, b.lane(v, n - 1), 0)
        r = b.shuffle(v, w, [2 * n - 1 - i if i % 2 else i for i in range(n)])
        r = b.add(b.add(r, b.splat(b.lane(v, 1), n)), b.iota(t))
        b.store(out, b.add(r, b.const(tuple(range(10, 10 + n)), t)))

    return make(f"shuffled_{n}", ["x", "out"], build)


SCALARS = ("i1", "i8", "i32", "i64", "f32", "f64")
NP = {"i1": np.bool_, "i8": np.int8, "i32": np.int32, "i64": np.int64, "f32": np.float32, "f64": np.float64}
MEMORY = [
    *(masked(VType(s, n)) for s in SCALARS for n in LANES),
    *(indexed(VType(s, n), m) for s in SCALARS for n in LANES for m in (False, True)),
]


def check_memory(get: Callable[[str], Any], lanes: int) -> None:
    rng = np.random.default_rng(1)
    for s in SCALARS:
        t = VType(s, lanes)
        x = rng.integers(0, 2 if s == "i1" else 100, lanes).astype(NP[s])
        m = rng.integers(0, 2, lanes).astype(np.bool_)
        out, zero = np.ones(lanes, NP[s]), np.ones(lanes, NP[s])
        get(f"masked_{t}")(x.ctypes.data, m.ctypes.data, out.ctypes.data, zero.ctypes.data)
        np.testing.assert_array_equal(out, np.where(m, x, np.ones(lanes, NP[s])))
        np.testing.assert_array_equal(zero, np.where(m, x, np.zeros(lanes, NP[s])))
        for with_mask in (0, 1):
            big = rng.integers(0, 2 if s == "i1" else 100, 64).astype(NP[s])
            j, i = (rng.permutation(64)[:lanes] for _ in range(2))
            out = np.ones(64, NP[s])
            expected = out.copy()
            expected[i] = np.where(m | (not with_mask), big[j], expected[i])
            size = big.itemsize
            offsets = [np.ascontiguousarray(k * size) for k in (j, i)]
            get(f"indexed_{t}_{with_mask}")(
                big.ctypes.data, offsets[0].ctypes.data, offsets[1].ctypes.data, m.ctypes.data, out.ctypes.data
            )
            np.testing.assert_array_equal(out, expected)


def test_masks_gather_scatter(target: Target) -> None:
    get = compile_llvm(MEMORY, target)
    for n in LANES:
        check_memory(get, n)


def test_masks_gather_scatter_in_c(tmp_path: Path) -> None:
    check_memory(compile_c([f for f in MEMORY if "x" not in f.name.split("_")[1]], tmp_path), 1)


def known_mask(scalar: str, lanes: int, lane: int, count: int) -> Func:
    """out[l] = x[l] + 1 for the lanes [lane, lane + count), narrowed from i64 or widened to f64 on the way."""

    def build(b: Builder, x: Node, out: Node) -> None:
        t, wide = VType(scalar, lanes), VType("i32", lanes)
        ramp = b.iota(VType("i64", lanes))
        mask = b.and_(b.cmp("sge", ramp, lane), b.cmp("slt", b.sub(ramp, lane), count))
        v = b.add(b.convert("sext", b.load(x, t, mask=mask), "i32"), b.const(1, wide))
        b.store(out, b.convert("itrunc", v, scalar), mask=mask)

    return make(f"known_{scalar}_{lanes}_{lane}_{count}", ["x", "out"], build)


def test_masks_of_constants_touch_their_lanes_only(target: Target) -> None:
    shapes = [(s, n, l, c) for s in ("i8", "i16") for n in (4, 8, 16) for l in (0, 2) for c in {0, 1, 2, n - l}]
    get = compile_llvm([known_mask(*s) for s in shapes], target)
    for scalar, n, lane, count in shapes:
        x = np.arange(1, n + 1).astype(scalar.replace("i", "int"))
        out = np.full(n, 99, x.dtype)
        get(f"known_{scalar}_{n}_{lane}_{count}")(x.ctypes.data, out.ctypes.data)
        inside = (np.arange(n) >= lane) & (np.arange(n) < lane + count)
        np.testing.assert_array_equal(out, np.where(inside, x + 1, 99))


def test_lanes(target: Target) -> None:
    get = compile_llvm([lanes_shuffled(n) for n in LANES[1:]], target)
    for n in LANES[1:]:
        x = np.arange(100, 100 + n, dtype=np.int32)
        w = x.copy()
        w[0] = x[n - 1]
        out = np.zeros(n, np.int32)
        get(f"shuffled_{n}")(x.ctypes.data, out.ctypes.data)
        r = np.where(np.arange(n) % 2 == 1, w[n - 1 - np.arange(n)], x) + x[1] + np.arange(n) + np.arange(10, 10 + n)
        np.testing.assert_array_equal(out, r)


# ---- control flow, calls and the rest: one function, several results in `out`
def flow_functions() -> list[Func]:
    def loops(b: Builder, n: Node, out: Node) -> None:
        count = b.load(n, I64)
        for at, unroll in enumerate((1, 3)):
            sums = b.for_(2, count, 2, lambda i, s, c: (b.add(s, i), b.add(c, 1)), (b.i64(0), b.i64(0)), unroll=unroll)
            b.store(b.gep(out, 16 * at), sums[0])
            b.store(b.gep(out, 16 * at + 8), sums[1])
        swapped = b.for_(0, count, 1, lambda i, x, y: (y, x), (b.i64(1), b.i64(2)))  # a parallel copy
        b.store(b.gep(out, 32), b.sub(swapped[0], swapped[1]))
        total = b.for_(
            0, count, 1, lambda i, s: b.for_(0, i, 1, lambda j, t: (b.add(t, b.mul(i, j)),), (s,)), (b.i64(0),)
        )
        b.store(b.gep(out, 40), total[0])

    def whiles(b: Builder, n: Node, out: Node) -> None:
        """Collatz: the number of steps to 1; and Fibonacci by a swap."""
        step = lambda x, c: (
            b.if_(b.cmp("eq", b.and_(x, 1), 0), lambda: (b.lshr(x, 1),), lambda: (b.add(b.mul(x, 3), 1),))[0],
            b.add(c, 1),
        )
        r = b.while_((b.load(n, I64), b.i64(0)), lambda x, c: b.cmp("ne", x, 1), step)
        b.store(out, r[1])
        f = b.while_(
            (b.i64(0), b.i64(1), b.load(n, I64)),
            lambda x, y, k: b.cmp("sgt", k, 0),
            lambda x, y, k: (y, b.add(x, y), b.sub(k, 1)),
        )
        b.store(b.gep(out, 8), f[0])

    def calls(b: Builder, n: Node, out: Node) -> None:
        x = b.load(n, I64)
        b.store(out, b.call("twice", [x], I64))
        b.store(b.gep(out, 8), b.callptr(b.funcptr("twice"), [b.add(x, 1)], I64))
        b.if_(b.cmp("sgt", x, 1000), lambda: b.call("nothing", []) and None)

    def data(b: Builder, n: Node, out: Node) -> None:
        first, second = (b.pure("data", (), PTR, value=v) for v in ((3, -(1 << 63), 5), (-1, 7)))
        i = b.mul(b.binary("and", b.load(n, I64), 1), 8)
        b.store(out, b.load(b.gep(first, i), I64, invariant=True))
        b.store(b.gep(out, 8), b.load(b.gep(second, i), I64, invariant=True))
        b.store(b.gep(out, 16), b.load(b.gep(first, 16), I64))

    def stack(b: Builder, n: Node, out: Node) -> None:
        a = b.alloca(64)
        b.memset(a, 7, 64)
        b.memcpy(b.gep(a, 8), n, 8)
        b.prefetch(n)
        b.prefetch(out, write=True, locality=1)
        b.store(out, b.load(a, I64))
        b.store(b.gep(out, 8), b.load(b.gep(a, 8), I64), nontemporal=True)
        b.fence()
        b.store(b.gep(out, 24), b.load(b.gep(out, 16), I64))
        b.store(b.gep(out, 32), b.effect("atomic_add", (b.gep(out, 24), b.i64(5)), I64))
        b.store(b.gep(out, 40), b.cmp("slt", b.load(n, I64), 5))
        b.store(b.gep(out, 41), b.convert("itrunc", b.convert("ptrtoint", out, "i64"), "i1"))

    twice = Func("twice", [("x", I64)], I64, private=True, inline="never")
    tb = Builder(twice)
    tb.ret(tb.shl(twice.params[0], 1))
    nothing = Func("nothing", [])
    Builder(nothing).ret()
    return [
        *(make(f.__name__, ["n", "out"], f, noalias=("n", "out")) for f in (loops, whiles, calls, data, stack)),
        twice,
        nothing,
    ]


def check_flow(get: Callable[[str], Any]) -> None:
    def run(name: str, value: int, out: np.ndarray | None = None) -> np.ndarray:
        n = np.array([value], np.int64)
        out = np.zeros(8, np.int64) if out is None else out
        get(name)(n.ctypes.data, out.ctypes.data)
        return out

    for n in (-3, 0, 2, 3, 4, 9, 12, 21):
        r = list(range(2, n, 2))
        nested = sum(i * j for i in range(n) for j in range(i))
        assert run("loops", n)[:6].tolist() == [sum(r), len(r)] * 2 + [1 if n > 0 and n % 2 else -1, nested]
    assert run("whiles", 27)[:2].tolist() == [111, 196418]
    assert run("whiles", 1)[:2].tolist() == [0, 1]
    assert run("calls", 21)[:2].tolist() == [42, 44]
    assert run("data", 0)[:3].tolist() == [3, -1, 5]
    assert run("data", 1)[:3].tolist() == [-(1 << 63), 7, 5]
    out = run("stack", 3, np.array([0, 0, 10, 0, 0, -1, 0, 0]))
    assert out[:5].tolist() == [0x0707070707070707, 3, 10, 15, 10]
    assert out[5:6].view(np.uint8)[:2].tolist() == [1, 0]


def test_control_flow_and_calls(target: Target) -> None:
    check_flow(compile_llvm(flow_functions(), target))


def test_control_flow_and_calls_in_c(tmp_path: Path) -> None:
    check_flow(compile_c(flow_functions(), tmp_path))


def test_names_do_not_change_the_text_between_builds() -> None:
    t = Target.named("x86-avx2")
    assert llvm.emit(flow_functions(), t) == llvm.emit(flow_functions(), t)


def test_nesting_has_no_limit() -> None:
    f = Func("deep", [("out", PTR), ("n", I32)])
    b = Builder(f)
    out, n = f.params

    def nest(depth: int) -> None:
        # the builder itself calls back once per level, which bounds how deep one can build in one go
        b.if_(
            b.cmp("sgt", n, depth), lambda: nest(depth + 1) if depth < 150 else b.store(out, b.const(1.0, F32)) and None
        )

    nest(0)
    for t in usable()[:1]:
        assert len(cpu.compile(llvm.emit([f], t), t)) > 0


def test_constants_print_exactly() -> None:
    assert number(0.1, "f32") == "0x3FB99999A0000000"
    assert number(1e39, "f32") == "0x7FF0000000000000"
    assert number(-0.0, "f64") == "0x8000000000000000"
    assert number(1, "i1") == "true"
    assert number(-(2**63), "i64") == str(-(2**63))
