"""Types in MLIR text: `tensor<...>`, `tuple<...>`, tokens, function types, and others kept as text.

`index` elements are i64 with the encoding `index`. Bounds (`#stablehlo.bounds<4, ?>`) become bounded dims. Imports the
cursor and ir.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from hilo.errors import Error
from hilo.formats.mlir_text.cursor import Cursor
from hilo.ir.dtypes import DType, from_mlir, i64
from hilo.ir.types import (
    TOKEN,
    UNKNOWN,
    Dim,
    FutureType,
    OpaqueType,
    Results,
    TensorType,
    TupleType,
    Type,
    UnrankedType,
    bounded,
)
from hilo.later import Later

if TYPE_CHECKING:
    from hilo.ir import quantized
else:
    quantized = Later("hilo.ir.quantized")

_UNRANKED = r"\*\s*x\s*"
_BOUNDS = r"#(?:stablehlo|mhlo)\.(?:bounds<([^<>]*)>|type_extensions<\s*bounds\s*=\s*\[([^\]]*)\]\s*>)"
_COMPLEX = r"complex<\s*(\w+)\s*>"
_BUILTIN = r"(?:[su]?i\d+|f\d\w*|bf16|tf32|index|none)\Z"
_MAX_RANK = 1024


def parse_type(c: Cursor) -> Type:
    """The type at the cursor; unknown dialects' types become `OpaqueType`s."""
    token = c.tokens[c.at]
    known = c.types.get(token)
    if known is not None:
        c.at += 1
        return known
    if token.startswith("tensor<"):
        try:
            t = _tensor(token[7:-1].strip(), c)
        except Error as e:
            raise e.at(c.here(), c.op) from None
        c.types[token] = t
        c.at += 1
        return t
    with c.nested():
        if token == "tuple":
            c.take()
            c.expect("<")
            return TupleType(c.comma_list(">", lambda: parse_type(c)))
        if token[:1] == "!":
            return _dialect_type(c)
        if token == "complex" or re.match(_BUILTIN, token) or token in ("memref", "vector", "tensor"):
            c.take()
            return OpaqueType(token + (c.balanced() if c.tokens[c.at] == "<" else ""))
    raise c.expected("a type")


def parse_types(c: Cursor) -> tuple[Type, ...]:
    """`(T, T)` or a single `T`: the result side of a function type."""
    if c.accept("("):
        return tuple(c.comma_list(")", lambda: parse_type(c)))
    return (parse_type(c),)


def parse_function_type(c: Cursor) -> tuple[tuple[Type, ...], tuple[Type, ...]]:
    """`(T, T) -> T` as operand types and result types."""
    c.expect("(")
    operands = tuple(c.comma_list(")", lambda: parse_type(c)))
    c.expect("->")
    return operands, parse_types(c)


def _dialect_type(c: Cursor) -> Type:
    name = c.take()
    if name in ("!stablehlo.token", "!mhlo.token"):
        return TOKEN
    if name == "!stablehlo.future":
        return _future(c)
    if name.startswith("!stablehlo."):
        c.at -= 1
        raise c.error(f"{name} is no type of StableHLO, whose own are !stablehlo.token and !stablehlo.future<...>")
    if c.tokens[c.at] == "<":
        return OpaqueType(name + c.balanced())
    start = c.aliases.get(name)
    if start is None:
        return OpaqueType(name)
    known = c.alias_values.get(("type", name))
    if known is None:
        back, c.at = c.at, start
        known = parse_type(c)
        if not c.is_bounded(known, lambda t: t.types if isinstance(t, TupleType) else ()):
            raise c.error(f"the type {name} nests too deeply, or holds more than a million others", start)
        c.alias_values["type", name] = known
        c.at = back
    return known


def _future(c: Cursor) -> Type:
    """`!stablehlo.future<T, ...>`, whose types are tensors."""
    start = c.at
    c.expect("<")
    types = c.comma_list(">", lambda: parse_type(c))
    wrong = next((t for t in types if not isinstance(t, TensorType)), None)
    if wrong is not None:
        raise c.error(f"the types of a future are tensors, not {print_type(wrong)}", start)
    if not types:
        raise c.error("a future without a type", start)
    return FutureType(types)


