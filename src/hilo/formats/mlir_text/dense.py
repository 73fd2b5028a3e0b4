"""Literals of tensors: `dense<...>`, in lists, splats and hex, to numpy and back. Imports the lexer, errors and ir.

Whole literals go through numpy at once. A splat stays one value seen through a broadcast view, whatever its shape.
"""

from __future__ import annotations

import warnings
from math import prod
from typing import Any

import numpy as np

from hilo.errors import Error
from hilo.ir.dtypes import DType, i64
from hilo.ir.op import Array
from hilo.ir.types import TensorType

_NUMERIC = b"0123456789+-.eE,[]() \n\r\t"
_BRACKETS = b"[](),"
_NOT_BRACKETS = bytes(b for b in range(256) if b not in _BRACKETS)
_HEX_FROM = 100  # larger constants are printed as hex, like MLIR does


def parse_dense(body: str, t: TensorType) -> Array:
    """The elements that `body` (the text inside `dense<...>`) writes down, as an array of the static type `t`.

    Raises `Error` (without location) when the literal is malformed or does not fit the type.
    """
    if not t.is_static:
        raise Error("a dense literal needs a static shape")
    shape: tuple[int, ...] = t.shape
    _check_size(t.dtype, shape)
    body = body.strip()
    if body.startswith('"'):
        return _from_hex(body[3:-1], t.dtype, shape)
    if not body:
        if prod(shape):
            raise Error(f"an empty literal for a tensor of {prod(shape)} elements")
        return Array(_empty(t.dtype, shape))
    text = body.encode()
    if b"//" in text:
        text = b"\n".join(line.split(b"//")[0] for line in text.split(b"\n"))
    if not text.startswith(b"["):
        value = _elements(text, t.dtype, 1, b"(,)" if t.dtype.part is not t.dtype else b"")
        return Array(value.reshape(()), shape) if prod(shape) else Array(_empty(t.dtype, shape))
    return Array(_elements(text, t.dtype, prod(shape), None, shape).reshape(shape))


def _check_size(dtype: DType, shape: tuple[int, ...]) -> None:
    """Refuse a shape that numpy cannot even name: its bytes, zeros among the sizes or not, must fit 63 bits."""
    if prod(max(n, 1) for n in shape) * dtype.itemsize >= 1 << 63 or len(shape) > 64:
        raise Error(f"a literal of {len(shape)} dimensions and {prod(shape)} elements is too large")


def from_bytes(data: bytes, t: TensorType) -> Array:
    """Little-endian elements in row-major order (one element: a splat; i1 is packed eight to a byte or one a byte)."""
    dtype, shape = t.dtype, t.shape
    _check_size(dtype, shape)
    n = prod(shape)
    if dtype.kind == "b":
        return _bools(data, n, shape)
    size = dtype.itemsize
    if n == 0 and not data:
        return Array(_empty(dtype, shape))
    if len(data) not in (n * size, size) or n == 0:
        raise Error(f"{len(data)} bytes of data for {n} elements of {size} bytes")
    if dtype.bits < 8:
        small = np.frombuffer(data, np.int8)
        shift = 8 - dtype.bits
        values = ((small << shift) >> shift) if dtype.kind == "i" else small.view(np.uint8) & ((1 << dtype.bits) - 1)
        values = values.astype(dtype.np) if dtype.is_int else values.view(dtype.np)
    else:
        values = np.frombuffer(data, dtype.np)
    return Array(values.reshape(shape) if len(values) == n else values.reshape(()), shape)


def _from_hex(digits: str, dtype: DType, shape: tuple[int, ...]) -> Array:
    try:
        data = bytes.fromhex(digits)
    except ValueError:
        raise Error("a hex string needs an even number of hex digits") from None
    return from_bytes(data, TensorType(dtype, shape))


