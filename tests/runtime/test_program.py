"""Calling programs: what arguments are taken, what is refused and how, results, error codes, constants, arenas."""

from __future__ import annotations

import array
import gc
import itertools
import sys
import threading
import time
import tracemalloc

import ml_dtypes
import numpy as np
import pytest

from hilo.errors import Error
from hilo.ir import dtypes
from hilo.runtime import _native

F32 = np.dtype(np.float32)
F64 = np.dtype(np.float64)
I64 = np.dtype(np.int64)
V8 = (F32, (8,))


@pytest.fixture
def add(program):
    return program("add8", [V8, V8], [V8])


X = np.arange(8, dtype=F32)


def test_call(add):
    (out,) = add(X, X)
    assert type(out) is np.ndarray
    assert out.dtype == F32
    assert out.tolist() == (2 * X).tolist()
    assert out.flags.writeable
    assert out.flags.c_contiguous
    assert out.ctypes.data % 64 == 0
    assert repr(add) == "<Program add8: 2 arguments, 1 results, 1 threads>"


class Foreign:
    """An array of another framework: DLPack and nothing else."""

    def __init__(self, values, device=(1, 0)):
        self.values, self.device = values, device

    def __dlpack__(self, **options):
        return self.values.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.device


class Interface:
    """An array of another framework: `__array_interface__` and nothing else."""

    def __init__(self, values):
        self.values = values
        self.__array_interface__ = values.__array_interface__


class Subclass(np.ndarray):
    pass


def misaligned(values):
    raw = np.zeros(values.nbytes + 1, np.uint8)
    out = raw[1:].view(values.dtype)
    out[:] = values
    return out


def read_only(values):
    out = values.copy()
    out.flags.writeable = False
    return out


@pytest.mark.parametrize(
    "given",
    [
        pytest.param(lambda: np.repeat(X, 2)[::2], id="strided"),
        pytest.param(lambda: X[::-1].copy()[::-1], id="negative strides"),
        pytest.param(lambda: misaligned(X), id="misaligned"),
        pytest.param(lambda: read_only(X), id="read-only"),
        pytest.param(lambda: X.view(Subclass), id="subclass"),
        pytest.param(lambda: memoryview(X), id="buffer"),
        pytest.param(lambda: array.array("f", X.tolist()), id="array.array"),
        pytest.param(lambda: Foreign(X), id="dlpack"),
        pytest.param(lambda: Interface(X), id="array interface"),
    ],
)
def test_other_forms_of_an_argument(add, given):
    (out,) = add(X, given())
    assert out.tolist() == (2 * X).tolist()


def test_broadcast_and_transposed_arguments(program):
    constant = [np.array([1])]
    p = program("copies", [(F32, (2, 3))], [(F32, (2, 3))], constants=constant)
    rows = np.broadcast_to(np.float32([1, 2, 3]), (2, 3))
    assert p(rows)[0].tolist() == rows.tolist()
    fortran = np.asfortranarray(np.arange(6, dtype=F32).reshape(2, 3))
    assert p(fortran)[0].tolist() == fortran.tolist()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (X.astype(F64), "argument 1: expected f32[8], got f64[8]: values are never converted; use astype"),
        (X.astype(">f4"), "argument 1: expected f32[8], got >f4[8] (byte-swapped): convert it with astype"),
        (X[:7], "argument 1: expected f32[8], got f32[7]"),
        (X.reshape(2, 4), "argument 1: expected f32[8], got f32[2,4]"),
        (np.zeros((0,), F32), "argument 1: expected f32[8], got f32[0]"),
        ([1, 2], "argument 1: expected f32[8], got a list: pass numpy.asarray(value, dtype) with the dtype of f32[8]"),
        (2.5, "argument 1: expected f32[8], got f64[]: pass numpy.asarray(value, dtype) with the dtype of f32[8]"),
        (None, "argument 1: expected f32[8], got a NoneType: pass an array"),
        ("text", "argument 1: expected f32[8], got a str: pass an array"),
        (object(), "argument 1: expected f32[8], got a object, which is not an array"),
        (np.array([None] * 8), "argument 1: expected f32[8], got object[8]: values are never converted; use astype"),
        (Foreign(X, (2, 0)), "argument 1: the Foreign is not in host memory (DLPack device (2, 0)): copy it there"),
        (Foreign(X[:3]), "argument 1: expected f32[8], got f32[3]"),
    ],
)
def test_wrong_arguments(add, given, message):
    with pytest.raises(Error) as caught:
        add(X, given)
    assert caught.value.message == message


def test_wrong_counts_and_keywords(add):
    with pytest.raises(Error, match="add8 takes 2 arguments, got 1"):
        add(X)
    with pytest.raises(Error, match="add8 takes 2 arguments, got 0"):
        add()
    with pytest.raises(Error, match="add8 takes no keyword arguments, got 'y'"):
        add(X, y=X)


