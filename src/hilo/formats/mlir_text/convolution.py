"""Convolution: dimension numbers `[b, 0, f]x[0, i, o]->[b, 0, f]` and `window = {...}`. Imports its siblings and ir."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from hilo.formats.mlir_text import schema
from hilo.formats.mlir_text.attributes import parse_dict
from hilo.formats.mlir_text.cursor import Cursor
from hilo.formats.mlir_text.parser import Parser, Syntax
from hilo.formats.mlir_text.types import parse_function_type, print_function_type
from hilo.ir.op import Op
from hilo.ir.types import result_types

if TYPE_CHECKING:
    from hilo.formats.mlir_text.printer import Printer

# The letters of each side's two named dims, with the attribute that holds each.
_SIDES: Final = (
    ({"b": "input_batch_dimension", "f": "input_feature_dimension"}, "input_spatial_dimensions"),
    ({"i": "kernel_input_feature_dimension", "o": "kernel_output_feature_dimension"}, "kernel_spatial_dimensions"),
    ({"b": "output_batch_dimension", "f": "output_feature_dimension"}, "output_spatial_dimensions"),
)
_WINDOW: Final = {
    "stride": "window_strides",
    "pad": "padding",
    "lhs_dilate": "lhs_dilation",
    "rhs_dilate": "rhs_dilation",
    "reverse": "window_reversal",
}


def parse_dim_numbers(c: Cursor) -> dict[str, Any]:
    """`[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]`, or MLIR's `raw` form with the nine fields by name."""
    if c.tokens[c.at] == "raw":
        return _raw(c)
    fields: dict[str, Any] = {}
    for separator, (letters, spatial) in zip(("", "x", "->"), _SIDES, strict=True):
        if separator:
            c.expect(separator)
        _parse_side(c, letters, spatial, fields)
    return {name: fields[name] for name in schema.CONV_FIELDS}


def _parse_side(c: Cursor, letters: dict[str, str], spatial: str, fields: dict[str, Any]) -> None:
    start = c.at
    c.expect("[")
    places: dict[int, int] = {}
    position = 0

    def dim() -> None:
        nonlocal position
        token = c.tokens[c.at]
        name = letters.get(token)
        if name is not None and name not in fields:
            c.at += 1
            fields[name] = position
        elif token == "?":
            c.at += 1
        else:
            number = c.integer()
            if number in places or number < 0:
                raise c.error(f"spatial dimension {number} is negative or given twice")
            places[number] = position
        position += 1

    c.comma_list("]", dim)
    missing = [x for x, name in letters.items() if name not in fields]
    if missing:
        raise c.error(f"dimension '{missing[0]}' is missing", start)
    if sorted(places) != list(range(len(places))):
        raise c.error("the spatial dimensions are not numbered 0, 1, ...", start)
    fields[spatial] = tuple(places[i] for i in range(len(places)))


def _raw(c: Cursor) -> dict[str, Any]:
    c.take()
    fields: dict[str, Any] = {}

    def field() -> None:
        name = c.keyword("a field's name")
        c.expect("=")
        fields[name] = c.integers() if name.endswith("dimensions") else c.integer()
        c.accept(",")

    while c.tokens[c.at] in schema.CONV_FIELDS:
        field()
    missing = [name for name in schema.CONV_FIELDS if name not in fields]
    if missing:
        raise c.expected(f"the field '{missing[0]}'")
    return {name: fields[name] for name in schema.CONV_FIELDS}


def print_dim_numbers(attrs: Any) -> str:
    """The text that `parse_dim_numbers` reads."""
    sides = []
    for letters, spatial in _SIDES:
        dims: dict[int, str] = {attrs[name]: letter for letter, name in letters.items()}
        dims |= {d: str(i) for i, d in enumerate(attrs[spatial])}
        sides.append(f"[{', '.join(dims[i] for i in sorted(dims))}]")
    return f"{sides[0]}x{sides[1]}->{sides[2]}"


def _window_value(c: Cursor, key: str) -> tuple[Any, ...]:
    c.expect("[")
    if key == "pad":
        return tuple(c.comma_list("]", lambda: _pair(c)))
    if key == "reverse":
        return tuple(c.comma_list("]", lambda: _flag(c)))
    return tuple(c.comma_list("]", c.integer))


def _pair(c: Cursor) -> tuple[int, ...]:
    pair = c.integers()
    if len(pair) != 2:
        raise c.broken("C4", "padding is a pair [low, high] for each spatial dimension", c.at - 1)
    return pair


def _flag(c: Cursor) -> bool:
    token = c.tokens[c.at]
    if token not in ("true", "false", "0", "1"):
        raise c.expected("true or false")
    c.at += 1
    return token in ("true", "1")


def parse_convolution(p: Parser, name: str) -> Syntax:
    """`(%x, %w) dim_numbers = ..., window = {...} {attrs} : (T, T) -> T`"""
    p.expect("(")
    operands = p.operands()
    p.expect(")")
    p.expect("dim_numbers")
    p.expect("=")
    attrs = parse_dim_numbers(p)
    for token in (",", "window", "=", "{"):
        p.expect(token)

    def entry() -> None:
        key = p.keyword("a field of the window")
        if key not in _WINDOW or _WINDOW[key] in attrs:
            p.at -= 1
            raise p.expected(f"one of {', '.join(k for k, a in _WINDOW.items() if a not in attrs)}")
        p.expect("=")
        attrs[_WINDOW[key]] = _window_value(p, key)  # an empty list means the default, whatever the rank

    p.comma_list("}", entry)
    attrs = {k: v for k, v in attrs.items() if v != () or k not in _WINDOW.values()}
    attrs.update(parse_dict(p))
    p.expect(":")
    operand_types, results = parse_function_type(p)
    return Syntax(operands, attrs, operand_types, results)


def print_convolution(w: Printer, op: Op) -> str:
    window = []
    for key, attr in _WINDOW.items():
        value = op.attrs.get(attr)
        if value is not None and (attr not in op.kind.attrs or value != op.kind.attrs[attr]):
            items = (f"[{v[0]}, {v[1]}]" if key == "pad" else str(v).lower() for v in value)
            window.append(f"{key} = [{', '.join(items)}]")
    attrs = w.attr_dict(op, [*schema.CONV_FIELDS, *_WINDOW.values()])
    types = print_function_type(tuple(o.type for o in op.operands), result_types(op.type))
    operands = ", ".join(map(w.value, op.operands))
    shown = f"dim_numbers = {print_dim_numbers(op.attrs)}, window = {{{', '.join(window)}}}"
    return f"({operands}) {shown}{attrs} : {types}"