def _bools(data: bytes, n: int, shape: tuple[int, ...]) -> Array:
    raw = np.frombuffer(data, np.uint8)
    if n and data in (b"\0", b"\xff"):  # a splat, or eight equal ones at most
        return Array(np.bool_(raw[0]), shape)
    if len(raw) == (n + 7) // 8:
        values = np.unpackbits(raw, count=n, bitorder="little").astype(np.bool_)
    elif len(raw) == n:
        values = raw != 0
    elif len(raw) == 1 and n:
        return Array(np.bool_(raw[0]), shape)
    else:
        raise Error(f"{len(raw)} bytes of data for {n} booleans")
    return Array(values.reshape(shape))


def _empty(dtype: DType, shape: tuple[int, ...]) -> Any:
    return np.broadcast_to(np.zeros((), dtype.np), shape)


def _skeleton(shape: tuple[int, ...], element: bytes, size: int) -> bytes | None:
    """The brackets and commas of a literal of this shape; None if they would not be `size` bytes long."""
    length = len(element)
    for d in reversed(shape):
        length = 2 + d * length + max(d - 1, 0)
        if length > size and d:
            return None
    if length != size:
        return None
    text = element
    for d in reversed(shape):
        text = b"[" + b",".join([text] * d) + b"]"
    return text


def _elements(text: bytes, dtype: DType, n: int, want: bytes | None, shape: tuple[int, ...] = ()) -> Any:
    """The `n` numbers in `text`, flat. `want` is the punctuation it must have (None: that of `shape`)."""
    is_complex = dtype.kind == "c"
    found = text.translate(None, _NOT_BRACKETS)
    if want is None:
        want = _skeleton(shape, b"(,)" if is_complex else b"", len(found))
    if found != want:
        raise Error(f"the nesting of the literal does not fit the type {TensorType(dtype, shape)!r}")
    if n == 0:
        return np.zeros(0, dtype.np)
    part = dtype.part
    if part.kind == "b":
        text = text.replace(b"true", b"1").replace(b"false", b"0")
    flat = text.translate(None, b"[]()")
    count = n * 2 if is_complex else n
    if part.is_float:
        values = _floats(flat, part, count)
    else:
        values = _integers(flat, part, count)
    return values.view(dtype.np) if is_complex else values


def _scan(flat: bytes, np_type: Any, count: int) -> Any:
    """`count` numbers separated by commas, by numpy; None if the text is not plainly that."""
    if flat.translate(None, _NUMERIC):
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            values = np.fromstring(flat.decode(), np_type, sep=",")
        except (ValueError, DeprecationWarning):
            return None
    return values if len(values) == count else None


def _floats(flat: bytes, dtype: DType, count: int) -> Any:
    values = _scan(flat, np.float64, count)
    if values is not None:
        return round_to(values, dtype)
    out = np.zeros(count, dtype.np)
    bits = out.view(f"u{dtype.itemsize}")
    for i, item in enumerate(flat.split(b",")):
        item = item.strip()
        if item[:2] in (b"0x", b"0X"):
            bits[i] = _hex_word(item, dtype.bits)
        else:
            out[i] = round_to(np.array([_float(item)]), dtype)[0]
    return out


def _shown(item: bytes) -> str:
    """The start of an element for a message."""
    return item[:40].decode(errors="replace")


def _float(item: bytes) -> float:
    if item.translate(None, _NUMERIC):
        raise Error(f"'{_shown(item)}' is not a floating-point number")
    try:
        return float(item)
    except ValueError:
        raise Error(f"'{_shown(item)}' is not a floating-point number") from None


def round_to(values: Any, dtype: DType) -> Any:
    """float64 values rounded once to `dtype` (overflow gives infinity, as in MLIR)."""
    with np.errstate(all="ignore"):
        if dtype.bits >= 32:
            return values.astype(dtype.np)
        from hilo.ops.numeric import narrow

        return narrow(values, dtype)


def _hex_word(item: bytes, bits: int) -> int:
    try:
        word = int(item, 16)
    except ValueError:
        raise Error(f"'{_shown(item)}' is not a hex number") from None
    if word < 0 or word >> bits:
        raise Error(f"'{_shown(item)}' has more than {bits} bits")
    return word


