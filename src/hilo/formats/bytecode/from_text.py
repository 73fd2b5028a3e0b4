"""Attributes that the IR keeps as MLIR text, as values that bytecode can hold.

Imports its siblings, mlir_text and ir.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from hilo.errors import Error, Unsupported
from hilo.formats.bytecode.entries import element
from hilo.formats.bytecode.tables import VHLO_SCALARS
from hilo.formats.bytecode.values import UNIT, Dense, Float, FunctionType, Integer, Symbol, Text, Value
from hilo.formats.mlir_text.attributes import parse_elements, raw_attribute
from hilo.formats.mlir_text.cursor import Cursor
from hilo.formats.mlir_text.dense import round_to
from hilo.formats.mlir_text.lexer import Source
from hilo.formats.mlir_text.types import parse_function_type, parse_type
from hilo.ir.dtypes import DType, f64, i64
from hilo.ir.op import Array, Attrs
from hilo.ir.types import OpaqueType, TensorType, Type

_TYPES: Final = ("tuple", "complex", "memref", *VHLO_SCALARS.values())


def value_of(text: str) -> Value:
    """The value that is written as `text`; attributes of other dialects stay `Text`."""
    c = Cursor(Source(text, ""))
    value = _value(c)
    if c.tokens[c.at]:
        raise Error(f"'{text[:80]}' is no attribute")
    return value


def _value(c: Cursor) -> Value:
    with c.nested():
        token = c.tokens[c.at]
        first = token[:1]
        if first == '"':
            text = c.string()
            if c.accept(":"):
                parse_type(c)
                raise Unsupported("strings with a type have no portable encoding")
            return text
        if first.isdecimal() or first == "-":
            return _number(c)
        if token in ("true", "false", "unit"):
            c.take()
            return UNIT if token == "unit" else token == "true"
        if first == "@":
            return Symbol(c.symbol())
        if first == "[":
            c.take()
            return tuple(c.comma_list("]", lambda: _value(c)))
        if first == "{":
            return _dictionary(c)
        if token.startswith("dense<"):
            array = parse_elements(c)
            return dense(array, c.types.get(c.tokens[c.at - 1]))
        if first == "(":
            return FunctionType(*parse_function_type(c))
        if first == "!" or token.startswith("tensor<") or token in _TYPES:
            return element(parse_type(c))
        return Text(str(raw_attribute(c)))


def _dictionary(c: Cursor) -> Attrs:
    items: dict[str, Value] = {}

    def entry() -> None:
        name = c.string() if c.tokens[c.at][:1] == '"' else c.keyword("an attribute's name")
        items[name] = _value(c) if c.accept("=") else UNIT

    c.expect("{")
    c.comma_list("}", entry)
    return Attrs(items)


def _number(c: Cursor) -> Integer | Float:
    at = c.at
    try:
        return _typed_number(c)
    except ValueError:  # a sign alone, or thousands of digits
        raise c.error("expected a number", at) from None


def _typed_number(c: Cursor) -> Integer | Float:
    token = c.take()
    t: Any = element(parse_type(c)) if c.accept(":") else f64 if "." in token else i64
    if isinstance(t, DType) and t.is_float:
        is_hex = token.lstrip("-").startswith("0x")
        bits = int(token, 16) if is_hex else number_bits(float(token), t)
        return Float(bits & ((1 << t.bits) - 1), t)
    if "." in token or not (isinstance(t, DType) or (isinstance(t, OpaqueType) and t.text == "index")):
        raise Unsupported(f"the number {token} has a type without a portable encoding")
    value = int(token, 0)
    bits = t.bits if isinstance(t, DType) else 64
    if not -(1 << (bits - 1)) <= value < 1 << bits:
        raise c.error(f"{token[:40]} does not fit into {t!r}")
    return Integer(value, t)


def number_bits(x: float, t: DType) -> int:
    """The bits of a number rounded to the float type `t`."""
    rounded = np.asarray(round_to(np.array([x]), t), t.np)
    return int(rounded.view(f"u{t.itemsize}")[0])


def dense(a: Array, t: Type | None = None) -> Dense:
    """An array as an attribute, of type `t` where that says more than the array's own."""
    data, dtype = a.data, a.type.dtype
    if a.is_splat and data.size:
        data = data.reshape(-1)[:1]
    if dtype.kind == "b":
        if a.is_splat and data.size:
            packed = b"\xff" if data[0] else b"\0"
        else:
            packed = np.packbits(data.reshape(-1), bitorder="little").tobytes()
        return Dense(t or a.type, packed)
    raw = np.ascontiguousarray(data)
    if dtype.bits < 8:
        raw = raw.view(np.uint8) & np.uint8((1 << dtype.bits) - 1)
    return Dense(t or a.type, raw.tobytes())


def integers(values: Any, shape: tuple[int, ...], t: TensorType | None = None) -> Dense:
    """Integers (nested tuples of them) as dense elements of i64."""
    return Dense(t or TensorType(i64, shape), np.array(values, "<i8").tobytes())
