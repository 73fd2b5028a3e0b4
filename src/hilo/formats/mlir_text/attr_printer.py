"""Attributes as MLIR text, the inverse of `attributes`. Imports the schema, types, dense and ir."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any, Final

from hilo.formats.mlir_text import schema
from hilo.formats.mlir_text.dense import print_dense, print_float
from hilo.formats.mlir_text.lexer import quote
from hilo.formats.mlir_text.types import print_type
from hilo.ir.dtypes import f32, f64
from hilo.ir.module import Function
from hilo.ir.op import Array, Attrs, Op, Opaque
from hilo.ir.types import Type


def symbol(name: str) -> str:
    """`@name`, quoted where it must be."""
    if "::@" in name:
        return "::".join(map(symbol, name.split("::@")))
    plain = name.replace("_", "a").replace(".", "a").replace("$", "a")
    return f"@{name}" if plain.isascii() and plain.isalnum() and not name[0].isdecimal() else f"@{quote(name)}"


def key(name: str) -> str:
    """The name of an attribute; the leading dot of a discardable one without a dialect is not part of the text."""
    name = name.removeprefix(".")
    plain = name.replace("_", "a").replace(".", "a").replace("$", "a")
    return name if plain.isascii() and plain.isalnum() and not name[0].isdecimal() else quote(name)


def by_type(v: Any) -> str:
    """An attribute written as its Python type suggests."""
    if isinstance(v, Opaque):
        return str(v)
    if isinstance(v, bool):
        return "true" if v else "false"
    if isinstance(v, int):
        return f"{v} : i64"
    if isinstance(v, float):
        return f"{print_float(v, f64)} : f64"
    if isinstance(v, str):
        return quote(v)
    if isinstance(v, Attrs):
        return f"{{{', '.join(f'{key(k)} = {by_type(x)}' for k, x in v.items())}}}"
    if isinstance(v, tuple):
        return f"[{', '.join(map(by_type, v))}]"
    if isinstance(v, Array):
        return f"{print_dense(v)} : {print_type(v.type)}"
    return print_type(v) if isinstance(v, Type) else quote(repr(v))


def _integers(v: tuple[int, ...]) -> str:
    return f"array<i64: {', '.join(map(str, v))}>" if v else "array<i64>"


def _bools(v: tuple[bool, ...]) -> str:
    return f"array<i1: {', '.join(str(bool(x)).lower() for x in v)}>" if v else "array<i1>"


def _symbols(v: tuple[str, ...]) -> str:
    return f"[{', '.join(map(symbol, v))}]"


def _nested(v: Any) -> str:
    return f"[{', '.join(map(_nested, v))}]" if isinstance(v, tuple) else str(v)


def _dense(v: Any) -> str:
    """Pairs, or rows of equal length, of integers."""
    if not isinstance(v, tuple):
        return by_type(v)
    if not v:
        return "dense<> : tensor<0x2xi64>"
    if not isinstance(v[0], tuple):
        return f"dense<{_nested(v)}> : tensor<{len(v)}xi64>"
    return f"dense<{_nested(v) if v[0] else ''}> : tensor<{len(v)}x{len(v[0])}xi64>"


def _index_list(v: tuple[int, ...]) -> str:
    return f"dense<{_nested(v) if v else ''}> : tensor<{len(v)}xindex>"


def _channel(v: tuple[int, int]) -> str:
    return f"#stablehlo.channel_handle<handle = {v[0]}, type = {v[1]}>"


def _accuracy(v: str) -> str:
    mode, *numbers = v.split(" ")
    parts = []
    for item in numbers:
        name, _, number = item.partition("=")
        parts.append(f"{name} = {number if name == 'ulps' else print_float(float(number), f64)}")
    parts.append(f"mode = #stablehlo.result_accuracy_mode<{mode}>")
    return f"#stablehlo.result_accuracy<{', '.join(parts)}>"


def _alias(v: Any) -> str:
    if not isinstance(v, Attrs):
        return by_type(v)
    fields = ", ".join(f"{k} = {list(x) if isinstance(x, tuple) else x}" for k, x in v.items())
    return f"#stablehlo.output_operand_alias<{fields}>"


def _algorithm(v: tuple[Any, ...]) -> str:
    pairs = zip(schema.STRUCTS["dot_algorithm"], v, strict=True)
    fields = (f"{k} = {str(x).lower() if isinstance(x, bool) else x}" for k, x in pairs)
    return f"#stablehlo.dot_algorithm<{', '.join(fields)}>"


_HOW: Final[dict[str, Callable[[Any], str]]] = {
    "i32": lambda v: f"{int(v)} : i32",
    "i64": lambda v: f"{int(v)} : i64",
    "f32": lambda v: f"{print_float(v, f32)} : f32",
    "bool": lambda v: "true" if v else "false",
    "i64s": _integers,
    "bools": _bools,
    "dense": _dense,
    "symbol": symbol,
    "symbols": _symbols,
    "symbol_rows": lambda v: f"[{', '.join(map(_symbols, v))}]",
    "layouts": lambda v: f"[{', '.join(map(_index_list, v))}]",
    "tilings": lambda v: f"[{', '.join('[' + ', '.join(map(_index_list, t)) + ']' for t in v)}]",
    "list": lambda v: f"[{', '.join(map(_alias, v))}]" if isinstance(v, tuple) else by_type(v),
    "dot_algorithm": _algorithm,
    "channel_handle": _channel,
    "result_accuracy": _accuracy,
}


def attribute(name: str, v: Any, dialect: str = "stablehlo") -> str:
    """The text of attribute `name` of an op of `dialect`."""
    how = schema.HOW.get(name, "")
    if isinstance(v, Opaque):
        return str(v)
    if how.startswith("enum ") and isinstance(v, str):
        return f"#{dialect}<{how[5:]} {v}>"
    if how.startswith("enums "):
        return f"[{', '.join(f'#{dialect}<{how[6:]} {x}>' for x in v)}]"
    return _HOW.get(how, by_type)(v)


def entries(op: Op, skip: Collection[str]) -> tuple[list[str], list[str]]:
    """An op's attributes as `name = value` texts: inherent ones without those in `skip`, and
    discardable ones, both sorted."""
    own: list[str] = []
    discardable: list[str] = []
    holder, kind = schema.HOLDER.get(op.name, ("", ""))
    spread: tuple[str, ...] = () if not holder else schema.CONV_FIELDS if kind == "conv" else tuple(schema.SPREAD[kind])
    for name, value in op.attrs.items():
        if "." in name:
            text = attribute(name, value)
            discardable.append(key(name) if text == "unit" or value is True else f"{key(name)} = {text}")
        elif name in spread and name not in skip:
            if name == next(iter(spread)):
                own.append(f"{holder} = {_spread(kind, spread, op.attrs)}")
        elif name in skip or _left_out(op, name, value):
            continue
        elif schema.HOW.get(name) == "unit":
            own.extend([name] if value else [])
        else:
            own.append(f"{key(name)} = {attribute(name, value, 'chlo' if op.kind.dialect == 'chlo' else 'stablehlo')}")
    return sorted(own), sorted(discardable)


def _left_out(op: Op, name: str, value: Any) -> bool:
    if value is None or isinstance(value, Function) or name == "type":
        return True
    if isinstance(value, tuple) and value and isinstance(value[0], Function):
        return True
    return name in schema.OPTIONAL and name in op.kind.attrs and op.kind.attrs[name] == value


def _spread(kind: str, fields: tuple[str, ...], attrs: Attrs) -> str:
    if kind == "conv":
        from hilo.formats.mlir_text.convolution import print_dim_numbers

        return f"#stablehlo.conv<{print_dim_numbers(attrs)}>"
    shown = [(f, attrs[f]) for f in fields if f in attrs and (attrs[f] != () or kind == "ragged_dot")]
    dialect = "chlo" if kind == "ragged_dot" else "stablehlo"
    return f"#{dialect}.{kind}<{', '.join(f'{f} = {list(v) if isinstance(v, tuple) else v}' for f, v in shown)}>"