def _tensor(body: str, c: Cursor) -> Type:
    """The tensor type with this text between its angle brackets."""
    if body.startswith("*") and (m := re.compile(_UNRANKED).match(body)):
        return UnrankedType(_element(body[m.end() :].strip(), None, c)[0])
    shape: list[int | Dim] = []
    rest = body
    while True:
        extent, x, behind = rest.partition("x")
        extent = extent.strip()
        if not x or not (extent == "?" or extent.isdecimal()):
            break
        shape.append(UNKNOWN if extent == "?" else _extent(extent))
        if len(shape) > _MAX_RANK:
            raise Error(f"a tensor type of more than {_MAX_RANK} dimensions")
        rest = behind
    element, encoding = _split(rest.strip())
    dtype, encoding = _element(element, encoding, c)
    if encoding is not None and (m := re.compile(_BOUNDS).fullmatch(encoding)):
        shape, encoding = _bounded_shape(shape, m[1] or m[2] or ""), None
    t = TensorType(dtype, shape, encoding)
    if dtype.kind == "q":
        quantized.check_fits(t)
    return t


def _extent(text: str) -> int:
    if len(text) > 19 or int(text) >= 1 << 63:
        raise Error(f"dimension size {text[:24]} does not fit 64 bits")
    return int(text)


def _split(text: str) -> tuple[str, str | None]:
    """Element type and encoding (None if there is none) of `element, encoding`; commas inside `<>` do not separate."""
    level = 0
    for i, ch in enumerate(text):
        level += (ch == "<") - (ch == ">")
        if ch == "," and level == 0:
            return text[:i].rstrip(), text[i + 1 :].strip()
    return text, None


def _element(text: str, encoding: str | None, c: Cursor) -> tuple[DType, str | None]:
    if dtype := from_mlir(text):
        return dtype, encoding
    is_complex = text.startswith("complex") and re.compile(_COMPLEX).fullmatch(text)
    if is_complex and (dtype := from_mlir(f"complex<{is_complex[1]}>")):
        return dtype, encoding
    if text == "index":
        return i64, "index" if encoding is None else f"index, {encoding}"
    if text in c.aliases and text[:1] == "!":
        start = c.aliases[text]
        text = c.source.slice(start, _end_of_type(c, start))
    if text.startswith("!quant."):
        return quantized.parse(text), encoding
    if text[:2] == "si" and (dtype := from_mlir(text[1:])):
        return dtype, encoding
    raise Error(f"'{text[:60]}' is not an element type that is known here" if text else "the element type is missing")


def _end_of_type(c: Cursor, start: int) -> int:
    """The last token of the alias definition that starts at token `start`."""
    back, c.at = c.at, start
    c.take()
    if c.tokens[c.at] == "<":
        c.balanced()
    end, c.at = c.at - 1, back
    return end


def _bounded_shape(shape: list[int | Dim], text: str) -> list[int | Dim]:
    bounds = [b.strip() for b in text.split(",")] if text.strip() else []
    if len(bounds) != len(shape):
        raise Error(f"{len(bounds)} bounds for {len(shape)} dimensions")
    new: list[int | Dim] = []
    for d, b in zip(shape, bounds, strict=True):
        if b == "?":
            new.append(d)
        elif not b.isdecimal() or isinstance(d, int):
            raise Error(f"bound {b!r} for dimension {d}: only a ? can have a bound, which is an integer")
        else:
            new.append(bounded(_extent(b)))
    return new


def print_type(t: Type) -> str:
    """The MLIR text of a type."""
    if isinstance(t, TensorType):
        return _print_tensor(t)
    if isinstance(t, TupleType):
        return f"tuple<{', '.join(map(print_type, t.types))}>"
    if isinstance(t, FutureType):
        return f"!stablehlo.future<{', '.join(map(print_type, t.types))}>"
    if isinstance(t, Results):
        return print_result_types(t.types)
    assert isinstance(t, OpaqueType), t
    return t.text


def _print_tensor(t: TensorType) -> str:
    dims = "".join(f"{d}x" if isinstance(d, int) else "?x" for d in t.shape)
    element, encoding = t.dtype.mlir, t.encoding
    if encoding is not None and encoding.split(",")[0] == "index":
        element, encoding = "index", encoding.partition(", ")[2] or None
    if any(isinstance(d, Dim) and d.bound is not None for d in t.shape):
        bounds = (str(d.bound) if isinstance(d, Dim) and d.bound is not None else "?" for d in t.shape)
        encoding = f"#stablehlo.bounds<{', '.join(bounds)}>"
    return f"tensor<{dims}{element}{f', {encoding}' if encoding else ''}>"


def print_result_types(types: tuple[Type, ...]) -> str:
    """`T` for one type, `(T, T)` for several, `()` for none."""
    if len(types) == 1:
        return print_type(types[0])
    return f"({', '.join(map(print_type, types))})"


def print_function_type(operands: tuple[Type, ...], results: tuple[Type, ...]) -> str:
    return f"({', '.join(map(print_type, operands))}) -> {print_result_types(results)}"
