"""Elementwise ops that HLO has no instruction for (erfc, lgamma ...), by what they mean: the loop IR of one element.

Each node of it becomes an instruction on whole arrays. `fma` is a product and a sum; for f32 in f64, where the product
is exact. Imports its siblings, loop and ir.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from hilo.formats.hlo_text import schema
from hilo.formats.hlo_text.emit import BodyEmitter, unsupported
from hilo.formats.hlo_text.model import Instruction
from hilo.ir.dtypes import DType, dtype, f64, i1
from hilo.ir.op import Array, Op
from hilo.ir.types import TensorType
from hilo.loop.element import Elem, held_type
from hilo.loop.nodes import VOID, Func, Node
from hilo.loop.plain import PlainBuilder

_SAME: Final = {
    "fadd": "add", "fsub": "subtract", "fmul": "multiply", "fdiv": "divide", "fneg": "negate", "fabs": "abs",
    "sqrt": "sqrt", "floor": "floor", "ceil": "ceil", "rint": "round-nearest-even", "add": "add", "sub": "subtract",
    "mul": "multiply", "and": "and", "or": "or", "xor": "xor", "shl": "shift-left", "lshr": "shift-right-logical",
    "ashr": "shift-right-arithmetic", "select": "select", "ctpop": "popcnt", "ctlz": "count-leading-zeros",
}  # fmt: skip
_CONVERT: Final = ("sext", "itrunc", "fpext", "fptrunc", "sitofp", "fptosi")
_DIRECTIONS: Final = {
    "eq": "EQ", "ne": "NE", "slt": "LT", "sle": "LE", "sgt": "GT", "sge": "GE",
    "oeq": "EQ", "une": "NE", "olt": "LT", "ole": "LE", "ogt": "GT", "oge": "GE",
    "ult": "LT", "ule": "LE", "ugt": "GT", "uge": "GE",
}  # fmt: skip


def by_elements(e: BodyEmitter, op: Op) -> Instruction:
    """The instructions that compute `op` elementwise; `Unsupported` if its loop IR has more than arithmetic."""
    types = [o.tensor for o in op.operands]
    if op.kind.scalar is None or any(t.shape != op.tensor.shape for t in types):
        raise unsupported(op)
    params = [(f"{part}{k}", held_type(t.dtype)) for k, t in enumerate(types) for part in ("re", "im")]
    func = Func("element", params, VOID)
    elems = [
        Elem(t.dtype, func.params[2 * k], func.params[2 * k + 1] if t.dtype.is_complex else None)
        for k, t in enumerate(types)
    ]
    result = op.kind.scalar(PlainBuilder(func), op.tensor, *elems, **op.attrs.own())
    if any(node.kind not in _SAME and node.kind not in _WRITE for node in func.body.nodes):
        return _rare(e, op)
    arrays = _Arrays(e, op)
    for k, (t, i) in enumerate(zip(types, e.operands(op), strict=True)):
        arrays.made[func.params[2 * k]] = arrays.held("real", i, t.dtype)
        if t.dtype.is_complex:
            arrays.made[func.params[2 * k + 1]] = arrays.held("imag", i, t.dtype)
    for node in func.body.nodes:
        arrays.made[node] = arrays.instruction(node)
    t = result.dtype
    if t.is_complex:
        return e.add("complex", op.type, [arrays.made[result.re], arrays.made[result.im]])
    made = arrays.made[result.re]
    return made if made.declared.type is op.type else e.add("convert", op.type, [made])


def _rare(e: BodyEmitter, op: Op) -> Instruction:
    """The instruction of its own that some of XLA's compilers have for an op, if there is one."""
    opcode = op.name.replace("_", "-")
    if opcode not in schema.RARE:
        raise unsupported(op)
    return e.add(opcode, op.type, e.operands(op))


