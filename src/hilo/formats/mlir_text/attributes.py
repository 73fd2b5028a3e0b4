"""Attributes in MLIR text, to the Python values of the IR's contract. Imports the cursor, types, dense, schema and ir.

Attributes of other dialects (dotted names) are kept as text. Integers of any width become ints, integer arrays and
dense integer elements tuples, enums strings; structs of dimension numbers are spread over the op's attributes.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from hilo.errors import Error, Unsupported
from hilo.formats.mlir_text import schema
from hilo.formats.mlir_text.attr_kinds import Spread, misfit
from hilo.formats.mlir_text.cursor import Cursor
from hilo.formats.mlir_text.structs import enum, struct_fields
from hilo.formats.mlir_text.types import parse_function_type, parse_type
from hilo.ir.dtypes import f64, from_mlir, i64
from hilo.ir.op import Array, Attrs, Opaque
from hilo.ir.types import TensorType
from hilo.later import Later

if TYPE_CHECKING:
    from hilo.formats.mlir_text import dense
else:
    dense = Later("hilo.formats.mlir_text.dense")

_MAX_TUPLE = 1 << 20  # elements of a dense integer attribute that becomes a tuple


def parse_dict(c: Cursor) -> dict[str, Any]:
    """`{a = 1 : i64, flag, x.y = ...}`; an empty dict if the cursor is not at `{`."""
    attrs: dict[str, Any] = {}
    if not c.accept("{"):
        return attrs
    with c.nested():
        c.comma_list("}", lambda: _entry(c, attrs))
    return attrs


def _entry(c: Cursor, attrs: dict[str, Any]) -> None:
    start = c.at
    name = c.string() if c.tokens[c.at][:1] == '"' else c.keyword("an attribute's name")
    if name not in schema.INHERENT:  # discardable; without a dialect it gets a dot, so that no op definition sees it
        name = name if "." in name else f".{name}"
        value: Any = raw_attribute(c) if c.accept("=") else Opaque("unit")
    elif not c.accept("="):
        value = True
    elif name == "value":
        value = parse_elements(c) if c.tokens[c.at].startswith("dense") else _typed_number(c)
    else:
        value = parse_attribute(c)
    wrong = misfit(name, value)
    if wrong:
        raise c.error(f"attribute '{name}' must be {wrong}", start)
    if isinstance(value, Spread):
        clash = next((k for k in value if k in attrs), None)
        if clash:
            raise c.error(f"attribute '{clash}' is given twice", start)
        attrs.update(value)
        return
    if name in attrs:
        raise c.error(f"attribute '{name.lstrip('.')}' is given twice", start)
    attrs[name] = value


def raw_attribute(c: Cursor) -> Opaque:
    """Any attribute as its text, with aliases replaced by what they stand for. StableHLO's own must be well-formed."""
    first = c.at
    if _struct_kind(c):
        parse_attribute(c)
    else:
        skip_attribute(c)
    last = c.at - 1
    if not c.aliases or not any(c.tokens[i] in c.aliases for i in range(first, last + 1)):
        return Opaque(c.source.slice(first, last))
    with c.nested():
        parts = []
        for i in range(first, last + 1):
            if i > first:
                gap = c.source.starts[i] - c.source.starts[i - 1] - len(c.tokens[i - 1])
                parts.append(" " * min(gap, 1))
            token = c.tokens[i]
            if token in c.aliases:
                token = _alias_text(c, token)
                c.at = last + 1
            parts.append(token)
            if sum(map(len, parts)) > 1 << 20:
                raise c.error("attribute aliases expand to more than a megabyte", first)
    return Opaque("".join(parts))


def _alias_text(c: Cursor, name: str) -> str:
    """What an alias stands for, as text; worked out once, as aliases of aliases may double each time."""
    key = ("text", name)
    if key not in c.alias_values:
        c.at = c.aliases[name]
        c.alias_values[key] = str(raw_attribute(c))
    return c.alias_values[key]


def skip_attribute(c: Cursor) -> None:
    """Move over any attribute or type, with a trailing `: type` if it has one."""
    with c.nested():
        token = c.take()
        if token in ("[", "{", "("):
            c.at -= 1
            c.balanced()
            if token == "(" and c.accept("->"):
                skip_attribute(c)
        elif not token or token in (")", "]", "}", ">", ",", "=", ":", "->", "<"):
            c.at -= 1 if token else 0
            raise c.expected("an attribute")
        while c.tokens[c.at] in ("<", "(") and (token[0] in "#!" or token[0].isalpha()):
            c.balanced()
        while c.tokens[c.at : c.at + 2] == [":", ":"]:
            c.at += 2
            c.symbol()
        may_have_type = token[0] in '"-[' or token[0].isdecimal() or token[:5] in ("dense", "true", "spars")
        if c.tokens[c.at] == ":" and may_have_type:
            c.take()
            skip_attribute(c)


