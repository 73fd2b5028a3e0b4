"""Inlining gives what a call gives, and keeps loads of memory that changes around the function where the call was."""

from __future__ import annotations

import numpy as np

from hilo.loop.builder import F32, I1, I64, PTR, Builder, Func, Node
from hilo.loop.inline import inline, size
from hilo.loop.interpret import run


def kernel() -> Func:
    """y[i] = x[i] * 2 where x[i] > 1, else x[0] plus how often i halves; every kind of loop."""
    f = Func("kernel", [("bufs", PTR), ("begin", I64), ("end", I64)])
    b = Builder(f)
    bufs, begin, end = f.params
    x, y = (b.load(b.gep(bufs, 8 * i), PTR, invariant=True) for i in range(2))

    def turn(i: Node) -> None:
        at = b.mul(i, 4)
        v = b.load(b.gep(x, at), F32)

        def small() -> list[Node]:
            first = b.load(x, F32, invariant=True)

            def half(n: Node, steps: Node) -> list[Node]:
                return [b.lshr(n, 1), b.fadd(steps, 1.0)]

            _, steps = b.while_([i, b.const(0.0, F32)], lambda n, _: b.cmp("ne", n, 0), half)
            return [b.fadd(first, steps)]

        (r,) = b.if_(b.cmp("ogt", v, 1.0), lambda: [b.fmul(v, 2.0)], small)
        b.store(b.gep(y, at), r)

    b.for_(begin, end, 1, turn)
    b.ret()
    return f


def host(turns: int, *, inlined: bool) -> Func:
    """The kernel, `turns` times on the same arrays, its result becoming its operand."""
    f = Func("host", [("x", PTR), ("y", PTR), ("n", I64)])
    b = Builder(f)
    x, y, n = f.params
    table = b.alloca(16)

    def turn(_: Node) -> None:
        if inlined:
            inline(b, kernel(), [x, y], [b.i64(0), n])
        else:
            b.store(table, x)
            b.store(b.gep(table, 8), y)
            b.call("kernel", [table, b.i64(0), n])
        b.memcpy(x, y, b.mul(n, 4))

    b.for_(0, turns, 1, turn)
    b.ret()
    return f


def test_same_as_a_call() -> None:
    start = np.array([0.5, 3, 1, -2, 0.25, 7, 9, np.nan], np.float32)
    got = []
    for inlined in (True, False):
        x, y = start.copy(), np.zeros_like(start)
        run(host(3, inlined=inlined), x, y, start.size, funcs=[kernel()])
        got.append(y)
    np.testing.assert_array_equal(*got)


def test_constant_arguments_fold() -> None:
    f = Func("host", [("x", PTR), ("y", PTR)])
    b = Builder(f)
    inline(b, kernel(), f.params, [b.i64(0), b.i64(1)])
    b.ret()
    assert not any(n.kind == "for" for n in f.body.nodes)


def test_vectors_and_masks() -> None:
    f = Func("k", [("bufs", PTR), ("begin", I64), ("end", I64)])
    b = Builder(f)
    x = b.load(f.params[0], PTR, invariant=True)
    mask = b.const((1, 0, 1, 0), I1.with_lanes(4))
    v = b.load(x, F32.with_lanes(4), mask=mask)
    b.store(x, b.fma(v, 2.0, b.shuffle(v, v, (3, 2, 1, 0))), mask=mask)
    b.ret()
    g = Func("host", [("x", PTR)])
    c = Builder(g)
    inline(c, f, [g.params[0]], [c.i64(0), c.i64(1)])
    c.ret()
    a = np.array([1, 2, 3, 4], np.float32)
    run(g, a)
    np.testing.assert_array_equal(a, np.array([2, 2, 6, 4], np.float32))


def test_size_counts_nested_nodes() -> None:
    assert size(kernel(), 1000) > 15
    assert size(kernel(), 3) > 3


def test_a_function_that_computes_its_pointers_is_too_large() -> None:
    f = Func("kernel", [("bufs", PTR), ("begin", I64), ("end", I64)])
    b = Builder(f)
    bufs, begin, end = f.params

    def turn(i: Node) -> None:
        b.prefetch(b.load(b.gep(bufs, b.mul(i, 8)), PTR))

    b.for_(begin, end, 1, turn)
    b.ret()
    assert size(f, 100) > 100
