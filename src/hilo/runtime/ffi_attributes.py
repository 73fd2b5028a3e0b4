"""Attributes as handlers of XLA's FFI read them: structs in memory, made with ctypes. Imports custom_calls, errors.

The layouts are those of native/xla_ffi.h. Names are sorted, since handlers look them up by bisection.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from hilo.custom_calls.element_types import number
from hilo.errors import Unsupported
from hilo.ir.dtypes import from_numpy

_ARRAY, _DICTIONARY, _SCALAR, _STRING = 1, 2, 3, 4


class _Span(ctypes.Structure):
    _fields_ = (("data", ctypes.c_void_p), ("length", ctypes.c_size_t))


class _Scalar(ctypes.Structure):
    _fields_ = (("type", ctypes.c_int32), ("value", ctypes.c_void_p))


class _Array(ctypes.Structure):
    _fields_ = (("type", ctypes.c_int32), ("size", ctypes.c_size_t), ("data", ctypes.c_void_p))


class _Attributes(ctypes.Structure):
    _fields_ = (("size", ctypes.c_size_t), ("extensions", ctypes.c_void_p), ("count", ctypes.c_int64),
                ("types", ctypes.c_void_p), ("names", ctypes.c_void_p), ("values", ctypes.c_void_p))  # fmt: skip


class Attributes:
    """A dictionary of attributes at `address`, for as long as this object lives.

    Raises `Unsupported` for a value that the interface cannot express.
    """

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._keep: list[Any] = []
        self.address: Final = ctypes.addressof(self._dictionary(values))

    def _kept(self, thing: Any) -> Any:
        self._keep.append(thing)
        return thing

    def _dictionary(self, values: Mapping[str, Any]) -> _Attributes:
        names = sorted(values, key=str.encode)
        made = [self._value(n, values[n]) for n in names]
        count = len(names)
        types = self._kept((ctypes.c_int32 * max(count, 1))(*[kind for kind, _ in made]))
        spans = [self._span(n) for n in names]
        pointers = self._kept((ctypes.c_void_p * max(count, 1))(*map(ctypes.addressof, spans)))
        things = self._kept((ctypes.c_void_p * max(count, 1))(*[ctypes.addressof(x) for _, x in made]))
        return self._kept(_Attributes(ctypes.sizeof(_Attributes), None, count, ctypes.addressof(types),
                                      ctypes.addressof(pointers), ctypes.addressof(things)))  # fmt: skip

    def _span(self, text: str) -> _Span:
        data = text.encode(errors="surrogateescape")
        buffer = self._kept(ctypes.create_string_buffer(data, len(data) + 1))
        return self._kept(_Span(ctypes.addressof(buffer), len(data)))

    def _value(self, name: str, value: Any) -> tuple[int, Any]:
        """The kind of a value, and its struct."""
        if isinstance(value, str):
            return _STRING, self._span(value)
        if isinstance(value, Mapping):
            return _DICTIONARY, self._dictionary(value)
        if isinstance(value, tuple) and value and all(type(v) is type(value[0]) for v in value):
            value = np.array(value) if isinstance(value[0], bool | np.generic) else value
        if isinstance(value, bool | np.generic | np.ndarray):
            data = np.array(value, order="C")
            type_number = number(from_numpy(data.dtype), f"attribute {name!r}")
            at = self._kept(data).ctypes.data
            if isinstance(value, np.ndarray):
                return _ARRAY, self._kept(_Array(type_number, data.size, at))
            return _SCALAR, self._kept(_Scalar(type_number, at))
        raise Unsupported(f"XLA's FFI has no form for attribute {name!r}: {value!r}")
