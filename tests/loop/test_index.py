"""Index algebra: values equal Python's, bounds hold, and what should cancel cancels."""

from __future__ import annotations

import random
from itertools import product

import pytest

from hilo.loop import index as ix
from hilo.loop.builder import I64, Builder, Func
from hilo.loop.index import Atom, Index
from hilo.loop.nodes import Node


def new_builder(params: int = 4) -> Builder:
    return Builder(Func("f", [(f"p{i}", I64) for i in range(params)]))


def value(x: Index, env: dict[Node, int], lane: int = 0) -> int:
    """The number that `x` stands for."""
    return x.const + sum(c * atom_value(a, env, lane) for a, c in x.terms.items())


def atom_value(a: Atom, env: dict[Node, int], lane: int) -> int:
    if a.inner is not None:
        return value(a.inner, env, lane) // a.divisor
    if a.lanes:
        return lane
    assert a.node is not None
    return env[a.node]


def run(n: Node, env: dict[Node, int], lane: int = 0) -> int:
    """The value of a node made by `index.node` or `index.in_range`."""
    if n in env:
        return env[n]
    if n.kind == "const":
        return n.attrs["value"]
    if n.kind == "iota":
        return lane
    x, *rest = [run(a, env, lane) for a in n.args]
    y = rest[0] if rest else 0
    u = 1 << 64
    operations = {
        "splat": lambda: x, "add": lambda: x + y, "sub": lambda: x - y, "mul": lambda: x * y, "ashr": lambda: x >> y,
        "lshr": lambda: x >> y, "udiv": lambda: x // y, "and": lambda: x & y,
        "cmp": lambda: {"slt": x < y, "sge": x >= y, "ult": x % u < y % u}[n.attrs["pred"]],
    }  # fmt: skip
    out = int(operations[n.kind]())
    assert -(1 << 63) <= out < 1 << 63
    return out


def test_delinear_of_linear_cancels() -> None:
    b = new_builder()
    shape = (5, 3, 7, 2)
    vs = [ix.loop_var(p, 0, n) for p, n in zip(b.func.params, shape, strict=True)]
    assert ix.delinear(ix.linear(vs, shape), shape) == vs


def test_linear_of_delinear_cancels() -> None:
    b = new_builder(1)
    for shape in [(5, 3, 7, 2), (6, 1, 4), (30,), (8, 8)]:
        n = 1
        for d in shape:
            n *= d
        v = ix.loop_var(b.func.params[0], 0, n)
        parts = ix.delinear(v, shape)
        assert ix.linear(parts, shape) == v
        assert [(p.lo, p.hi) for p in parts] == [(0, d - 1) for d in shape]


def test_reshape_through_other_shapes_keeps_affine() -> None:
    b = new_builder(3)
    i, j, k = (ix.loop_var(p, 0, n) for p, n in zip(b.func.params, (4, 6, 10), strict=True))
    flat = ix.delinear(ix.linear([i, j, k], (4, 6, 10)), (24, 10))
    assert flat == [i * 6 + j, k]
    assert ix.delinear(ix.linear([k, i, j], (10, 4, 6)), (40, 6)) == [k * 4 + i, j]


def test_vector_in_aligned_rows_stays_contiguous() -> None:
    b = new_builder(1)
    v = ix.vector_var(b.func.params[0], 16, 0, 32 * 64, 16)
    row, col = ix.delinear(v, (32, 64))
    assert row.lane_stride == 0
    assert col.lane_stride == 1
    assert (col.lo, col.hi) == (0, 63)
    row, col = ix.delinear(v, (512, 4))  # rows narrower than the vector
    assert row.lane_stride is None
    assert ix.linear([row, col], (512, 4)) == v


def test_unrolled_copies_keep_the_bounds() -> None:
    b = new_builder(1)
    base = ix.vector_var(b.func.params[0], 8, 0, 1024, 32)
    for u in range(4):
        v = base + 8 * u
        assert v.hi <= 1023
        assert (v // 1024).value == 0
        assert (v % 64).lane_stride == 1


def test_masked_tail_keeps_the_bounds() -> None:
    b = new_builder(1)
    v = ix.vector_var(b.func.params[0], 16, 0, 100, 16, top=100)
    assert (v.lo, v.hi) == (0, 99)
    assert (v // 100).value == 0


def test_in_range_is_constant_where_known() -> None:
    b = new_builder(1)
    v = ix.loop_var(b.func.params[0], 0, 10)
    assert ix.in_range(b, v, 0, 10).const == 1
    assert ix.in_range(b, v, 10, 20).const == 0
    assert ix.in_range(b, v - 2, 0, 10).const is None


def test_from_node() -> None:
    b = new_builder(1)
    assert ix.from_node(b, b.i64(3), 0, 10).value == 3
    v = ix.from_node(b, b.func.params[0], 2, 10)
    assert (v.lo, v.hi) == (2, 9)
    assert ix.from_node(b, b.func.params[0], 4, 5).value == 4


@pytest.mark.parametrize("seed", range(60))
def test_random_expressions(seed: int) -> None:
    rng = random.Random(seed)
    b = new_builder(2)
    p, q = b.func.params
    lanes = rng.choice([1, 4, 8])
    n, m = rng.choice([8, 16, 24, 40]), rng.choice([1, 3, 7])
    v = ix.vector_var(p, lanes, 0, n, lanes)
    w = ix.loop_var(q, -2, m)
    pool = [(v, lambda e, k: e[p] + k), (w, lambda e, k: e[q])]
    for _ in range(8):
        (x, f), (y, g) = rng.choice(pool), rng.choice(pool)
        c = rng.choice([2, 3, 4, 5, 8, 12])
        how = rng.choice(["add", "sub", "mul", "div", "mod", "addc"])
        made = {
            "add": lambda x=x, y=y: x + y, "sub": lambda x=x, y=y: x - y, "mul": lambda x=x, c=c: x * (c - 6),
            "div": lambda x=x, c=c: x // c, "mod": lambda x=x, c=c: x % c, "addc": lambda x=x, c=c: c + x,
        }[how]()  # fmt: skip
        want = {
            "add": lambda e, k, f=f, g=g: f(e, k) + g(e, k), "sub": lambda e, k, f=f, g=g: f(e, k) - g(e, k),
            "mul": lambda e, k, f=f, c=c: f(e, k) * (c - 6), "div": lambda e, k, f=f, c=c: f(e, k) // c,
            "mod": lambda e, k, f=f, c=c: f(e, k) % c, "addc": lambda e, k, f=f, c=c: c + f(e, k),
        }[how]  # fmt: skip
        pool.append((made, want))
    for x, f in pool:
        emitted = ix.node(b, x)
        lo, hi = x.lo + 1, x.hi
        inside = ix.in_range(b, x, lo, hi)
        for i, j, lane in product(range(0, n, lanes), range(-2, m), range(lanes)):
            env = {p: i, q: j}
            got = f(env, lane)
            assert value(x, env, lane) == got
            assert x.lo <= got <= x.hi
            assert x.multiple == 0 == got or got % x.multiple == 0
            assert run(emitted, env, lane) == got
            assert run(inside, env, lane) == (lo <= got < hi)
        if x.lane_stride is not None:
            env = {p: 0, q: 0 if m > 0 else -2}
            assert all(f(env, k) == f(env, 0) + k * x.lane_stride for k in range(lanes))