class Broken:
    def __dlpack__(self, **options):
        raise RuntimeError("it requires grad")

    def __dlpack_device__(self):
        return (1, 0)


def test_a_failing_framework_is_quoted(add):
    with pytest.raises(Error, match="argument 0: cannot read a Broken as an array: it requires grad"):
        add(Broken(), X)


@pytest.mark.parametrize("dtype", dtypes.ALL, ids=repr)
def test_every_dtype(program, dtype):
    """24 bytes of each type go through, scalars of it too, and every other type is refused."""
    shape = (24 // dtype.itemsize,) if 24 % dtype.itemsize == 0 else (2,)
    nbytes = shape[0] * dtype.itemsize
    shape = shape if nbytes == 24 else (shape[0] * 3,)  # c128: more than the entry copies, only checked
    value = np.zeros(shape, dtype.np)
    value.view(np.uint8)[:24] = np.arange(24) % 2
    p = program("copies", [(dtype.np, shape)], [(dtype.np, shape)], constants=[np.array([1])])
    (out,) = p(value)
    assert out.dtype == dtype.np
    assert out.view(np.uint8)[:24].tolist() == value.view(np.uint8)[:24].tolist()
    assert p(np.repeat(value, 2)[::2])[0].view(np.uint8)[:24].tolist() == value.view(np.uint8)[:24].tolist()
    for other in dtypes.ALL:
        if other is not dtype:
            with pytest.raises(Error, match=r"argument 0: expected"):
                p(np.zeros(shape, other.np))


def test_equivalent_dtypes(program):
    p = program("nothing", [(np.dtype(np.int64), (2,))], [])
    assert p(np.zeros(2, np.longlong)) == []


@pytest.mark.parametrize(
    ("dtype", "good", "bad"),
    [
        (np.int64, [3, np.int64(3), True + 2], [3.0, True, np.int32(3)]),
        (np.float64, [3.5, np.float64(1)], [3, np.float32(1)]),
        (np.bool_, [True, np.bool_(False)], [1]),
        (np.complex128, [1j], [1.0]),
        (np.float32, [np.float32(1), np.array(1, np.float32)], [1.0, np.array([1], np.float32)]),
        (ml_dtypes.bfloat16, [ml_dtypes.bfloat16(1)], [1.0, np.float32(1)]),
    ],
)
def test_scalars(program, dtype, good, bad):
    p = program("nothing", [(np.dtype(dtype), ())], [])
    for value in good:
        assert p(value) == []
    for value in bad:
        with pytest.raises(Error, match="argument 0: expected"):
            p(value)


def test_rank_0_and_zero_sizes(program):
    p = program("nothing", [(F32, (0, 3)), (F32, (2, 0))], [(F32, ()), (F32, (0,)), (F32, (5, 0, 2))])
    outs = p(np.zeros((0, 3), F32), np.zeros((2, 0), F32))
    assert [o.shape for o in outs] == [(), (0,), (5, 0, 2)]
    assert all(type(o) is np.ndarray for o in outs)
    with pytest.raises(Error, match=r"argument 0: expected f32\[0,3\], got f32\[3,0\]"):
        p(np.zeros((3, 0), F32), np.zeros((2, 0), F32))


def test_more_arguments_than_fit_on_the_stack(program):
    n = 300
    p = program("copies", [(F32, (6,))] * n, [(F32, (6,))] * n, constants=[np.array([n])])
    given = [np.full(6, i, F32) for i in range(n)]
    assert [o.tolist() for o in p(*given)] == [g.tolist() for g in given]


def test_arena_and_alignment(program):
    p = program("addresses", [V8], [(I64, (3,))], arena_size=1000)
    (out,) = p(X)
    assert out.tolist()[0] == X.ctypes.data  # in place
    assert out[1] == out.ctypes.data
    assert out[2] % 64 == 0
    assert p(X)[0][2] == out[2]  # the arena is reused
    for copied in (misaligned(X), np.repeat(X, 2)[::2], X.view(Subclass)[::-1]):
        address = p(copied)[0][0]
        assert address != copied.ctypes.data
        assert address % 4 == 0


def test_results_come_back_warm(program):
    """A large result is given the memory of the one dropped before."""
    p = program("fill16", [], [(np.dtype(np.uint8), (16 << 20,))])
    (out,) = p()
    address = out.ctypes.data
    assert address % (2 << 20) == 0
    (other,) = p()
    assert other.ctypes.data != address
    del out
    misses = _native.memory_stats()["misses"]
    (out,) = p()
    assert out.ctypes.data == address
    assert _native.memory_stats()["misses"] == misses
    view = out[5:]
    del out
    assert p()[0].ctypes.data != address  # a view keeps it
    assert view[0] == 3


def test_memory_limit():
    before = _native.memory_stats()["limit"]
    try:
        _native.set_memory_limit(1 << 20)
        arrays = [_native.empty(F32, (1 << 16,)) for _ in range(10)]
        del arrays
        assert _native.memory_stats()["kept"] <= 1 << 20
        big = _native.empty(F32, (1 << 20,))
        kept = _native.memory_stats()["kept"]
        del big
        assert _native.memory_stats()["kept"] == kept  # larger than the limit: released
        _native.set_memory_limit(0)
        assert _native.memory_stats()["kept"] == 0
    finally:
        _native.set_memory_limit(before)


def test_no_memory(program):
    huge = (np.dtype(np.uint8), (1 << 60,))
    with pytest.raises(MemoryError):
        program("nothing", [], [V8, huge])()
    with pytest.raises(MemoryError):
        program("nothing", [], [], arena_size=1 << 60)()


def test_error_codes(program):
    p = program("fails", [(np.dtype(np.int32), ())], [V8], errors={3: "assertion failed: x > 0"})
    assert len(p(np.int32(0))) == 1
    with pytest.raises(Error, match="fails: assertion failed: x > 0"):
        p(np.int32(3))
    with pytest.raises(Error, match="fails: the program failed with code 4"):
        p(np.int32(4))


def test_constants_are_kept_alive(program):
    constant = np.array([1])
    count = sys.getrefcount(constant)
    p = program("copies", [(F32, (6,))], [(F32, (6,))], constants=[constant])
    assert sys.getrefcount(constant) == count + 1
    del p
    assert sys.getrefcount(constant) == count


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"threads": 0}, ValueError),
        ({"arena_size": -1}, ValueError),
        ({"constants": [np.zeros((4, 4))[:, 1]]}, TypeError),
        ({"constants": [3]}, TypeError),
        ({"aliases": [(0, 7)]}, ValueError),
        ({"aliases": [(0, 0), (0, 1)]}, ValueError),
        ({"host_calls": [3]}, TypeError),
        ({"nonsense": 1}, TypeError),
    ],
)
def test_wrong_construction(program, options, error):
    with pytest.raises(error):
        program("add8", [V8, V8], [V8], **options)
    with pytest.raises(ValueError, match="null"):
        _native.Program(0, [], [])
    with pytest.raises(ValueError, match="bad dimension"):
        program("nothing", [(F32, (1 << 40, 1 << 40))], [])


