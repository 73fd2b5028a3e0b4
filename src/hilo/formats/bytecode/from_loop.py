"""Functions of CHLO as programs of StableHLO: what an element is computed by, node by node, said of whole tensors.

The loop IR's functions (loop/math) are arithmetic on floats and on their bits, all of which StableHLO has, but for a
product and sum with one rounding: of f32 it is computed in f64, of f64 with what rounding takes carried along. So
artifacts hold hilo's own functions, as precise as they are here (tests say how precise). Imports loop, rewrite, ir.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from hilo.errors import Unsupported
from hilo.ir.dtypes import DType, dtype, f32, f64, i1, i64
from hilo.ir.module import Function, region
from hilo.ir.op import Array, Op, OpDef
from hilo.ir.types import TensorType
from hilo.loop.element import Elem, held_type
from hilo.loop.nodes import Func, Node, VType
from hilo.loop.plain import PlainBuilder
from hilo.rewrite import ops

_FLOAT: Final = {"fadd": "add", "fsub": "subtract", "fmul": "multiply", "fdiv": "divide", "fneg": "negate",
                 "fabs": "abs", "sqrt": "sqrt", "floor": "floor", "ceil": "ceil",
                 "rint": "round_nearest_even"}  # fmt: skip
_INT: Final = {"add": "add", "sub": "subtract", "mul": "multiply", "and": "and", "or": "or", "xor": "xor",
               "shl": "shift_left", "lshr": "shift_right_logical", "ashr": "shift_right_arithmetic",
               "sdiv": "divide", "srem": "remainder", "ctlz": "count_leading_zeros", "ctpop": "popcnt"}  # fmt: skip
_UNSIGNED: Final = {"udiv": "divide", "urem": "remainder"}
_ORDER: Final = {"eq": "EQ", "ne": "NE", "lt": "LT", "le": "LE", "gt": "GT", "ge": "GE"}
_SPLIT: Final = 134217729.0  # 2^27 + 1: cuts the 53 digits of a f64 into halves


def function_of(kind: OpDef, operands: Sequence[TensorType], result: TensorType, name: str) -> Function:
    """The elementwise op `kind` as a function of StableHLO. Raises `Unsupported` for one that is computed otherwise."""
    return region(operands, lambda *xs: tensors_of(kind, xs, result), name)


def tensors_of(kind: OpDef, xs: Sequence[Op], result: TensorType) -> Op:
    """The value of `kind` on `xs`, in ops of StableHLO."""
    assert kind.scalar is not None
    shape = result.shape
    held: list[tuple[str, VType]] = []
    inputs: list[Op] = []
    for x in xs:
        d = x.tensor.dtype
        for part in (ops.real(x), ops.imag(x)) if d.is_complex else (x,):
            held.append((f"x{len(held)}", held_type(d)))
            inputs.append(_as(part, dtype(held[-1][1].scalar)))
    func = Func("f", held)
    b = PlainBuilder(func)
    params = iter(func.params)
    elems = [Elem(x.tensor.dtype, next(params), next(params) if x.tensor.dtype.is_complex else None) for x in xs]
    out = kind.scalar(b, result, *elems)
    t = _Tensors(shape, dict(zip(func.params, inputs, strict=True)))
    t.all(func.body.nodes)
    re = _as(t.known[out.re], result.dtype.part)
    return re if out.im is None else ops.complex_(re, _as(t.known[out.im], result.dtype.part))


def _as(x: Op, d: DType) -> Op:
    return x if x.tensor.dtype is d else ops.convert(x, type=x.tensor.with_dtype(d))


class _Tensors:
    """What nodes of the loop IR are as tensors of one shape."""

    def __init__(self, shape: tuple[int, ...], known: dict[Node, Op]) -> None:
        self.shape = shape
        self.known = known
        self.loops: dict[Node, tuple[Op, ...]] = {}

    def all(self, nodes: Sequence[Node]) -> None:
        for n in nodes:
            if n.kind == "for":
                self.loops[n] = self.loop(n)
            elif n.kind == "result" and n.args[0] in self.loops:
                self.known[n] = self.loops[n.args[0]][n.attrs["index"]]
            else:
                self.known[n] = self.one(n)

    def loop(self, n: Node) -> tuple[Op, ...]:
        """What a loop carries in the end. Its counter is the same for all elements."""
        (block,) = n.blocks
        low, high, step = (x.const for x in n.args[:3])
        if low is None or high is None or step is None:
            raise Unsupported("no program of StableHLO alone for a loop of so many turns")
        inside = {*block.nodes, *block.params}
        used = dict.fromkeys(a for m in block.nodes for a in m.args)
        free = [a for a in (*used, *block.yields) if a not in inside]
        init = [self.known[a] for a in n.args[3:]]
        one = TensorType(i64)

        def more(i: Op, *_: Op) -> Op:
            limit = ops.constant(value=Array(np.int64(high)))
            return ops.compare(i, limit, comparison_direction="LT", compare_type="SIGNED")

        def turn(i: Op, *values: Op) -> tuple[Op, ...]:
            known = dict(zip(free, values[len(init) :], strict=True))
            known.update(zip(block.params[1:], values, strict=False))
            known[block.params[0]] = ops.broadcast_in_dim(i, broadcast_dimensions=(), type=one.with_shape(self.shape))
            t = _Tensors(self.shape, known)
            t.all(block.nodes)
            return ops.add(i, ops.constant(value=Array(np.int64(step)))), *(t.known[y] for y in block.yields)

        operands = [ops.constant(value=Array(np.int64(low))), *init, *(self.known[a] for a in free)]
        types = [x.type for x in operands]
        carried = ops.while_(*operands, cond=region(types, more), body=region(types, turn))
        return carried.results()[1:] if init else ()

    def full(self, value: float, d: DType) -> Op:
        return ops.constant(value=Array(np.asarray(value).astype(d.np), self.shape))

    def type(self, t: VType) -> TensorType:
        return TensorType(dtype(t.scalar), self.shape)

    def one(self, n: Node) -> Op:
        """The tensor of one node, given those of its operands."""
        if n.kind == "const":
            return self.full(n.attrs["value"], dtype(n.type.scalar))
        if n.blocks or any(a not in self.known for a in n.args):
            raise Unsupported(f"no program of StableHLO alone for a {n.kind}")
        xs = [self.known[a] for a in n.args]
        special = getattr(self, f"_{n.kind}", None)
        if special is not None:
            return special(n, *xs)
        if n.kind in _UNSIGNED:
            return self.bits(self.op(_UNSIGNED[n.kind], *map(self.unsigned, xs)), dtype(n.type.scalar))
        name = (_FLOAT if n.type.is_float else _INT).get(n.kind)
        if name is None:
            raise Unsupported(f"no program of StableHLO alone for a {n.kind}")
        return self.op(name, *xs)

    @staticmethod
    def op(name: str, *xs: Op) -> Op:
        from hilo.ir.registry import lookup

        return lookup(f"stablehlo.{name}")(*xs)

    def bits(self, x: Op, d: DType) -> Op:
        return x if x.tensor.dtype is d else ops.bitcast_convert(x, type=TensorType(d, self.shape))

    def unsigned(self, x: Op) -> Op:
        return self.bits(x, dtype(f"u{x.tensor.dtype.bits}"))

    def _trunc(self, n: Node, x: Op) -> Op:
        negative = ops.compare(x, self.full(0, x.tensor.dtype), comparison_direction="LT")
        return ops.select(negative, ops.ceil(x), ops.floor(x))

    def _copysign(self, n: Node, a: Op, b: Op) -> Op:
        d = dtype(f"i{n.type.bits}")
        top = -(1 << (n.type.bits - 1))
        sign = self.op("and", self.bits(b, d), self.full(top, d))
        size = self.op("and", self.bits(a, d), self.full(~top, d))
        return self.bits(self.op("or", size, sign), a.tensor.dtype)

    def _select(self, n: Node, c: Op, a: Op, b: Op) -> Op:
        return ops.select(c, a, b)

    def _cmp(self, n: Node, a: Op, b: Op) -> Op:
        pred: str = n.attrs["pred"]
        if pred in ("uno", "ord"):
            how = {"comparison_direction": "NE" if pred == "uno" else "EQ", "compare_type": "FLOAT"}
            return self.op("or" if pred == "uno" else "and", *(ops.compare(x, x, **how) for x in (a, b)))
        direction = _ORDER[pred[-2:]]
        if n.args[0].type.is_float:
            return ops.compare(a, b, comparison_direction=direction, compare_type="FLOAT")
        if pred[0] == "u" or n.args[0].type.scalar == "i1":
            a, b = (x if x.tensor.dtype is i1 else self.unsigned(x) for x in (a, b))
            return ops.compare(a, b, comparison_direction=direction, compare_type="UNSIGNED")
        return ops.compare(a, b, comparison_direction=direction, compare_type="SIGNED")

    def _convert(self, n: Node, x: Op) -> Op:
        how: str = n.attrs["how"]
        d, source = dtype(n.type.scalar), x.tensor.dtype
        if how == "bitcast":
            return self.bits(x, d)
        if source is i1:
            y = ops.convert(x, type=TensorType(d, self.shape))
            return ops.negate(y) if how in ("sext", "sitofp") else y
        if how in ("zext", "uitofp"):
            x = self.unsigned(x)
        if how == "fptoui":
            return self.bits(_as(x, dtype(f"u{d.bits}")), d)
        if d is i1:  # the lowest bit
            return ops.compare(self.op("and", x, self.full(1, source)), self.full(0, source), comparison_direction="NE",
                               compare_type="SIGNED")  # fmt: skip
        return _as(x, d)

    def _fma(self, n: Node, a: Op, b: Op, c: Op) -> Op:
        if n.type.scalar == "f32":
            x, y, z = (_as(v, f64) for v in (a, b, c))
            return _as(ops.add(ops.multiply(x, y), z), f32)
        p = ops.multiply(a, b)
        (ah, al), (bh, bl) = self.halves(a), self.halves(b)
        e = ops.subtract(ops.multiply(ah, bh), p)
        for u, v in ((ah, bl), (al, bh), (al, bl)):
            e = ops.add(e, ops.multiply(u, v))
        s = ops.add(p, c)
        r = ops.subtract(s, p)
        rest = ops.add(ops.subtract(p, ops.subtract(s, r)), ops.subtract(c, r))
        lost = ops.add(rest, e)
        return ops.select(ops.is_finite(lost), ops.add(s, lost), s)

    def halves(self, x: Op) -> tuple[Op, Op]:
        """`x` as the sum of two numbers of at most 26 digits."""
        t = ops.multiply(x, self.full(_SPLIT, f64))
        high = ops.subtract(t, ops.subtract(t, x))
        return high, ops.subtract(x, high)


