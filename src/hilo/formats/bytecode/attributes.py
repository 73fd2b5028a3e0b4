"""Attributes of bytecode as the IR wants them: inherent ones as Python values, others as MLIR text.

The rules are those of the text parser, so that a program is the same whichever way it comes in. Imports mlir_text, ir.
"""

from __future__ import annotations

import struct
from math import prod
from typing import Any, Final

from hilo.errors import Error
from hilo.formats.bytecode.tables import API_VERSIONS
from hilo.formats.bytecode.types import spelled
from hilo.formats.bytecode.values import (
    Dense,
    DenseArray,
    Enum,
    Float,
    FunctionType,
    Integer,
    Struct,
    Symbol,
    Text,
    Unit,
    Value,
)
from hilo.formats.mlir_text import schema
from hilo.formats.mlir_text.attr_kinds import Spread, misfit
from hilo.formats.mlir_text.attr_printer import key, symbol
from hilo.formats.mlir_text.cursor import Cursor
from hilo.formats.mlir_text.dense import nested_tuple, print_dense, print_float
from hilo.formats.mlir_text.lexer import Source, quote
from hilo.formats.mlir_text.locations import print_loc
from hilo.ir.dtypes import DType, f64, i64
from hilo.ir.module import Loc
from hilo.ir.op import Attrs, Opaque
from hilo.ir.types import TensorType, Type

_MAX_TUPLE: Final = 1 << 20
_MAX_TEXT: Final = 1 << 22

# -- as text ------------------------------------------------------------------------------------


def text(value: Value) -> str:
    """The MLIR text of an attribute. Raises `Error` if it would be longer than a few megabytes."""
    found = _text(value)
    if len(found) > _MAX_TEXT:
        raise Error(f"an attribute whose text has more than {_MAX_TEXT} characters")
    return found


def _text(value: Value) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return quote(value)
    if isinstance(value, tuple):
        return f"[{', '.join(map(_text, value))}]"
    if isinstance(value, Attrs):
        items = ((key(k), _text(v)) for k, v in value.items())
        return f"{{{', '.join(k if v == 'unit' else f'{k} = {v}' for k, v in items)}}}"
    if isinstance(value, DType | Type | FunctionType):
        return spelled(value)
    if isinstance(value, Loc):
        return print_loc(value)
    if isinstance(value, Text):
        return value.text
    return _TEXTS[type(value)](value)


def _dense_text(value: Dense) -> str:
    array = value.array()
    if array.data.size > _MAX_TEXT // 8 and not array.is_splat:
        raise Error(f"an attribute of {array.data.size} elements that is kept as text")
    return f"{print_dense(array)} : {spelled(value.type)}"


def _array_text(value: DenseArray) -> str:
    dtype = value.type
    assert isinstance(dtype, DType)
    items = (str(x).lower() if isinstance(x, bool) else print_float(x, dtype) if isinstance(x, float) else str(x)
             for x in value.items)  # fmt: skip
    return f"array<{spelled(dtype)}{': ' if value.items else ''}{', '.join(items)}>"


def _struct_text(value: Struct) -> str:
    if value.kind == "replica_group_mesh_axes":
        return _mesh_axes_text(value.fields)
    if value.kind == "sub_axis_info":
        return f"({value.fields['pre_size']}){value.fields['size']}"
    fields = ((k, v) for k, v in value.fields.items() if v is not None)
    return f"#stablehlo.{value.kind}<{', '.join(f'{k} = {_field_text(v)}' for k, v in fields)}>"


def _field_text(v: Any) -> str:
    if isinstance(v, tuple):
        return f"[{', '.join(map(_field_text, v))}]"
    return print_float(v, f64) if isinstance(v, float) else str(v) if isinstance(v, int) else _text(v)


def _mesh_axes_text(fields: Attrs) -> str:
    """`#stablehlo.replica_group_mesh_axes<mesh = @mesh, axes = [#stablehlo.axis_ref<name = "x">]>`"""
    mesh = fields["mesh"]
    name = symbol(mesh) if isinstance(mesh, str) else _text(mesh)
    return f"#stablehlo.replica_group_mesh_axes<mesh = {name}, axes = {_text(fields['axes'])}>"