def parse_attribute(c: Cursor) -> Any:
    """The attribute at the cursor as a Python value."""
    with c.nested():
        token = c.tokens[c.at]
        first = token[:1]
        if first == '"':
            at, value = c.at, c.string()
            if c.tokens[c.at] == ":":
                raise c.error("a string with a type has no meaning in StableHLO", at)
            return value
        if first.isdecimal() or first == "-":
            return _number(c)
        if first == "@":
            return c.symbol()
        if first == "[":
            c.take()
            return tuple(c.comma_list("]", lambda: parse_attribute(c)))
        if first == "{":
            return parse_plain_dict(c)
        if first == "#":
            return _dialect_attribute(c)
        if token in ("true", "false", "unit"):
            c.take()
            if token != "unit" and c.accept(":"):
                parse_type(c)
            return token != "false"
        if token.startswith("dense<") or token.startswith("dense_resource<"):
            value = parse_elements(c)
            if value.type.dtype.kind in "biu":
                if prod(max(d, 1) for d in value.data.shape) > _MAX_TUPLE:
                    raise c.error(f"an attribute of shape {value.data.shape} is too large")
                return dense.nested_tuple(value.data)
            return value
        if token.startswith("array<"):
            return _array(c)
        if first == "(":
            return Opaque(_text_of_function_type(c))
        if token in ("loc", "affine_map", "affine_set", "dense", "sparse", "opaque", "distinct", "strided"):
            return raw_attribute(c)
        return parse_type(c)


def parse_plain_dict(c: Cursor) -> Attrs:
    """A dictionary attribute: strings, booleans, i64, f64 and dictionaries as values; the rest is kept as text."""
    c.expect("{")
    attrs: dict[str, Any] = {}

    def entry() -> None:
        name = c.string() if c.tokens[c.at][:1] == '"' else c.keyword("an attribute's name")
        if name in attrs:
            raise c.error(f"attribute '{name}' is given twice")
        attrs[name] = _plain(c) if c.accept("=") else True

    with c.nested():
        c.comma_list("}", entry)
    return Attrs(attrs)


def _plain(c: Cursor) -> Any:
    start = c.at
    token = c.tokens[start]
    if token[:1] == "{":
        return parse_plain_dict(c)
    text = raw_attribute(c)
    end = c.at
    c.at = start
    if (end == start + 1 and (token[:1] == '"' or token in ("true", "false"))) or text.endswith((": i64", ": f64")):
        value = parse_attribute(c)
        if c.at == end and isinstance(value, str | bool | int | float):
            return value
    elif end == start + 1 and (token[:1].isdecimal() or token[:1] == "-"):
        return _number(c)
    c.at = end
    return text


def _number(c: Cursor) -> int | float:
    """`1 : i64`, `1.0 : f32`, `0x7F800000 : f32`, without a type i64 or f64."""
    start = c.at
    if not (c.tokens[start][:1].isdecimal() or c.tokens[start][:1] == "-"):
        raise c.expected("a number")
    token = c.take()
    t = parse_type(c) if c.accept(":") else None
    name = t.text if t is not None and hasattr(t, "text") else "" if t is None else repr(t)  # type: ignore[attr-defined]
    dtype = from_mlir(name) if name else None
    is_hex = token.lstrip("-")[:2] == "0x"
    if t is not None and dtype is None and name != "index":
        raise c.error(f"a number of type {name}", start)
    if "." in token or (dtype is not None and dtype.is_float):
        if dtype is not None and not dtype.is_float:
            raise c.error(f"'{token}' is not an integer", start)
        if is_hex and dtype is not None:
            try:
                return float(dense.parse_dense(token, TensorType(dtype)).scalar)
            except Error as e:
                raise c.error(e.message, start) from None
        value = float(token)
        return value if dtype is None or dtype.bits == 64 else float(dense.round_to(np.array([value]), dtype)[0])
    digits = token.lstrip("-")
    if not (is_hex or (digits.isascii() and digits.isdecimal())) or len(digits) > 40:
        raise c.error(f"'{token[:44]}' is not an integer", start)
    value = int(token, 16 if is_hex else 10)
    width = 64 if dtype is None else dtype.bits
    if not -(1 << (width - 1)) <= value < 1 << width:
        raise c.error(f"the integer {value} is out of the range of {name or 'i64'}", start)
    return bool(value & 1) if dtype is not None and dtype.kind == "b" else value


def _typed_number(c: Cursor) -> Array:
    """`1.5 : f32` or `true` as an array of rank 0; without a type i64 or f64."""
    start = c.at
    if c.tokens[start] in ("true", "false"):
        return Array(np.bool_(c.take() == "true"))
    value = _number(c)
    token = c.tokens[c.at - 1]
    t = TensorType(from_mlir(token) or (f64 if isinstance(value, float) else i64))
    return Array(np.asarray(value).astype(t.dtype.np)) if isinstance(value, bool) else dense.parse_dense(repr(value), t)


