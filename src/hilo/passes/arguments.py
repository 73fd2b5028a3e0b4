"""What a compilation is told of arguments: shapes, constants, which are given away. Imports errors and ir."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from hilo.errors import Error
from hilo.ir.module import Function
from hilo.ir.op import PARAMETER, Array, Attrs, Op
from hilo.ir.registry import lookup
from hilo.ir.types import any_quantized, compatible


def sized(f: Function, shapes: Mapping[int, Iterable[int]]) -> Function:
    """`f` for some shapes of parameters only; the types of other values follow (passes/shapes.py)."""
    new: dict[Op, Op] = {}
    for number, shape in shapes.items():
        if not isinstance(number, int | np.integer) or not is_shape(shape):
            shown = shape if isinstance(shape, tuple | list) else type(shape).__name__
            raise Error(f"shapes: {number!r:.20}: {shown!s:.80} is no argument's number with a shape")
        if not 0 <= number < len(f.params):
            raise Error(f"shapes: @{f.name} has no argument {number}")
        p = f.params[number]
        t = p.tensor.with_shape(tuple(map(int, shape)))
        if not compatible(t, p.type):
            raise Error(f"shapes: argument {number} of @{f.name} is {p.type}, which cannot be {t}")
        new[p] = Op(PARAMETER, (), p.attrs.replace(type=t), t, p.loc)
    ops = []
    for o in f.ops:
        if any(x in new for x in o.operands):
            new[o] = o.with_operands([new.get(x, x) for x in o.operands])
        ops.append(new.get(o, o))
    return f.replace(params=[new.get(p, p) for p in f.params], ops=ops, results=[new.get(r, r) for r in f.results])


def is_shape(shape: Any) -> bool:
    """Whether something is a tuple or list of sizes."""
    return isinstance(shape, tuple | list) and all(isinstance(n, int | np.integer) and n >= 0 for n in shape)


def bind(f: Function, constants: Mapping[int, Any]) -> Function:
    """`f` with some parameters bound to arrays; the others are numbered anew. `Error` if an array does not fit."""
    from hilo.ir.interpret import check_argument

    constant, bitcast = lookup("stablehlo.constant"), lookup("stablehlo.bitcast_convert")
    new: dict[Op, Op] = {}
    kept: list[Op] = []
    ops: list[Op] = []
    for number in constants:
        if not isinstance(number, int | np.integer):
            raise Error(f"constants: {number!r:.80} is no argument's number")
        if not 0 <= number < len(f.params):
            raise Error(f"constants: @{f.name} has no argument {number}")
    for i, p in enumerate(f.params):
        if i in constants:
            a = check_argument(f"constants[{i}]", constants[i], p.type).copy()
            a.flags.writeable = False  # ours alone: the attribute need not copy it again
            new[p] = constant(value=Array(a), loc=p.loc)
            if any_quantized((p.type,)):  # the stored integers are given
                ops.append(new[p])
                new[p] = bitcast(new[p], type=p.type, loc=p.loc)
            ops.append(new[p])
        else:
            new[p] = Op(PARAMETER, (), Attrs(index=len(kept), type=p.type), p.type, p.loc)
            kept.append(new[p])
    ops = [*kept, *ops]
    for o in f.ops:
        if o not in new:
            changed = o.with_operands([new.get(x, x) for x in o.operands])
            new[o] = changed
            ops.append(changed)
    return f.replace(params=kept, ops=ops, results=[new[r] for r in f.results])


def given_away(f: Function) -> dict[int, int | None]:
    """Arguments that the program itself donates (the attributes that JAX and TensorFlow write), and the result that
    each is meant for, if it says so."""
    wishes: dict[int, int | None] = {}
    for i, attrs in enumerate(f.arg_attrs):
        if "tf.aliasing_output" in attrs or "jax.buffer_donor" in attrs:
            wish = attrs.get("tf.aliasing_output")
            number = str(wish).partition(":")[0].strip()  # an attribute of another dialect is text
            wishes[i] = int(number) if number.isdecimal() else None
    return wishes


def check_donate(donate: Iterable[int], kept: list[int], entry: str) -> list[int]:
    """The donated arguments, each once. Raises `Error` for one that there is not."""
    for d in donate:
        if not isinstance(d, int | np.integer) or d not in kept:
            raise Error(f"donate: @{entry} has no argument {d!s:.20} to give away")
    return list(dict.fromkeys(donate))
