"""What once went wrong in whole programs compiled by hilo's own generator, each case small."""

from __future__ import annotations

import numpy as np
import pytest
from x86_agree import HERE, agree

from hilo.loop.builder import I64, PTR, Builder, Func, Node, VType

pytestmark = pytest.mark.skipif(not HERE, reason="the machine has no AVX-512")


@pytest.mark.parametrize("t", [VType("f32", 4), VType("f32", 16), VType("f64", 2), VType("f64", 4), VType("f64", 8),
                               VType("i32", 4), VType("i64", 2), VType("i64", 8)], ids=repr)  # fmt: skip
def test_one_number_where_a_mask_is_set_and_zeros_elsewhere(t: VType) -> None:
    func = Func("f", [("a", PTR), ("out", PTR)])
    b = Builder(func)
    a, out = func.params
    x = b.load(a, t)
    three, zero = (b.splat(b.const(v, t.with_lanes(1)), t.lanes) for v in (3, 0))
    b.store(out, b.select(b.cmp("une" if t.is_float else "ne", x, zero), three, zero))
    dtype = np.dtype(t.scalar.replace("i", "int").replace("f", "float"))
    numbers = (np.arange(t.lanes) % 2).astype(dtype)
    agree(func, numbers, np.zeros_like(numbers))


def test_the_place_of_stack_memory_as_a_number() -> None:
    func = Func("f", [("out", PTR), ("n", I64)])
    b = Builder(func)
    out, n = func.params
    a, c = (b.convert("ptrtoint", b.alloca(64), "i64") for _ in range(2))
    for i, v in enumerate((b.sub(b.add(n, a), a), b.sub(b.mul(a, 8), b.mul(a, 7)), b.sub(b.add(a, c), c))):
        b.store(b.gep(out, 8 * i), b.sub(v, a) if i else v)
    (result,) = agree(func, np.ones(3, np.int64), 77)
    assert result.tolist() == [77, 0, 0]


def test_what_a_loop_is_asked_about_is_read_before_it_changes() -> None:
    func = Func("f", [("x", PTR), ("n", I64)])
    b = Builder(func)
    x, n = func.params

    def test(i: Node) -> Node:
        below = b.cmp("slt", b.load(x, I64), n)
        b.store(x, b.add(i, 1))
        return below

    (turns,) = b.while_([b.i64(0)], test, lambda i: [b.add(i, 1)])
    b.store(b.gep(x, 8), turns)
    (result,) = agree(func, np.zeros(2, np.int64), 7)
    assert result.tolist() == [8, 7]


@pytest.mark.parametrize("first", [0, -5])
def test_steps_that_are_too_large_to_be_taken_several_at_once(first: int) -> None:
    func = Func("f", [("out", PTR), ("n", I64)])
    b = Builder(func)
    out, n = func.params
    for i, end in enumerate((n, (1 << 31) - 1, -(1 << 31) + 1)):
        lo = first if i < 2 else -(1 << 31)
        (sum_,) = b.for_(lo, end, 1 << 30, lambda iv, c: [b.add(c, b.add(iv, 7))], [b.i64(0)], unroll=4)
        b.store(b.gep(out, 8 * i), sum_)
    for n_ in (0, 10, (1 << 30) + 1, 9 << 30):
        agree(func, np.zeros(3, np.int64), n_)


def test_what_lies_behind_the_largest_displacement() -> None:
    t, far = VType("f32", 64), (1 << 31) - 64
    func = Func("f", [("a", PTR), ("out", PTR)])
    b = Builder(func)
    a, out = func.params
    b.store(out, b.fadd(b.load(b.gep(a, far), t), b.load(b.gep(a, far - 4), t)))
    b.memcpy(b.gep(out, 256), b.gep(a, far), 200)
    data = np.arange(65, dtype=np.float32)
    (result,) = agree(func, data.ctypes.data - far + 4, np.zeros(128, np.float32))
    np.testing.assert_array_equal(result[:64], data[1:] + data[:-1])
    np.testing.assert_array_equal(result[64:114], data[1:51])