class _Arrays:
    """The arrays that stand for the nodes made so far."""

    def __init__(self, e: BodyEmitter, op: Op) -> None:
        self.e = e
        self.op = op
        self.made: dict[Node, Instruction] = {}

    def type_of(self, t: DType) -> TensorType:
        return self.op.tensor.with_dtype(t)

    def held(self, part: str, i: Instruction, t: DType) -> Instruction:
        """An operand (or a part of a complex one) in the type that holds it in registers."""
        if t.is_complex:
            return self.e.add(part, self.type_of(t.part), [i])
        want = dtype(held_type(t).scalar)
        return i if t is want else self.e.add("convert", self.type_of(want), [i])

    def instruction(self, node: Node) -> Instruction:
        t = self.type_of(dtype(node.type.scalar))
        operands = [self.made[a] for a in node.args]
        if node.kind in _SAME:
            return self.e.add(_SAME[node.kind], t, operands)
        return _WRITE[node.kind](self, node, t, operands)

    def constant(self, t: TensorType, value: Any) -> Instruction:
        one = self.e.add("constant", t.with_shape(()), value=Array(np.asarray(value).astype(t.dtype.np)))
        return self.e.add("broadcast", t, [one], dimensions=()) if t.rank else one

    def unsigned(self, i: Instruction) -> Instruction:
        """The bits of signed integers as unsigned ones."""
        t = i.declared.type
        assert isinstance(t, TensorType)
        return i if t.dtype.kind != "i" else self.bits(i, dtype(f"u{t.dtype.bits}"))

    def bits(self, i: Instruction, t: DType) -> Instruction:
        return self.e.add("bitcast-convert", self.type_of(t), [i])


def _constant(a: _Arrays, node: Node, t: TensorType, operands: list[Instruction]) -> Instruction:
    return a.constant(t, node.attrs["value"])


def _fma(a: _Arrays, node: Node, t: TensorType, operands: list[Instruction]) -> Instruction:
    wide = t.with_dtype(f64)
    x, y, z = (i if t is wide else a.e.add("convert", wide, [i]) for i in operands)
    total = a.e.add("add", wide, [a.e.add("multiply", wide, [x, y]), z])
    return total if t is wide else a.e.add("convert", t, [total])


def _copysign(a: _Arrays, node: Node, t: TensorType, operands: list[Instruction]) -> Instruction:
    n = t.dtype.bits
    whole = a.type_of(dtype(f"u{n}"))
    magnitude, sign = (a.bits(i, whole.dtype) for i in operands)
    low, high = a.constant(whole, (1 << (n - 1)) - 1), a.constant(whole, 1 << (n - 1))
    parts = [a.e.add("and", whole, [magnitude, low]), a.e.add("and", whole, [sign, high])]
    return a.bits(a.e.add("or", whole, parts), t.dtype)


def _trunc(a: _Arrays, node: Node, t: TensorType, operands: list[Instruction]) -> Instruction:
    (x,) = operands
    size = a.e.add("floor", t, [a.e.add("abs", t, [x])])
    return _copysign(a, node, t, [size, x])


def _compare(a: _Arrays, node: Node, t: TensorType, operands: list[Instruction]) -> Instruction:
    pred = node.attrs["pred"]
    x, y = operands
    if pred in ("uno", "ord"):
        word, join = ("NE", "or") if pred == "uno" else ("EQ", "and")
        return a.e.add(join, t, [a.e.add("compare", t, [i, i], direction=word) for i in operands])
    if pred in ("ult", "ule", "ugt", "uge"):
        x, y = a.unsigned(x), a.unsigned(y)
    return a.e.add("compare", t, [x, y], direction=_DIRECTIONS[pred])


def _convert(a: _Arrays, node: Node, t: TensorType, operands: list[Instruction]) -> Instruction:
    (x,), how = operands, node.attrs["how"]
    source = x.declared.type
    assert isinstance(source, TensorType)
    if how == "bitcast":
        return a.bits(x, t.dtype)
    if how in ("zext", "uitofp"):
        x = x if source.dtype is i1 else a.unsigned(x)
    elif how not in _CONVERT or source.dtype is i1:
        raise unsupported(a.op)
    if how == "itrunc" and t.dtype is i1:
        one = a.constant(source, 1)
        low = a.e.add("and", source, [x, one])
        return a.e.add("compare", t, [low, one], direction="EQ")
    return a.e.add("convert", t, [x])


_WRITE: Final[dict[str, Callable[[_Arrays, Node, TensorType, list[Instruction]], Instruction]]] = {
    "const": _constant,
    "fma": _fma,
    "copysign": _copysign,
    "trunc": _trunc,
    "cmp": _compare,
    "convert": _convert,
}
