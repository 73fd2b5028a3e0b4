"""The regular pretty forms as data: operands, `key = value` fields, how types are written. One table parses and prints.

`stablehlo.pad %x, %v, low = [0], high = [1], interior = [0] : (T, T) -> T`. Imports its siblings and ir.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from hilo.formats.mlir_text.attributes import parse_dict
from hilo.formats.mlir_text.cursor import Cursor
from hilo.formats.mlir_text.lexer import quote
from hilo.formats.mlir_text.names import BINARY, CHLO_BROADCAST, CHLO_UNARY, UNARY
from hilo.formats.mlir_text.parser import Parser, Syntax
from hilo.formats.mlir_text.schema import STRUCTS
from hilo.formats.mlir_text.structs import enum, struct_fields
from hilo.formats.mlir_text.types import (
    parse_function_type,
    parse_type,
    print_function_type,
    print_result_types,
    print_type,
)
from hilo.ir.op import Op
from hilo.ir.types import TensorType, TupleType, Type, result_types
from hilo.record import record

if TYPE_CHECKING:
    from hilo.formats.mlir_text.printer import Printer

# -- fields -------------------------------------------------------------------------------------


@record(frozen=True)
class Kind:
    """How the value of a field is read and written."""

    parse: Callable[[Cursor], Any]
    print: Callable[[Any], str]


def _bool(c: Cursor) -> bool:
    token = c.tokens[c.at]
    if token not in ("true", "false"):
        raise c.expected("true or false")
    c.at += 1
    return token == "true"


def _enum(kind: str) -> Kind:
    return Kind(lambda c: enum(c, kind), str)


def _precision(c: Cursor) -> tuple[str, ...]:
    c.expect("[")
    return tuple(c.comma_list("]", lambda: enum(c, "precision")))


def _algorithm(c: Cursor) -> tuple[Any, ...]:
    return tuple(struct_fields(c, STRUCTS["dot_algorithm"]).values())


def print_value(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def print_algorithm(value: tuple[Any, ...]) -> str:
    fields = (f"{k} = {print_value(v)}" for k, v in zip(STRUCTS["dot_algorithm"], value, strict=True))
    return f"<{', '.join(fields)}>"


INT: Final = Kind(Cursor.integer, str)
INTS: Final = Kind(Cursor.integers, lambda v: f"[{', '.join(map(str, v))}]")
BOOL: Final = Kind(_bool, print_value)
STRING: Final = Kind(Cursor.string, quote)
PRECISION: Final = Kind(_precision, lambda v: f"[{', '.join(v)}]")
ALGORITHM: Final = Kind(_algorithm, print_algorithm)


@record(frozen=True)
class Field:
    """`key = value` for attribute `attr`; one that is not required may be left out."""

    key: str
    attr: str
    kind: Kind
    required: bool = True


# -- types --------------------------------------------------------------------------------------
# A way of writing types: from the list before `->` (no parentheses) and the operand count to operand and result types,
# or None if the list does not fit; and the short text for the types of an op, or None to write the function type.

Types = tuple[Type, ...]


@record(frozen=True)
class Signature:
    what: str
    expand: Callable[[Types, int], tuple[Types | None, Types | None] | None]
    short: Callable[[Types, Types], str | None]


def _listed(types: Types) -> str:
    return ", ".join(map(print_type, types))


def _same(types: Types, n: int) -> tuple[Types, Types] | None:
    return (types * n, types) if len(types) == 1 else None


def _same_short(operands: Types, results: Types) -> str | None:
    if len(results) == 1 and all(t is results[0] for t in operands):
        return print_type(results[0])
    return None


def _complex(types: Types, n: int) -> tuple[Types, Types] | None:
    t = types[0]
    if len(types) != 1 or not isinstance(t, TensorType) or not t.dtype.is_complex:
        return None
    return (TensorType(t.dtype.part, t.shape, t.encoding),) * n, types


def _complex_short(operands: Types, results: Types) -> str | None:
    made = _complex(results, len(operands)) if len(results) == 1 else None
    return print_type(results[0]) if made is not None and made[0] == operands else None


def _select(types: Types, n: int) -> tuple[Types, Types] | None:
    return ((types[0], types[1], types[1]), types[1:]) if len(types) == 2 and n == 3 else None


def _select_short(operands: Types, results: Types) -> str | None:
    if len(operands) == 3 and operands[1] is operands[2] and results == operands[1:2]:
        return f"{print_type(operands[0])}, {print_type(operands[1])}"
    return None


def _tuple(types: Types, n: int) -> tuple[Types, Types] | None:
    t = types[0]
    return (t.types, types) if len(types) == 1 and isinstance(t, TupleType) else None


def _tuple_short(operands: Types, results: Types) -> str | None:
    t = results[0] if len(results) == 1 else None
    return print_type(t) if isinstance(t, TupleType) and t.types == operands else None


def _pairs(types: Types, n: int) -> tuple[Types, Types] | None:
    return types, types


def _pairs_short(operands: Types, results: Types) -> str | None:
    return ", ".join(map(print_type, operands)) if operands == results else None


FUNCTION: Final = Signature("a function type", lambda types, n: None, lambda operands, results: None)
SAME: Final = Signature("one type or a function type", _same, _same_short)
RESULT: Final = Signature("the result's type", lambda types, n: ((), types), lambda operands, results: _listed(results))
COMPLEX: Final = Signature("a complex type or a function type", _complex, _complex_short)
SELECT: Final = Signature("two types or a function type", _select, _select_short)
TUPLE: Final = Signature("a tuple type or a function type", _tuple, _tuple_short)
PAIRS: Final = Signature("the operands' types", _pairs, _pairs_short)
ARROW: Final = Signature("types -> type", lambda types, n: None, lambda operands, results: None)


def parse_signature(p: Parser, signature: Signature, n: int) -> tuple[Types | None, Types | None]:
    """The types after the colon, for an op with `n` operands."""
    if p.tokens[p.at] == "(":
        return parse_function_type(p)
    start = p.at
    types: Types = (parse_type(p),)
    while p.accept(","):
        types = (*types, parse_type(p))
    if signature is ARROW:
        p.expect("->")
        if p.accept("("):
            return types, tuple(p.comma_list(")", lambda: parse_type(p)))
        return types, (parse_type(p),)
    made = signature.expand(types, n)
    if made is None:
        p.at = start
        raise p.expected(signature.what)
    return made


def print_signature(signature: Signature, operands: Types, results: Types) -> str:
    if signature is ARROW and operands:
        return f"{', '.join(map(print_type, operands))} -> {print_result_types(results)}"
    return signature.short(operands, results) or print_function_type(operands, results)


# -- forms --------------------------------------------------------------------------------------


@record(frozen=True)
class Form:
    """`operands, key = value, ... {attrs} : types`. `count`: how many operands (None: any number)."""

    count: int | None
    signature: Signature
    fields: tuple[Field, ...] = ()

    def parse(self, p: Parser, name: str) -> Syntax:
        tokens = p.tokens
        operands = p.operands()
        if self.count is not None and len(operands) != self.count:
            raise p.error(f"{len(operands)} operands, but the op has {self.count}")
        attrs: dict[str, Any] = {}
        if self.fields:
            self._parse_fields(p, attrs, bool(operands))
        if tokens[p.at] == "{":
            attrs = {**attrs, **parse_dict(p)}
        p.expect(":")
        operand_types, results = parse_signature(p, self.signature, len(operands))
        return Syntax(operands, attrs, operand_types, results)

    def _parse_fields(self, p: Parser, attrs: dict[str, Any], comma: bool) -> None:
        for f in self.fields:
            here = p.at
            if comma and not p.accept(","):
                if f.required:
                    raise p.expected(f"', {f.key} = ...'")
                continue
            if p.tokens[p.at] != f.key:
                if f.required:
                    raise p.expected(f"'{f.key} = ...'")
                p.at = here
                continue
            p.at += 1
            p.expect("=")
            attrs[f.attr] = f.kind.parse(p)
            comma = True

    def print(self, w: Printer, op: Op) -> str:
        parts = [w.value(o) for o in op.operands]
        for f in self.fields:
            value = op.attrs.get(f.attr)
            if value is not None or f.required:
                parts.append(f"{f.key} = {f.kind.print(value)}")
        attrs = w.attr_dict(op, [f.attr for f in self.fields])
        types = print_signature(self.signature, tuple(o.type for o in op.operands), result_types(op.type))
        return f"{', '.join(parts)}{attrs} : {types}".removeprefix(" ")

    def fits(self, op: Op) -> bool:
        return (self.count is None or len(op.operands) == self.count) and all(
            f.attr in op.attrs for f in self.fields if f.required
        )


def exponent_mantissa(p: Parser, name: str) -> Syntax:
    """`stablehlo.reduce_precision %x, format = e5m10 : T`"""
    operands = p.operands()
    for token in (",", "format", "="):
        p.expect(token)
    text = p.tokens[p.at]
    e, m, mantissa = text[1:].partition("m")
    if text[:1] != "e" or not m or not e.isdecimal() or not mantissa.isdecimal() or max(len(e), len(mantissa)) > 10:
        raise p.expected("a format like e5m10")
    p.at += 1
    attrs: dict[str, Any] = {"exponent_bits": int(e), "mantissa_bits": int(mantissa), **parse_dict(p)}
    p.expect(":")
    operand_types, results = parse_signature(p, SAME, len(operands))
    return Syntax(operands, attrs, operand_types, results)


def print_exponent_mantissa(w: Printer, op: Op) -> str:
    types = print_signature(SAME, tuple(o.type for o in op.operands), result_types(op.type))
    text = f"format = e{op.attrs['exponent_bits']}m{op.attrs['mantissa_bits']}"
    return f"{w.value(op.operands[0])}, {text}{w.attr_dict(op, ['exponent_bits', 'mantissa_bits'])} : {types}"


def _dims(attr: str, key: str = "dims") -> Field:
    return Field(key, attr, INTS)


def _dim(attr: str) -> Field:
    return Field("dim", attr, INT)


STABLEHLO_FORMS: Final[dict[str, Form]] = {
    **dict.fromkeys((*UNARY, "uniform_quantize", "uniform_dequantize"), Form(1, SAME)),
    **dict.fromkeys(BINARY, Form(2, SAME)),
    "after_all": Form(None, SAME),
    "bitcast_convert": Form(1, FUNCTION),
    "broadcast": Form(1, FUNCTION, (Field("sizes", "broadcast_sizes", INTS),)),
    "broadcast_in_dim": Form(1, FUNCTION, (_dims("broadcast_dimensions"),)),
    "cholesky": Form(1, SAME, (Field("lower", "lower", BOOL, False),)),
    "clamp": Form(3, SAME),
    "complex": Form(2, COMPLEX),
    "concatenate": Form(None, FUNCTION, (_dim("dimension"),)),
    "create_token": Form(0, RESULT),
    "dot": Form(2, FUNCTION, (Field("precision", "precision_config", PRECISION, False),)),
    "dynamic_broadcast_in_dim": Form(2, FUNCTION, (_dims("broadcast_dimensions"),)),
    "dynamic_iota": Form(1, FUNCTION, (_dim("iota_dimension"),)),
    "dynamic_pad": Form(5, FUNCTION),
    "dynamic_reshape": Form(2, FUNCTION),
    "dynamic_slice": Form(None, FUNCTION, (Field("sizes", "slice_sizes", INTS),)),
    "dynamic_update_slice": Form(None, FUNCTION),
    "einsum": Form(2, FUNCTION, (Field("config", "einsum_config", STRING),)),
    "fft": Form(1, FUNCTION, (Field("type", "fft_type", _enum("fft_type")), Field("length", "fft_length", INTS))),
    "get_dimension_size": Form(1, FUNCTION, (_dim("dimension"),)),
    "iota": Form(0, RESULT, (_dim("iota_dimension"),)),
    "pad": Form(2, FUNCTION, (
        _dims("edge_padding_low", "low"), _dims("edge_padding_high", "high"), _dims("interior_padding", "interior"))),
    "partition_id": Form(0, RESULT),
    "real_dynamic_slice": Form(4, FUNCTION),
    "replica_id": Form(0, RESULT),
    "reshape": Form(1, FUNCTION),
    "reverse": Form(1, SAME, (_dims("dimensions"),)),
    "rng": Form(3, FUNCTION, (Field("distribution", "rng_distribution", _enum("rng_distribution")),)),
    "rng_bit_generator": Form(1, FUNCTION, (Field("algorithm", "rng_algorithm", _enum("rng_algorithm")),)),
    "select": Form(3, SELECT),
    "set_dimension_size": Form(2, FUNCTION, (_dim("dimension"),)),
    "torch_index_select": Form(2, FUNCTION, (_dim("dim"), Field("batch_dims", "batch_dims", INT))),
    "transpose": Form(1, FUNCTION, (_dims("permutation"),)),
    "tuple": Form(None, TUPLE),
    "unary_einsum": Form(1, FUNCTION, (Field("config", "einsum_config", STRING),)),
}  # fmt: skip

UNARY_FORM: Final = Form(1, SAME)
MHLO_FORMS: Final[dict[str, Form]] = {
    "add_dependency": Form(2, FUNCTION),
    "bitcast": Form(1, FUNCTION),
    "copy": Form(1, SAME),
}
CHLO_FORMS: Final[dict[str, Form]] = {
    **dict.fromkeys(CHLO_UNARY, Form(1, ARROW)),
    **dict.fromkeys(CHLO_BROADCAST, Form(2, FUNCTION)),
    **dict.fromkeys(("mulhi", "next_after", "polygamma", "zeta"), Form(2, ARROW)),
    "broadcast_select": Form(3, FUNCTION),
    "dynamic_reshape": Form(2, FUNCTION),
}

INTERPRETER_FORMS: Final[dict[str, Form]] = {
    "print": Form(1, SAME),
    "probe": Form(1, SAME, (Field("probe_id", "probe_id", STRING),)),
}
