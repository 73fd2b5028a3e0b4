"""Calls from programs into Python, and results that take the place of donated arguments."""

from __future__ import annotations

import platform
import sys

import numpy as np
import pytest

from hilo.errors import Error
from hilo.runtime import _native

F32 = np.dtype(np.float32)
V8 = (F32, (8,))
X = np.arange(8, dtype=F32)


def make(program, first, second=lambda v: v + 1, **options):
    calls = [(first, [V8], [V8]), (second, [V8], [V8])]
    return program("hosts", [V8], [V8, V8], host_calls=calls, **options)


@pytest.mark.parametrize("release_gil", [False, True])
def test_two_calls(program, release_gil):
    kept = []

    def triple(v):
        kept.append(v)
        return 3 * v

    outs = make(program, triple, release_gil=release_gil)(X)
    assert outs[0].tolist() == (3 * X).tolist()
    assert outs[1].tolist() == (3 * X + 1).tolist()
    assert kept[0].tolist() == X.tolist()
    assert not kept[0].flags.writeable
    assert kept[0].ctypes.data != X.ctypes.data  # what is kept gets memory of its own


@pytest.mark.parametrize("release_gil", [False, True])
def test_exceptions_pass_through(program, release_gil):
    def fail(v):
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        make(program, fail, release_gil=release_gil)(X)
    with pytest.raises(KeyError, match="mine"):
        make(program, lambda v: v, fail, release_gil=release_gil)(X)


@pytest.mark.parametrize(
    ("returned", "message"),
    [
        (lambda v: v.astype(np.float64), r"result of a host call 0: expected f32\[8\], got f64\[8\]"),
        (lambda v: v[:3], r"result of a host call 0: expected f32\[8\], got f32\[3\]"),
        (lambda v: (v, v), r"expected 1 results, got 2"),
        (lambda v: None, r"result of a host call 0: expected f32\[8\], got a NoneType"),
    ],
)
def test_wrong_results(program, returned, message):
    with pytest.raises(Error, match=message):
        make(program, returned)(X)


def test_results_in_other_forms(program):
    outs = make(program, lambda v: np.repeat(v, 2)[::2], lambda v: [v])(X)
    assert outs[0].tolist() == outs[1].tolist() == X.tolist()


def test_no_such_call(program):
    with pytest.raises(Error, match="hosts: there is no host call 0"):
        program("hosts", [V8], [V8, V8])(X)
    with pytest.raises(Error, match="host_in_loop: a host call inside a parallel loop"):
        program("host_in_loop", [], [])()


@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="sets x86's control register")
def test_a_host_call_may_run_programs_and_has_the_callers_float_state(program, entries):
    inner = program("add8", [V8, V8], [V8])
    seen = []

    def call(v):
        seen.append(entries.get_fp_state())
        return inner(v, v)[0]

    before = entries.get_fp_state()
    entries.set_fp_state(before | 0x8040)  # flush to zero, subnormals are zero
    try:
        outs = make(program, call)(X)
        after = entries.get_fp_state()
    finally:
        entries.set_fp_state(before)
    assert outs[0].tolist() == (2 * X).tolist()
    assert seen[0] & 0x8040 == 0x8040
    assert after & 0x8040 == 0x8040


def test_references_of_host_calls(program):
    def call(v):
        return v

    counts = sys.getrefcount(call), sys.getrefcount(F32)
    p = make(program, call)
    for _ in range(100):
        p(X)
    del p
    assert (sys.getrefcount(call), sys.getrefcount(F32)) == counts


# Donation


@pytest.fixture
def increment(program):
    return program("increment8", [V8], [V8], aliases=[(0, 0)])


def pooled(values):
    out = _native.empty(values.dtype, values.shape)
    out[...] = values
    return out


def test_an_exclusive_argument_is_reused(increment):
    box = [pooled(X)]
    address = box[0].ctypes.data
    (out,) = increment.consume(box)
    assert box == []
    assert out.ctypes.data == address
    assert out.tolist() == (X + 1).tolist()


def test_other_dtype_in_the_same_place(program):
    p = program("increment8", [V8], [(np.dtype(np.int32), (8,))], aliases=[(0, 0)])
    box = [pooled(X)]
    address = box[0].ctypes.data
    (out,) = p.consume(box)
    assert out.ctypes.data == address
    assert out.dtype == np.int32
    assert out.view(F32).tolist() == (X + 1).tolist()


class Keeper:
    """Whatever hides the array from the caller while something else still sees it."""

    def __init__(self, keep):
        self.array = pooled(X)
        self.kept = keep(self.array)

    def take(self):
        array, self.array = self.array, None
        return array


@pytest.mark.parametrize(
    "keep",
    [
        pytest.param(lambda a: a, id="another name"),
        pytest.param(lambda a: a[2:5], id="a view"),
        pytest.param(lambda a: a.reshape(2, 4).T[1:], id="a view of a view"),
        pytest.param(memoryview, id="a memoryview"),
        pytest.param(np.from_dlpack, id="dlpack"),
        pytest.param(lambda a: a.base, id="the block"),
    ],
)
def test_a_visible_argument_is_not_touched(increment, keep):
    keeper = Keeper(keep)
    address = keeper.array.ctypes.data
    (out,) = increment.consume([keeper.take()])
    assert out.ctypes.data != address
    assert out.tolist() == (X + 1).tolist()
    if not isinstance(keeper.kept, _native.empty(F32, (1,)).base.__class__):
        assert np.asarray(keeper.kept).max() <= 7


def test_foreign_and_read_only_memory_is_not_touched(increment):
    raw = bytearray(X.tobytes())
    (out,) = increment.consume([np.frombuffer(raw, F32)])
    assert np.frombuffer(raw, F32).tolist() == X.tolist()
    box = [pooled(X)]
    address = box[0].ctypes.data
    box[0].flags.writeable = False
    (out,) = increment.consume(box)
    assert out.ctypes.data != address


def test_one_array_twice(program):
    p = program("add8", [V8, V8], [V8], aliases=[(0, 0)])
    twice = [pooled(X)] * 2
    address = twice[0].ctypes.data
    (out,) = p.consume(twice)
    assert out.tolist() == (2 * X).tolist()
    assert out.ctypes.data != address


def test_named_arguments_keep_their_values(increment):
    x = pooled(X)
    for _ in range(3):
        assert increment(x)[0].tolist() == (X + 1).tolist()
        assert increment.consume([x])[0].tolist() == (X + 1).tolist()
    assert x.tolist() == X.tolist()
    assert increment(pooled(X))[0].tolist() == (X + 1).tolist()


def test_consume_takes_lists_and_gives_them_up_even_if_it_fails(increment):
    with pytest.raises(TypeError, match="consume expects a list, got a tuple"):
        increment.consume((X,))
    given = [X, X]
    with pytest.raises(Error, match="increment8 takes 1 arguments, got 2"):
        increment.consume(given)
    assert given == []
    count = sys.getrefcount(X)
    increment.consume([X])
    assert sys.getrefcount(X) == count
