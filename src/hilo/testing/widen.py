"""A program with its floats made float64: with the interpreter, the measure of everybody's rounding errors.

Imports ir."""

from __future__ import annotations

from typing import Any

import numpy as np

from hilo.ir.dtypes import DType, c64, c128, f64
from hilo.ir.module import Function, Module
from hilo.ir.op import GET, PARAMETER, Array, Attrs, Op
from hilo.ir.registry import lookup
from hilo.ir.types import FutureType, Results, TensorType, TupleType, Type


def widen(module: Module) -> Module:
    """`module` computing in f64 (c128) wherever it computes in floats; integers stay. Bits of floats are taken in the
    original type: a bitcast is surrounded by conversions."""
    return module.replace({name: widen_function(f) for name, f in module.functions.items()})


def wide_array(a: np.ndarray) -> np.ndarray:
    """An argument for the widened program: floats as float64, complex numbers as complex128."""
    if a.dtype.kind == "c":
        return a.astype(np.complex128)
    return a if a.dtype.kind in "biu" else a.astype(np.float64)


def _dtype(t: DType) -> DType:
    return f64 if t.is_float else c128 if t is c64 else t


def _type(t: Any) -> Any:
    if isinstance(t, TensorType):
        return t.with_dtype(_dtype(t.dtype))
    if isinstance(t, FutureType | Results | TupleType):
        return type(t)(map(_type, t.types))
    return t


def _attr(v: Any) -> Any:
    if isinstance(v, Function):
        return widen_function(v)
    if isinstance(v, tuple):
        return tuple(map(_attr, v))
    if isinstance(v, Array):
        if v.data.dtype.kind in "biu":
            return v
        return Array(wide_array(v.data.reshape(-1)[:1])[0], v.data.shape) if v.is_splat else Array(wide_array(v.data))
    return _type(v) if isinstance(v, Type) else v


def widen_function(f: Function) -> Function:
    """The same for one function or region."""
    new: dict[Op, Op] = {}
    ops: list[Op] = []

    def keep(o: Op) -> Op:
        ops.append(o)
        return o

    convert = lookup("stablehlo.convert")
    for o in f.ops:
        operands = [new[x] for x in o.operands]
        if o.kind is PARAMETER:
            t = _type(o.type)
            new[o] = keep(Op(PARAMETER, (), o.attrs.replace(type=t), t, o.loc))
        elif o.kind is GET:
            new[o] = keep(o.kind.make(operands, o.attrs, o.loc))
        elif o.kind.full_name == "stablehlo.bitcast_convert":
            source = operands[0]
            if source.type is not o.operands[0].type:
                source = keep(convert(source, type=o.operands[0].type))
            bits = keep(o.kind.make((source,), o.attrs, o.loc))
            wide = _type(o.type)
            new[o] = bits if wide is o.type else keep(convert(bits, type=wide))
        else:
            attrs = Attrs({k: _attr(v) for k, v in o.attrs.items()})
            new[o] = keep(o.kind.make(operands, attrs, o.loc))
    return f.replace(params=[new[p] for p in f.params], ops=ops, results=[new[r] for r in f.results])