def _integers(flat: bytes, dtype: DType, count: int) -> Any:
    """Integers in the signed or unsigned range of their width (`i8` takes 255, as in MLIR), wrapped to `dtype`."""
    low = 0 if dtype.kind in "bu" else -(1 << (dtype.bits - 1))
    high = (1 << dtype.bits) - 1
    values = _scan(flat, np.int64, count) if b"." not in flat and b"e" not in flat else None
    extreme = np.iinfo(np.int64)
    if values is None or (dtype.bits == 64 and bool(((values == extreme.max) | (values == extreme.min)).any())):
        values = _slow_integers(flat, dtype, low, high)
    if dtype.bits < 64:
        bad = (values < low) | (values > high)
    else:  # u64 read as i64; the slow way has checked its range itself
        bad = (values < 0) & (dtype.kind == "u" and values.dtype == np.int64)
    if bool(bad.any()):
        raise Error(f"the integer {values[bad][0]} is out of the range of {dtype}")
    return values.astype(np.int8).astype(dtype.np) if dtype.bits < 8 and dtype.is_int else values.astype(dtype.np)


def _slow_integers(flat: bytes, dtype: DType, low: int, high: int) -> Any:
    numbers = []
    for item in flat.split(b","):
        item = item.strip()
        digits = item.removeprefix(b"-")
        if digits[:2] in (b"0x", b"0X"):
            number = _hex_word(digits, dtype.bits) * (-1 if digits is not item and item[:1] == b"-" else 1)
        elif digits.isdigit() and len(digits) < 40:
            number = int(item)
        else:
            raise Error(f"'{_shown(item)}' is not an integer")
        if not low <= number <= high:
            raise Error(f"the integer {number} is out of the range of {dtype}")
        numbers.append(number if number < 1 << 63 or dtype.kind == "u" else number - (1 << 64))
    return np.array(numbers, np.uint64 if dtype.kind == "u" and dtype.bits == 64 else np.int64)


def nested_tuple(a: Any) -> Any:
    """An integer or boolean array as nested tuples of Python values."""
    if a.ndim == 0:
        return a.item() if a.dtype != i64.np else int(a)
    if a.ndim == 1:
        return tuple(a.tolist())
    return tuple(nested_tuple(x) for x in a)


# -- printing -----------------------------------------------------------------------------------


def print_dense(a: Array, elide: int | None = None) -> str:
    """`dense<...>` for the array; more than `elide` elements are replaced by `...` (which does not parse again)."""
    data, t = a.data, a.type
    if data.size == 0:
        return "dense<>"
    if a.is_splat:
        return f"dense<{_print_element(a.scalar, t.dtype)}>"
    if elide is not None and data.size > elide:
        return "dense<...>"
    if data.size > _HEX_FROM and t.dtype.bits >= 8:
        return f'dense<"0x{data.tobytes().hex().upper()}">'
    return f"dense<{_print_list(data, t.dtype)}>"


def _print_list(data: Any, dtype: DType) -> str:
    if data.ndim == 0:
        return _print_element(data[()], dtype)
    return f"[{', '.join(_print_list(x, dtype) for x in data)}]"


def _print_element(x: Any, dtype: DType) -> str:
    if dtype.kind == "b":
        return "true" if x else "false"
    if dtype.kind == "c":
        return f"({print_float(x.real, dtype.part)},{print_float(x.imag, dtype.part)})"
    return print_float(x, dtype) if dtype.is_float else str(int(x))


def print_float(x: Any, dtype: DType) -> str:
    """A number that reads back as exactly `x` of type `dtype`; what is not finite is a hex word of its bits."""
    value = float(x)
    if value - value != 0.0:
        bits = int(np.array(x, dtype.np).view(f"u{dtype.itemsize}")[()])
        return f"0x{bits:0{(dtype.bits + 3) // 4}X}"
    text = f"{value:.6e}"
    if float(text) == value or (dtype.bits <= 32 and dtype.np.type(float(text)) == x):
        return text
    text = str(x) if dtype.bits == 32 else repr(value)
    mantissa, e, exponent = text.partition("e")
    return f"{mantissa if '.' in mantissa else mantissa + '.0'}{e}{exponent}"