def parse_elements(c: Cursor) -> Array:
    """`dense<...> : tensor<...>` or `dense_resource<name> : tensor<...>`."""
    start = c.at
    token = c.take()
    if not token.startswith(("dense<", "dense_resource<")):
        c.at = start
        if token == "dense":
            raise c.error("a dense literal that is not closed or holds strings (neither numbers nor hex)")
        raise c.expected("a dense literal")
    c.expect(":")
    t = parse_type(c)
    if not isinstance(t, TensorType):
        raise c.error("a dense literal needs a tensor type", start)
    try:
        if token.startswith("dense<"):
            return dense.parse_dense(token[6:-1], t)
        return _resource(token[15:-1].strip(), t, c)
    except Error as e:
        raise c.error(e.message, start, type(e)) from None


def _resource(name: str, t: TensorType, c: Cursor) -> Array:
    if name not in c.resources:
        raise Unsupported(f"the file holds no data for dense_resource<{name}> (was it printed with elided resources?)")
    if not t.is_static:
        raise Error("a dense resource needs a static shape")
    return dense.from_bytes(c.resources[name], t)


def _array(c: Cursor) -> tuple[Any, ...]:
    """`array<i64: 1, 2>`"""
    token = c.take()
    element, colon, items = token[6:-1].partition(":")
    dtype = from_mlir(element.strip())
    if dtype is None or (items.strip() == "") == bool(colon):
        c.at -= 1
        raise c.error("a dense array is written array<type: numbers> or array<type>")
    if not colon:
        return ()
    try:
        values = dense.parse_dense(f"[{items}]", TensorType(dtype, (items.count(",") + 1,))).data
    except Error as e:
        c.at -= 1
        raise c.error(e.message) from None
    return tuple(values.astype(np.float64).tolist() if dtype.is_float else values.tolist())


def _text_of_function_type(c: Cursor) -> str:
    start = c.at
    parse_function_type(c)
    return c.source.slice(start, c.at - 1)


_DIALECTS: Final = ("stablehlo", "mhlo", "chlo")
_STRUCTS: Final = frozenset((*schema.STRUCTS, *schema.SPREAD, "conv", "result_accuracy", "result_accuracy_mode"))


def _struct_kind(c: Cursor) -> bool:
    """Whether a struct of StableHLO (`#stablehlo.gather<...>`) is at the cursor."""
    dialect, _, kind = c.tokens[c.at][1:].partition(".")
    return c.tokens[c.at][:1] == "#" and dialect in _DIALECTS and kind in _STRUCTS and c.tokens[c.at + 1] == "<"


def _dialect_attribute(c: Cursor) -> Any:
    """`#stablehlo<kind VALUE>`, `#stablehlo.kind<...>`, an alias, or another dialect's attribute as text."""
    start = c.at
    name = c.take()
    if name in c.aliases:
        known = c.alias_values.get(("attribute", name))
        if known is None:
            back, c.at = c.at, c.aliases[name]
            known = c.alias_values["attribute", name] = parse_attribute(c)
            c.at = back
        return known
    dialect, _, kind = name[1:].partition(".")
    if dialect in _DIALECTS:
        if not kind and c.accept("<"):
            kind = c.keyword("the attribute's kind")
            if c.tokens[c.at] == "<" and kind in _STRUCTS:
                value = _struct(c, kind)
            elif kind in schema.ENUMS:
                value = enum(c, kind)
            else:
                c.at = start
                return raw_attribute(c)
            c.expect(">")
            return value
        if kind in _STRUCTS:
            return _struct(c, kind)
    c.at = start
    return raw_attribute(c)


def _struct(c: Cursor, kind: str) -> Any:
    if kind == "conv":
        from hilo.formats.mlir_text.convolution import parse_dim_numbers

        c.expect("<")
        fields = parse_dim_numbers(c)
        c.expect(">")
        return Spread(fields)
    if kind == "result_accuracy_mode":
        c.expect("<")
        value = enum(c, kind)
        c.expect(">")
        return value
    if kind == "result_accuracy":
        return accuracy(c)
    fields = struct_fields(c, schema.SPREAD.get(kind) or schema.STRUCTS[kind])
    if kind in schema.SPREAD:
        return Spread(fields)
    return Attrs(fields) if kind == "output_operand_alias" else tuple(fields.values())


def accuracy(c: Cursor) -> str:
    """`<atol = 0.1, ulps = 2, mode = ...>`: "DEFAULT", "HIGHEST", or "TOLERANCE" with the numbers behind it."""
    c.expect("<")
    numbers: dict[str, Any] = {}
    mode = "DEFAULT"

    def field() -> None:
        nonlocal mode
        name = c.keyword("a field's name")
        c.expect("=")
        if name == "mode":
            mode = parse_attribute(c) if c.tokens[c.at][:1] == "#" else enum(c, "result_accuracy_mode")
        elif name in ("atol", "rtol", "ulps"):
            numbers[name] = _number(c)
        else:
            raise c.error(f"'{name}' is not a field of result_accuracy")

    start = c.at
    c.comma_list(">", field)
    if mode != "TOLERANCE" and any(numbers.values()):
        raise c.error(f"a result_accuracy of mode {mode} has no tolerances: they must be 0", start)
    if any(v < 0 for v in numbers.values()):
        raise c.error("the tolerances of a result_accuracy must not be negative", start)
    return " ".join([mode, *(f"{k}={v!r}" for k, v in numbers.items() if v)])
