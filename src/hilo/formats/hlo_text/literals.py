"""Literals of constants, `{ { 1, 2 }, { 3, inf } }`, to arrays and back. Imports mlir_text's dense literals and ir."""

from __future__ import annotations

import re
from typing import Any, Final

import numpy as np

from hilo.errors import Error
from hilo.formats.hlo_text.model import Shape
from hilo.formats.mlir_text.dense import parse_dense
from hilo.ir.dtypes import DType
from hilo.ir.op import Array
from hilo.ir.types import TensorType

_COMMENT: Final = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)
_SPECIAL: Final = re.compile(r"(-?)(?:\b)(inf|nan(?:\s*\(\s*0[xX]([0-9a-fA-F]+)\s*\))?)(?!\w)")
_BRACES: Final = str.maketrans("{}", "[]")
_F32_MAX: Final = float(np.finfo(np.float32).max)
ELIDED: Final = (
    "the constant's elements are left out of the text ('{...}'); dump it whole: "
    "as_hlo_text(print_large_constants=True), to_string(HloPrintOptions.short_parsable()), "
    "or XLA_FLAGS=--xla_dump_large_constants"
)


def parse_literal(text: str, shape: Shape) -> list[Array]:
    """The arrays of a literal: one, or those of a tuple in order. Raises `Error` (without location)."""
    body = _COMMENT.sub(" ", text).strip() if "/" in text else text.strip()
    if "..." in body:
        raise Error(ELIDED)
    if not shape.is_tuple:
        return [_array(body, shape.type)]
    if body[:1] != "(" or body[-1:] != ")":
        raise Error("the literal of a tuple needs parentheses")
    items = _split(body[1:-1])
    if len(items) != len(shape.parts):
        raise Error(f"{len(items)} literals for a tuple of {len(shape.parts)}")
    return [a for item, part in zip(items, shape.parts, strict=True) for a in parse_literal(item, part)]


def _split(text: str) -> list[str]:
    """The items between commas that no bracket encloses."""
    items, depth, start = [], 0, 0
    for m in re.finditer(r"[(){},]", text):
        ch = m[0]
        if ch == "," and depth == 0:
            items.append(text[start : m.start()])
            start = m.end()
        elif ch != ",":
            depth += 1 if ch in "({" else -1
    return [*items, text[start:]] if items or text.strip() else []


def _array(body: str, t: Any) -> Array:
    if not isinstance(t, TensorType):
        raise Error(f"a value of type {t!r} has no literal")
    if t.rank and body[:1] != "{":
        raise Error("the literal of an array needs braces")
    if "[" in body or "]" in body:
        raise Error("a literal has braces, no brackets")
    if t.size == 0:
        if body.strip("{}, \n\t"):
            raise Error(f"elements in the literal of a {t!r}")
        return Array(np.zeros(t.shape, t.dtype.np))
    part = t.dtype.part
    if part.is_float and ("n" in body):  # inf, nan
        body = _SPECIAL.sub(lambda m: _special(m, part), body)
    return parse_dense(body.translate(_BRACES), t)


def _special(m: re.Match[str], dtype: DType) -> str:
    """Infinity or NaN as a hex word of its bits."""
    width = dtype.itemsize * 8
    with np.errstate(all="ignore"):
        try:
            value = np.array(np.inf if m[2] == "inf" else np.nan).astype(dtype.np)
        except (ValueError, OverflowError):
            raise Error(f"{dtype} has no {m[0]}") from None
    bits = int(value.view(f"u{dtype.itemsize}")[()])
    quiet = _nan_bits(dtype)
    if m[3]:
        mantissa = (1 << quiet[1]) - 1
        payload = int(m[3], 16)
        if payload > mantissa:
            raise Error(f"the payload of {m[0]} does not fit {dtype}")
        bits = (bits & ~mantissa) | payload if payload else bits
    sign = 1 << (dtype.bits - 1)
    if width == dtype.bits and (quiet[1] or np.isinf(float(value[()]))):  # a NaN of f8 may have but one sign
        bits = (bits & ~sign) | (sign if m[1] else 0)
    return f"0x{bits:X}"


def _nan_bits(dtype: DType) -> tuple[int, int]:
    """Bits of the quiet NaN, and the width of the mantissa (0 where there is nothing but one NaN), for wide floats."""
    widths = {"bf16": 7, "f16": 10, "f32": 23, "f64": 52}
    n = widths.get(dtype.name, 0)
    return (1 << (n - 1) if n else 0), n


# -- printing -----------------------------------------------------------------------------------


def print_literal(a: Array) -> str:
    """The text that `parse_literal` reads back as the same array."""
    t = a.type
    show = _printer(t.dtype)
    if t.rank == 0:
        return show(a.data[()])
    return _print_list(a.data, show)


def _print_list(data: Any, show: Any) -> str:
    if data.ndim == 1:
        return f"{{{', '.join(map(show, data))}}}"
    return f"{{ {', '.join(_print_list(x, show) for x in data)} }}"


def _printer(dtype: DType) -> Any:
    if dtype.kind == "b":
        return lambda x: "1" if x else "0"
    if dtype.is_complex:
        return lambda x: f"({_float(x.real, dtype.part)}, {_float(x.imag, dtype.part)})"
    if dtype.is_float:
        return lambda x: _float(x, dtype)
    return lambda x: str(int(x))


def _float(x: Any, dtype: DType) -> str:
    value = float(x)
    if value == value:
        if value in (np.inf, -np.inf):
            return "inf" if value > 0 else "-inf"
        text = str(x) if dtype.bits == 32 else repr(value)
        return text if abs(float(text)) < _F32_MAX else repr(value)  # the rounded end of a range is beyond it
    quiet, n = _nan_bits(dtype)
    if not n:
        return "nan"
    bits = int(np.array(x, dtype.np).view(f"u{dtype.itemsize}")[()])
    payload = bits & ((1 << n) - 1)
    return f"{'-' if bits >> (dtype.bits - 1) else ''}nan{'' if payload == quiet else f'(0x{payload:x})'}"
