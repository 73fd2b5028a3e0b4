"""Other frameworks' arrays through DLPack: all types, both forms of capsule, strides, and what cannot be read."""

from __future__ import annotations

import ctypes
import gc

import numpy as np
import pytest

from hilo.errors import Error
from hilo.ir import dtypes

CODES = {
    "i8": 0, "i16": 0, "i32": 0, "i64": 0, "u8": 1, "u16": 1, "u32": 1, "u64": 1, "f16": 2, "f32": 2, "f64": 2,
    "bf16": 4, "c64": 5, "c128": 5, "i1": 6, "f8E3M4": 7, "f8E4M3": 8, "f8E4M3B11FNUZ": 9, "f8E4M3FN": 10,
    "f8E4M3FNUZ": 11, "f8E5M2": 12, "f8E5M2FNUZ": 13, "f8E8M0FNU": 14,
}  # fmt: skip
DELETER = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class Tensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]  # fmt: skip


class Managed(ctypes.Structure):
    _fields_ = [("tensor", Tensor), ("context", ctypes.c_void_p), ("deleter", DELETER)]


class Versioned(ctypes.Structure):
    _fields_ = [
        ("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("context", ctypes.c_void_p), ("deleter", DELETER),
        ("flags", ctypes.c_uint64), ("tensor", Tensor),
    ]  # fmt: skip


class Framework:
    """An array of a framework that only speaks DLPack. `deleted` counts the calls of the deleter."""

    def __init__(self, data, dtype, shape, *, strides=None, versioned=True, device=1, major=1, lanes=1, code=None,
                 bits=None, offset=0):  # fmt: skip
        code = CODES[dtype.name] if code is None else code
        tensor = Tensor(data, device, 0, len(shape), code, bits or max(8, dtype.bits), lanes)
        tensor.shape = (ctypes.c_int64 * len(shape))(*shape)
        if strides is not None:
            tensor.strides = (ctypes.c_int64 * len(strides))(*strides)
        tensor.byte_offset = offset
        self.deleted = 0
        self.versioned = versioned
        self.callback = DELETER(self.delete)
        self.managed = (Versioned(major, 0, None, self.callback, 1, tensor) if versioned
                        else Managed(tensor, None, self.callback))  # fmt: skip

    def delete(self, _):
        self.deleted += 1

    def __dlpack_device__(self):
        return (1, 0)

    def __dlpack__(self, **options):
        if options and not self.versioned:
            raise TypeError("an old framework")
        new = ctypes.pythonapi.PyCapsule_New
        new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
        return new(ctypes.addressof(self.managed), b"dltensor_versioned" if self.versioned else b"dltensor", None)


def copies(program, dtype, shape):
    return program("copies", [(dtype.np, shape)], [(dtype.np, shape)], constants=[np.array([1])])


@pytest.mark.parametrize("versioned", [False, True])
@pytest.mark.parametrize("name", CODES)
def test_every_type(program, name, versioned):
    t = dtypes.dtype(name)
    raw = np.arange(48, dtype=np.uint8) % 2
    shape = (48 // t.itemsize,)
    given = Framework(raw.ctypes.data, t, shape, versioned=versioned)
    (out,) = copies(program, t, shape)(given)
    assert out.dtype == t.np
    assert out.view(np.uint8)[:24].tolist() == raw[:24].tolist()
    gc.collect()
    assert given.deleted == 1


def test_strides_and_offset(program):
    raw = np.arange(20, dtype=np.float32)
    p = copies(program, dtypes.f32, (2, 3))
    given = Framework(raw.ctypes.data, dtypes.f32, (2, 3), strides=(1, 4), offset=8)
    assert p(given)[0].tolist() == [[2, 6, 10], [3, 7, 11]]
    assert p(Framework(raw.ctypes.data, dtypes.f32, (2, 3), strides=(0, -1), offset=8))[0].tolist() == [[2, 1, 0]] * 2
    assert p(Framework(raw.ctypes.data, dtypes.f32, (2, 3)))[0].tolist() == [[0, 1, 2], [3, 4, 5]]


def test_no_elements_and_rank_0(program):
    p = program("nothing", [(dtypes.bf16.np, (0, 4)), (dtypes.bf16.np, ())], [])
    raw = np.zeros(1, np.int16)
    empty = Framework(None, dtypes.bf16, (0, 4), strides=(4, 1))
    assert p(empty, Framework(raw.ctypes.data, dtypes.bf16, (), strides=())) == []
    assert empty.deleted == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"lanes": 4}, "type code 2 with 32 bits and 4 lanes cannot be read"),
        ({"code": 99}, "type code 99 with 32 bits and 1 lanes cannot be read"),
        ({"code": 17, "bits": 4}, "type code 17 with 4 bits and 1 lanes cannot be read"),
        ({"device": 2}, "not in host memory"),
        ({"major": 2}, "DLPack version 2 is not known"),
        ({"shape": (3,)}, r"argument 0: expected f32\[6\], got f32\[3\]"),
        ({"shape": (1,) * 100}, "arrays of rank 100 cannot be read"),
        ({"data": None}, "the array has elements but no memory"),
    ],
)
def test_what_cannot_be_read(program, options, message):
    raw = np.zeros(6, np.float32)
    options = {"shape": (6,), "data": raw.ctypes.data, **options}
    given = Framework(options.pop("data"), dtypes.f32, options.pop("shape"), **options)
    with pytest.raises(Error, match=message):
        program("nothing", [(dtypes.f32.np, (6,))], [])(given)
    gc.collect()
    assert given.deleted == 1


def test_used_capsules(program):
    raw = np.zeros(6, np.float32)
    given = Framework(raw.ctypes.data, dtypes.f32, (6,))
    capsule = given.__dlpack__()
    given.__dlpack__ = lambda **_: capsule  # type: ignore[method-assign]
    p = program("nothing", [(dtypes.f32.np, (6,))], [])
    assert p(given) == []
    with pytest.raises(Error, match="used before"):
        p(given)
    given.__dlpack__ = lambda **_: 3  # type: ignore[method-assign]
    with pytest.raises(Error, match="not a DLPack capsule"):
        p(given)
