"""Ops from their parts, verified by their definitions; regions closed over what they capture. Imports mlir_text, ir.

What an `Error` of an op says of its place is the location in the file where it has one, else the number of the op.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from hilo.errors import Error, Unsupported, VerifyError
from hilo.formats.mlir_text import schema
from hilo.formats.mlir_text.names import definitions, is_specified
from hilo.formats.mlir_text.scope import Captures, Scope
from hilo.formats.mlir_text.types import print_type
from hilo.ir import quantized, registry
from hilo.ir.module import Function
from hilo.ir.op import Attrs, Op, OpDef
from hilo.ir.types import Results, Type
from hilo.ops.result_rules import check_result
from hilo.ops.value_rules import check_values


class Region:
    """A region that has been read; its captures are final only when all regions of the op are."""

    __slots__ = ("results", "scope")

    def __init__(self, scope: Scope, results: list[Op]) -> None:
        self.scope = scope
        self.results = results


def definition(name: str) -> OpDef:
    """The definition of the op `name`; one that is missing is an error that says whether the spec knows it."""
    for candidate in definitions(name):
        try:
            return registry.lookup(candidate)
        except KeyError:
            continue
    if is_specified(name):
        raise Unsupported("this op is in the specification, but not supported yet", op=name)
    raise Error("unknown op", op=name)


def close(name: str, attrs: dict[str, Any], regions: Sequence[Region]) -> None:
    """Put the op's regions into its attributes."""
    wanted = schema.REGIONS.get(name, ())
    closed = [r.scope.close(r.results, "region") for r in regions]
    if wanted and wanted[-1][-1] in "*?":
        if closed or wanted[-1][-1] == "*":
            attrs[wanted[-1][:-1]] = tuple(closed)
    elif len(closed) != len(wanted):
        raise Error(f"{len(closed)} regions, but the op has {len(wanted)}")
    else:
        attrs.update(zip(wanted, closed, strict=True))


def make(kind: OpDef, operands: Sequence[Op], attrs: dict[str, Any], results: Sequence[Type], regions: Sequence[Region],
         captures: Captures | None, loc: Any) -> Op:  # fmt: skip
    """A verified op with the declared types of its results."""
    if regions or kind.name in schema.REGIONS:
        close(kind.name, attrs, regions)
        operands = [*operands, *captures.positions] if captures is not None else operands
    want = results[0] if len(results) == 1 else Results(results)
    if kind.typed or quantized.any_quantized([want, *(o.type for o in operands)]):
        attrs["type"] = want
    try:
        op = kind.make(operands, Attrs(attrs), loc)
        check_result(kind.full_name, op.type, want, print_type)
        check_values(op)
    except Error as e:
        if not isinstance(e, VerifyError) or (kind.full_name, e.rule) not in TOLERATED:
            raise e.at(loc, kind.full_name) from None
        return Op(kind, tuple(operands), Attrs({**kind.attrs, **attrs}), want, loc)
    except (ArithmeticError, AssertionError, AttributeError, LookupError, TypeError, ValueError) as e:
        raise VerifyError(f"operands or attributes do not fit the op: {e}", op=kind.full_name) from e
    return op if op.type is want else Op(kind, op.operands, op.attrs, want, loc)


# Constraints that StableHLO's own tools do not check, and that its artifacts for tests break: such programs are read.
TOLERATED: Final = frozenset((("stablehlo.compare", "C3"), ("stablehlo.rng_bit_generator", "I2")))


def make_all(kind: OpDef, operands: Sequence[Op], attrs: dict[str, Any], results: Sequence[Type],
             regions: Sequence[Region], captures: Captures | None, loc: Any) -> list[Op]:  # fmt: skip
    """The op, after what it is made of: a constant of a quantized type is one of the storage type, reinterpreted."""
    if kind.full_name != "stablehlo.constant" or not quantized.any_quantized(results):
        return [make(kind, operands, attrs, results, regions, captures, loc)]
    value = {k: attrs.pop(k) for k in ("value",) if k in attrs}
    plain = make(kind, (), value, [quantized.stored(t) for t in results], (), None, loc)
    return [plain, make(definition("stablehlo.bitcast_convert"), (plain,), attrs, results, (), None, loc)]


def declaration(scope: Scope, name: str, results: Sequence[Type], loc: Any) -> list[Op]:
    """The results of a function without a body: it calls the host's function of its name."""
    attrs: dict[str, Any] = {"call_target_name": name, "has_side_effect": True}
    op = make(definition("stablehlo.custom_call"), scope.own, attrs, results, (), None, loc)
    values = list(op.results())
    scope.ops.append(op)
    if isinstance(op.type, Results):
        scope.ops.extend(values)
    return values


def function(name: str, scope: Scope, results: Sequence[Op], **more: Any) -> Function:
    """The function whose parameters and ops are in `scope`."""
    return Function(name, scope.own, [*scope.own, *scope.ops], results, **more)