def test_no_leaks(add, program):
    """References and memory stay the same over many calls, good and bad."""
    x = X.copy()
    failing = program("fails", [(np.dtype(np.int32), ())], [V8], arena_size=100)
    strided = np.repeat(X, 2)[::2]

    def fails(p, *arrays):
        try:
            p(*arrays)
        except Error:
            return
        pytest.fail("no error")

    def calls():
        for _ in range(50):
            add(x, x)
            add(x, strided)
            for bad in ([1.0], X[:3], None):
                fails(add, x, bad)
            fails(failing, np.int32(1))
        gc.collect()

    calls()
    refs = sys.getrefcount(x), sys.getrefcount(F32), sys.getrefcount(add)
    in_use = _native.memory_stats()["in_use"]
    tracemalloc.start()
    traced = []
    for _ in range(4):
        calls()
        traced.append(tracemalloc.get_traced_memory()[0])
    tracemalloc.stop()
    assert (sys.getrefcount(x), sys.getrefcount(F32), sys.getrefcount(add)) == refs
    assert _native.memory_stats()["in_use"] == in_use
    # 16 bytes lost per call would be 800 in every round; the least growth is free of noise.
    assert min(b - a for a, b in itertools.pairwise(traced)) < 600


def test_release_gil(program):
    """Another Python thread runs during a call if the program says so."""
    p = program("waits", [(np.dtype(np.int32), (1,))], [], release_gil=True)
    flag = np.zeros(1, np.int32)
    outs = []
    thread = threading.Thread(target=lambda: outs.append(p(flag)))
    thread.start()
    time.sleep(0.01)
    flag[0] = 1
    thread.join()
    assert outs == [[]]


def test_program_outlives_its_last_name_during_a_call(program):
    box = [program("sleeps", [], [V8], release_gil=True, keep=object())]
    outs = []
    thread = threading.Thread(target=lambda: outs.append(box[0]()))
    thread.start()
    time.sleep(0.01)
    box.clear()
    gc.collect()
    thread.join()
    assert outs[0][0].shape == (8,)


def test_cycles_are_collected(program):
    class Owner:
        pass

    owner = Owner()
    alive = []
    owner.finalizer = type("Last", (), {"__del__": lambda self: alive.append(0)})()
    owner.program = program("nothing", [], [], keep=owner)
    del owner
    gc.collect()
    assert alive == [0]
