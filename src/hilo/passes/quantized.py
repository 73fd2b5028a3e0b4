"""Quantized tensors become integers and floats: what ops/quantized_rules.py says, in plain ops.

Imports ir, ops, rewrite.

Values keep their stored integers; an op on floats gets its operands dequantized, each value only once, and its results
quantized. Parameters and results of a function are stored integers afterwards.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from hilo.errors import Unsupported
from hilo.ir.dtypes import DType, from_numpy, i32, i64
from hilo.ir.module import Function, parameter
from hilo.ir.op import GET, PARAMETER, Array, Attrs, Op, OpDef
from hilo.ir.quantized import POOL, any_quantized, expressed, quantization, rule_for, stored
from hilo.ir.types import Results, TensorType, Type
from hilo.ops.checks import tensor
from hilo.ops.compare import clamp
from hilo.ops.concat_pad import concatenate
from hilo.ops.constant import constant
from hilo.ops.convert import convert
from hilo.ops.dynamic import get_dimension_size
from hilo.ops.dynamic_shape import dynamic_broadcast_in_dim
from hilo.ops.elementwise_arith import add, divide, multiply, subtract
from hilo.ops.elementwise_math import round_nearest_even
from hilo.ops.numeric import Arr
from hilo.ops.numeric import convert as converted
from hilo.ops.quantized import parameters
from hilo.ops.quantized_rules import GIVE_ZEROS
from hilo.ops.shape import broadcast_in_dim, reshape
from hilo.rewrite.regions import any_op


def lower_quantized(f: Function) -> Function:
    """`f` without quantized types, in its regions too; `f` itself if there are none."""
    if not POOL or not any_op(f, lambda o: any_quantized((o.type,))):
        return f
    return _Lowering(f).run()


def _plain(o: Op, types: Callable[[Type], Any]) -> Attrs:
    """The attributes of `o` on plain tensors; without `type` if it infers its own then."""
    return Attrs({k: v for k, v in _mapped(o.attrs, types).items() if k != "type" or o.kind.typed})


def _mapped(attrs: Attrs, types: Callable[[Type], Any]) -> dict[str, Any]:
    """Attributes with types changed and regions lowered."""

    def one(value: Any) -> Any:
        if isinstance(value, Type):
            return types(value)
        if isinstance(value, Function):
            return lower_quantized(value)
        return tuple(map(one, value)) if isinstance(value, tuple) else value

    return {name: one(value) for name, value in attrs.items()}


class _Lowering:
    """Rewrites one function: `new` maps ops to what holds their stored integers (or their unquantized value)."""

    def __init__(self, f: Function) -> None:
        self.f = f
        self.ops: list[Op] = []
        self.new: dict[Op, Op] = {}
        self.floats: dict[Op, Op] = {}
        self.in_floats: set[Op] = set()  # ops of several results that yield floats, quantized as they are taken out
        self.from_zero: set[Op] = set()  # ... that yield distances from zero points, shifted as they are taken out

    def run(self) -> Function:
        for o in self.f.ops:
            self.new[o] = self.lower(o)
        params = [self.new[p] for p in self.f.params]
        return self.f.replace(params=params, ops=self.ops, results=[self.new[r] for r in self.f.results])

    def keep(self, o: Op) -> Op:
        self.ops.append(o)
        return o

    def lower(self, o: Op) -> Op:
        if o.kind is PARAMETER:
            return self.keep(parameter(o.attrs["index"], stored(o.type), o.loc))
        operands = [self.new[x] for x in o.operands]
        if o.kind is GET:
            source = o.operands[0]
            taken = self.keep(o.kind.make(operands, o.attrs, o.loc))
            if source in self.from_zero:
                return self.shifted(taken, o.type, add)
            return self.quantize(taken, o.tensor) if source in self.in_floats and quantization(o.type) else taken
        if not any_quantized((o.type, *(x.type for x in o.operands))):
            return self.keep(Op(o.kind, tuple(operands), Attrs(_mapped(o.attrs, stored)), o.type, o.loc))
        if o.kind.full_name in ("stablehlo.uniform_quantize", "stablehlo.uniform_dequantize"):
            x = self.float_of(o.operands[0])
            return self.quantize(x, o.tensor) if quantization(o.type) else x
        if o.kind.full_name in GIVE_ZEROS:
            operands = [self.shifted(v, x.type, subtract) for v, x in zip(operands, o.operands, strict=True)]
            moved = self.keep(o.kind.make(operands, _plain(o, stored), o.loc))
            if isinstance(o.type, Results):
                self.from_zero.add(o)
                return moved
            return self.shifted(moved, o.type, add)
        if rule_for(o.kind).by_storage:
            return self.keep(o.kind.make(operands, _plain(o, stored), o.loc))
        value = self.keep(o.kind.make([self.float_of(x) for x in o.operands], _plain(o, expressed), o.loc))
        if quantization(o.type):
            return self.quantize(value, o.tensor)
        if any_quantized((o.type,)):
            self.in_floats.add(o)
        return value

    def shifted(self, x: Op, t: Type, shift: OpDef) -> Op:
        """The stored integers of type `t` plus (`add`) or minus (`subtract`) its zero points; they wrap around."""
        q = quantization(t)
        zeros = parameters(tensor(t))[1] if q is not None else np.zeros(())
        if q is None or not zeros.any():
            return x
        return self.keep(shift(x, self.number(converted(zeros, q.storage), x), loc=x.loc))

    # ---- numbers
    def number(self, value: Arr, like: Op) -> Op:
        """A constant array (rank 0, or of a value's rank and to be broadcast) in the shape of the value `like`."""
        t = TensorType(from_numpy(value.dtype), like.shape)
        if not t.is_static:
            return self.spread(value, t, like)
        if value.size == 1 or value.shape == t.shape:
            return self.keep(constant(value=Array(value.reshape(()) if value.size == 1 else value, t.shape)))
        axis = next(d for d, n in enumerate(value.shape) if n != 1)
        if value.size != value.shape[axis]:
            return self.keep(constant(value=Array(np.ascontiguousarray(np.broadcast_to(value, t.shape)))))
        line = self.keep(constant(value=Array(np.ascontiguousarray(value.reshape(-1)))))
        return self.keep(broadcast_in_dim(line, broadcast_dimensions=(axis,), type=t))

    def spread(self, value: Arr, t: TensorType, like: Op) -> Op:
        """The same for a shape that is known at run time only."""
        axes = tuple(d for d, n in enumerate(value.shape) if n != 1)
        if len(axes) > 1:
            raise Unsupported("blocks of scales need a shape known at compile time", loc=like.loc)
        line = self.keep(constant(value=Array(value.reshape(-1) if axes else value.reshape(()))))
        sizes = []
        for d, n in enumerate(t.shape):
            if isinstance(n, int):
                sizes.append(self.keep(constant(value=Array(np.array([n], np.int32)))))
            else:
                size = self.keep(get_dimension_size(like, dimension=d))
                sizes.append(self.keep(reshape(size, type=TensorType(i32, (1,)))))
        shape = sizes[0] if len(sizes) == 1 else self.keep(concatenate(*sizes, dimension=0))
        return self.keep(dynamic_broadcast_in_dim(line, shape, broadcast_dimensions=axes, type=t))

    def float_of(self, x: Op) -> Op:
        """The floats that a value stands for; a float stands for itself."""
        q = quantization(x.type)
        if q is None:
            return self.new[x]
        known = self.floats.get(x)
        if known is not None:
            return known
        t = x.tensor
        scales, zeros = parameters(t)
        value = self.new[x]
        if zeros.any():
            wide: DType = i32 if q.storage.bits <= 16 else i64
            value = self.keep(convert(value, type=TensorType(wide, t.shape), loc=x.loc))
            value = self.keep(subtract(value, self.number(converted(zeros, wide), value), loc=x.loc))
        real = self.keep(convert(value, type=expressed(t), loc=x.loc))
        known = self.floats[x] = self.keep(multiply(real, self.number(scales, real), loc=x.loc))
        return known

    def quantize(self, x: Op, t: TensorType) -> Op:
        """Floats as the stored integers of type `t`."""
        q = quantization(t)
        assert q is not None
        scales, zeros = parameters(t)
        value = self.keep(divide(x, self.number(scales, x), loc=x.loc))
        if zeros.any():
            value = self.keep(add(value, self.number(converted(zeros, q.expressed), x), loc=x.loc))
        low, high = (self.keep(constant(value=Array(converted(np.array(v, np.int64), q.expressed))))
                     for v in (q.low, q.high))  # fmt: skip
        value = self.keep(clamp(low, value, high, loc=x.loc))
        value = self.keep(round_nearest_even(value, loc=x.loc))
        return self.keep(convert(value, type=stored(t), loc=x.loc))