_TEXTS: Final[dict[type, Any]] = {
    Integer: lambda v: f"{v.value} : {spelled(v.type)}",
    Float: lambda v: f"{print_float(_as_scalar(v), v.type)} : {spelled(v.type)}",
    Dense: _dense_text,
    DenseArray: _array_text,
    Enum: lambda v: f"#stablehlo<{v.kind} {v.name}>",
    Struct: _struct_text,
    Symbol: lambda v: symbol(v.name),
    Unit: lambda v: "unit",
}


def _as_scalar(v: Float) -> Any:
    import numpy as np

    return np.array(v.bits, f"u{v.type.itemsize}").view(v.type.np)[()]


# -- as values ----------------------------------------------------------------------------------


def inherent(name: str, value: Value) -> Any:
    """The value of an op's own attribute `name`; a `Spread` for structs of dimension numbers. Raises `Error`."""
    if isinstance(value, Text):
        value = _parsed(value.text)
    elif name == "value":
        return value.array() if isinstance(value, Dense) else plain(value)
    elif name == "composite_attributes" or (name == "backend_config" and isinstance(value, Attrs)):
        value = dictionary(value)
    elif name == "api_version" and isinstance(value, Enum) and value.kind == name:
        value = API_VERSIONS.index(value.name)
    else:
        value = plain(value)
    wrong = misfit(name, value)
    if wrong:
        raise Error(f"attribute '{name}' must be {wrong}")
    return value


def plain(value: Value) -> Any:
    """An attribute as a Python value."""
    if isinstance(value, bool | str):
        return value
    if isinstance(value, tuple):
        return tuple([plain(v) for v in value])
    if isinstance(value, Attrs):
        return dictionary(value)
    convert = _PLAIN.get(type(value))
    return convert(value) if convert else Opaque(text(value))


def dictionary(value: Value) -> Attrs:
    """A dictionary attribute: strings, booleans, i64, f64 and dictionaries as values, the rest as text."""
    if not isinstance(value, Attrs):
        raise Error("an attribute must be a dictionary")
    return Attrs({k: _item(v) for k, v in value.items()})


def _item(value: Value) -> Any:
    if isinstance(value, bool | str):
        return value
    if isinstance(value, Attrs):
        return dictionary(value)
    if isinstance(value, Integer | Float) and spelled(value.type) in ("i64", "f64"):
        return value.value
    return True if isinstance(value, Unit) else Opaque(text(value))


def _dense(value: Dense) -> Any:
    t = value.type
    if isinstance(t, TensorType) and t.dtype is i64 and t.rank == 1 and len(value.data) == 8 * t.size > 0:
        return struct.unpack(f"<{t.size}q", value.data)
    array = value.array()
    if array.type.dtype.kind not in "biu":
        return array
    if prod(max(d, 1) for d in array.data.shape) > _MAX_TUPLE:
        raise Error(f"an attribute of shape {array.data.shape} is too large")
    return nested_tuple(array.data)


def _struct(value: Struct) -> Any:
    kind, fields = value.kind, dict(value.fields)
    if kind in schema.SPREAD or kind == "conv":
        return Spread(fields)
    if kind == "channel_handle":
        return fields["handle"], fields["type"]
    if kind == "dot_algorithm":
        return tuple(spelled(v) if k.endswith("_type") else v for k, v in fields.items())
    if kind == "output_operand_alias":
        return Attrs(fields)
    if kind == "result_accuracy":
        mode = fields["mode"]
        numbers = (f"{k}={fields[k]!r}" for k in ("atol", "rtol", "ulps") if fields[k])
        return " ".join([mode.name if isinstance(mode, Enum) else "", *numbers])
    return Opaque(text(value))


_PLAIN: Final[dict[type, Any]] = {
    Integer: lambda v: v.value,
    Float: lambda v: v.value,
    Dense: _dense,
    DenseArray: lambda v: v.items,
    Enum: lambda v: v.name,
    Struct: _struct,
    Symbol: lambda v: v.name,
    Text: lambda v: _parsed(v.text),
    Unit: lambda v: True,
}


def _parsed(source: str) -> Any:
    """An attribute that the file holds as text."""
    from hilo.formats.mlir_text.attributes import parse_attribute

    try:
        c = Cursor(Source(source, ""))
        value = parse_attribute(c)
        if c.tokens[c.at]:
            raise c.expected("the end of the attribute")
    except Error as e:
        raise type(e)(f"the attribute '{source[:80]}': {e.message}") from None
    return value


def discardable(name: str, value: Value) -> tuple[str, Opaque]:
    """An attribute that is not the op's own, under a name with a dot, as its text."""
    return name if "." in name else f".{name}", Opaque(text(value))
