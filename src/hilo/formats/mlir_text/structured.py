"""Ops with regions that have a pretty form: reduce, while, scan. Imports its siblings and ir."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from hilo.formats.mlir_text.attributes import parse_dict
from hilo.formats.mlir_text.forms import INTS
from hilo.formats.mlir_text.parser import Parser, Region, Syntax
from hilo.formats.mlir_text.scope import Captures, Scope
from hilo.formats.mlir_text.types import parse_function_type, parse_type, print_function_type, print_type
from hilo.ir.module import Function
from hilo.ir.op import Op
from hilo.ir.types import TensorType, Type, result_types

if TYPE_CHECKING:
    from hilo.formats.mlir_text.printer import Printer

# The ops that `applies` may name: commutative, of two operands.
_APPLIED: Final = frozenset(f"stablehlo.{x}" for x in ("add", "and", "maximum", "minimum", "multiply", "or", "xor"))

# -- reduce -------------------------------------------------------------------------------------


def parse_reduce(p: Parser, name: str) -> Syntax:
    """`(%x init: %v), ... applies dialect.op across dimensions = [0] : type`, or with `reducer(...) {...}`."""
    inputs: list[Op] = []
    inits: list[Op] = []

    def pair() -> None:
        p.expect("(")
        inputs.append(p.operand())
        p.expect("init")
        p.expect(":")
        inits.append(p.operand())
        p.expect(")")

    pair()
    while p.accept(","):
        pair()
    inner_at = p.at + 1
    inner = p.keyword("an op's name") if p.accept("applies") else None
    for token in ("across", "dimensions", "="):
        p.expect(token)
    attrs: dict[str, Any] = {"dimensions": p.integers()}
    attrs.update(parse_dict(p))
    p.expect(":")
    operand_types, results = parse_function_type(p)
    operands = [*inputs, *inits]
    captures = Captures()
    if inner is None:
        region = _reducer(p, len(inputs), captures)
    else:
        if len(inputs) != 1:
            raise p.error("'applies' reduces one input", inner_at)
        region = _applied(p, inner, inputs[0], captures, inner_at)
    return Syntax(operands, attrs, operand_types, results, [region], captures)


def _applied(p: Parser, inner: str, x: Op, captures: Captures, at: int) -> Region:
    """The region of one op on two scalars."""
    if not isinstance(x.type, TensorType):
        raise p.error("reduce takes tensors", at)
    if "." not in inner:
        inner = f"stablehlo.{inner}"
    outer, op = p.scope, p.op
    p.scope = Scope(outer, captures)
    t = TensorType(x.type.dtype, (), x.type.encoding)
    arguments = [p.add_argument("", t, None, at) for _ in range(2)]
    p.op = inner
    if inner not in _APPLIED:
        raise p.error(f"'applies' takes one of {', '.join(sorted(_APPLIED))}; write others as a reducer", at)
    result = p.build(inner, Syntax(arguments, {}, None, None), p.source.loc(at), at)
    region = Region(p.scope, [result])
    p.scope, p.op = outer, op
    return region


def _reducer(p: Parser, n: int, captures: Captures) -> Region:
    """`reducer(%a0: T, %b0: T) (%a1: T, %b1: T) { ... }`: a pair for each input; in the block all `a` come first."""
    p.expect("reducer")
    pairs: list[list[tuple[str, Type]]] = []

    def argument() -> tuple[str, Type]:
        name = p.value_name()
        p.expect(":")
        t = parse_type(p)
        from hilo.formats.mlir_text.locations import parse_trailing_loc

        parse_trailing_loc(p)
        return name, t

    while p.accept("("):
        pairs.append(p.comma_list(")", argument))
        if len(pairs[-1]) != 2:
            raise p.error("a reducer takes two values for each input", p.at - 1)
    if len(pairs) != n:
        raise p.error(f"the reducer has {len(pairs)} pairs of values for {n} inputs")
    return p.parse_region(captures, [pair[i] for i in range(2) for pair in pairs])


def print_reduce(w: Printer, op: Op) -> str | None:
    body: Function = op.attrs["body"]
    n = len(body.results)
    captured = len(body.params) - 2 * n
    if len(op.operands) != 2 * n + captured or captured < 0:
        return None
    operands = op.operands[: 2 * n]
    pairs = ", ".join(f"({w.value(x)} init: {w.value(v)})" for x, v in zip(operands[:n], operands[n:], strict=True))
    types = print_function_type(tuple(o.type for o in operands), result_types(op.type))
    dimensions = f"{INTS.print(op.attrs['dimensions'])}{w.attr_dict(op, ['dimensions', 'body'])}"
    tail = f" across dimensions = {dimensions} : {types}"
    if n == 1 and captured == 0 and (inner := _single_op(body, operands[0].type)):
        return f"{pairs} applies {inner}{tail}"
    w.enter(body, op.operands[2 * n :])
    arguments = [w.argument(x, "arg") for x in body.params[: 2 * n]]
    shown = [f"{a}: {print_type(x.type)}{w.loc(x.loc)}" for a, x in zip(arguments, body.params, strict=False)]
    header = " ".join(f"({a}, {b})" for a, b in zip(shown[:n], shown[n:], strict=True))
    text = f"{pairs}{tail}\n{w.indent(1)}reducer{header} {w.block(body)}"
    w.leave()
    return text


def _single_op(body: Function, x: Type) -> str | None:
    """The op that `body` applies to its two parameters, if that and nothing else is what it does."""
    if len(body.params) != 2 or len(body.ops) != 3 or len(body.results) != 1:
        return None
    o = body.results[0]
    t = TensorType(x.dtype, (), x.encoding) if isinstance(x, TensorType) else None
    if o.operands != body.params or o.attrs or o.kind.full_name not in _APPLIED:
        return None
    return o.kind.full_name if o.type is t and all(q.type is t for q in body.params) else None


# -- while --------------------------------------------------------------------------------------


def parse_while(p: Parser, name: str) -> Syntax:
    """`(%a = %x, ...) : T, ... attributes {...} cond { ... } do { ... }`"""
    names: list[str] = []
    operands: list[Op] = []

    def carried() -> None:
        names.append(p.value_name())
        p.expect("=")
        operands.append(p.operand())

    p.expect("(")
    p.comma_list(")", carried)
    types: list[Type] = []
    if operands:
        p.expect(":")
        types.append(parse_type(p))
        while p.accept(","):
            types.append(parse_type(p))
        if len(types) != len(operands):
            raise p.error(f"{len(operands)} carried values, but {len(types)} types")
    attrs = parse_dict(p) if p.accept("attributes") else {}
    captures = Captures()
    arguments = list(zip(names, types, strict=True))
    p.expect("cond")
    cond = p.parse_region(captures, arguments)
    p.expect("do")
    body = p.parse_region(captures, arguments)
    return Syntax(operands, attrs, types, types, [cond, body], captures)


def print_while(w: Printer, op: Op) -> str | None:
    cond: Function = op.attrs["cond"]
    body: Function = op.attrs["body"]
    n = len(result_types(op.type))
    carried = op.operands[:n]
    if tuple(o.type for o in carried) != result_types(op.type):
        return None
    outer = [w.value(o) for o in carried]
    w.enter(cond, op.operands[n:])
    names = [w.argument(x, "iterArg") for x in cond.params[:n]]
    cond_text = w.block(cond)
    w.leave()
    w.enter(body, op.operands[n:])
    w.assign(zip(body.params[:n], names, strict=True))
    body_text = w.block(body)
    w.leave()
    types = f" : {', '.join(print_type(o.type) for o in carried)}" if carried else ""
    attrs = w.attr_dict(op, ["cond", "body"])
    pairs = ", ".join(f"{a} = {o}" for a, o in zip(names, outer, strict=True))
    return f"({pairs}){types}{' attributes' + attrs if attrs else ''}\n{w.indent()}cond {cond_text} do {body_text}"


# -- chlo.scan ----------------------------------------------------------------------------------


def parse_scan(p: Parser, name: str) -> Syntax:
    """`(%x) inits (%v) dimension=0 attributes {...} { ^bb0(...): ... } : (T) -> T`"""
    p.expect("(")
    inputs = p.operands()
    for token in (")", "inits", "("):
        p.expect(token)
    inits = p.operands()
    for token in (")", "dimension", "="):
        p.expect(token)
    attrs: dict[str, Any] = {"dimension": p.integer()}
    if p.accept("attributes"):
        attrs.update(parse_dict(p))
    captures = Captures()
    region = p.parse_region(captures)
    p.expect(":")
    operand_types, results = parse_function_type(p)
    for i, (o, v) in enumerate(zip([*inputs, *inits], region.scope.own, strict=False)):
        if isinstance(o.type, TensorType) and isinstance(v.type, TensorType):
            axis, what = (1, "input") if i < len(inputs) else (0, "init")  # an input has an axis more than its slice
            if o.type.rank != v.type.rank + axis:
                raise p.error(f"the body takes {print_type(v.type)} for the {what} {i} of type {print_type(o.type)}")
    return Syntax([*inputs, *inits], attrs, operand_types, results, [region], captures)


def print_scan(w: Printer, op: Op) -> str:
    body: Function = op.attrs["body"]
    from hilo.ops.scan import scanned_inputs

    n = scanned_inputs([o.type for o in op.operands], body)
    attrs = w.attr_dict(op, ["dimension", "body", *(["is_reverse"] if not op.attrs["is_reverse"] else [])])
    types = print_function_type(tuple(o.type for o in op.operands), result_types(op.type))
    head = f"({w.values(op.operands[:n])}) inits ({w.values(op.operands[n:])}) dimension={op.attrs['dimension']}"
    return f"{head}{' attributes' + attrs if attrs else ''} {w.region(body, ())} : {types}"
