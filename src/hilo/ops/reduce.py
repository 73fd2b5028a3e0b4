"""Reductions with any region, and map. Imports ir, loop."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from hilo.errors import require
from hilo.ir.dtypes import DType, bf16, c64, f16, f32, f64, i1, i8, i32
from hilo.ir.module import Function, region
from hilo.ir.op import Op, OpDef
from hilo.ir.registry import op
from hilo.ir.types import TensorType, Type
from hilo.loop.builder import Builder
from hilo.loop.element import Elem
from hilo.ops.checks import (
    accumulates,
    in_range,
    one_input,
    one_or_results,
    one_or_tuple,
    reduced,
    same_shape,
    scalars,
    takes,
    tensors,
    unique,
)
from hilo.ops.elements import Indices, Operand
from hilo.ops.elementwise_arith import add, maximum, minimum
from hilo.ops.fusion import apply_region
from hilo.ops.numeric import narrow, wrap_int
from hilo.ops.regions import apply, sole_op, widened
from hilo.ops.sharding import distinct


def body_of(kind: OpDef, dtype: DType) -> Function:
    """The region that combines two rank-0 values of `dtype` by one op."""
    return region(scalars((dtype, dtype)), lambda a, b: kind(a, b))


@op("reduce")
class reduce:
    """Combine the elements along `dimensions` with `body`, starting from the init values.

    Operands: N inputs of one shape, N rank-0 init values, then what the body captures. `body` takes N accumulated and N
    new elements (and the captures) and gives N. Each init value enters exactly once per result element. Elements
    combine in row-major order; how they are grouped is open, so the body should be associative. Sums of narrower floats
    than f32 accumulate in it and round once. Spec: reduce.
    """

    @staticmethod
    def infer(*types: Type, dimensions: tuple[int, ...], body: Function) -> Type:
        n = reduced(types, body, "C3", "C6")
        xs, inits = tensors(types[:n]), tensors(types[n : 2 * n], "I2", "init value")
        first = xs[0]
        one_input(xs, types, "C6")
        require(all(same_shape(x.shape, first.shape) for x in xs), "C1", "inputs have several shapes: {xs}", xs=xs)
        accumulated = accumulates(body, xs, types[2 * n :], "C6")
        for x, init in zip(xs, inits, strict=True):
            require(init.dtype is x.dtype, "C2", "the init value {i} of {x} has another element type", i=init, x=x)
            require(init.rank == 0, "I2", "the init value {i} of {x} must have rank 0", i=init, x=x)
        require(in_range(dimensions, first.rank), "C4", "dimensions {d} are not all axes of {x}", d=dimensions, x=first)
        require(unique(dimensions), "C5", "dimensions {d} name an axis twice", d=dimensions)
        shape = [m for d, m in enumerate(first.shape) if d not in dimensions]
        return one_or_results([TensorType(e.dtype, shape) for e in accumulated])

    @staticmethod
    def evaluate(*arrays: np.ndarray, dimensions: tuple[int, ...], body: Function) -> Any:
        n = len(body.results)
        dtypes = [r.dtype for r in body.results]
        xs = [x.astype(t.np, copy=False) for x, t in zip(arrays[:n], dtypes, strict=True)]
        inits = [x.astype(t.np, copy=False) for x, t in zip(arrays[n : 2 * n], dtypes, strict=True)]
        captured = arrays[2 * n :]
        shape = tuple(m for d, m in enumerate(xs[0].shape) if d not in dimensions)
        if sole_op(body, len(captured)) == "add" and dtypes[0].kind in "fciu":
            return _sum(xs[0], inits[0], dimensions, dtypes[0])
        order = [*sorted(dimensions), *(d for d in range(xs[0].ndim) if d not in dimensions)]
        terms = int(np.prod([xs[0].shape[d] for d in dimensions], dtype=np.int64))
        xs = [np.transpose(x, order).reshape(terms, *shape) for x in xs]
        start = [np.broadcast_to(i, shape) for i in inits]
        if terms == 0 or 0 in shape:
            return one_or_tuple([x.copy() for x in start])
        while len(xs[0]) > 1:  # neighbours combine, so that the order stays and sums are pairwise
            k = len(xs[0]) // 2
            pairs = [*(x[0 : 2 * k : 2] for x in xs), *(x[1 : 2 * k : 2] for x in xs)]
            halves = apply(body, pairs, captured, (k, *shape))
            xs = [np.concatenate([h, x[2 * k :]]) for h, x in zip(halves, xs, strict=True)]
        return one_or_tuple(apply(body, [*start, *(x[0] for x in xs)], captured, shape))

    @staticmethod
    def sharding(*types: TensorType, out: Type, dimensions: tuple[int, ...], body: Function) -> str:
        n = len(body.results)
        each = distinct(types)
        kept = "".join(c for d, c in enumerate(each[0]) if d not in dimensions)
        return f"{','.join([each[0]] * n + each[n:])}->{','.join([kept] * n)}"

    @staticmethod
    def cost(*types: TensorType, out: Type, dimensions: tuple[int, ...], body: Function) -> tuple[int, int]:
        n = len(body.results)
        work = max(len(body.ops) - len(body.params), 1)
        return types[0].size * work, sum(t.nbytes for t in types[:n])

    examples = lambda: [
        ((TensorType(f32, (3, 4)), TensorType(f32)), {"dimensions": (1,), "body": body_of(add, f32)}),
        ((TensorType(bf16, (5, 2)), TensorType(bf16)), {"dimensions": (0,), "body": body_of(add, bf16)}),
        ((TensorType(f16, (2, 3, 2)), TensorType(f16)), {"dimensions": (0, 2), "body": body_of(add, f16)}),
        ((TensorType(c64, (7,)), TensorType(c64)), {"dimensions": (0,), "body": body_of(add, c64)}),
        ((TensorType(f64, (2, 3)), TensorType(f64)), {"dimensions": (), "body": body_of(add, f64)}),
        ((TensorType(i8, (40,)), TensorType(i8)), {"dimensions": (0,), "body": body_of(add, i8)}),
        ((TensorType(i1, (2, 3)), TensorType(i1)), {"dimensions": (1,), "body": body_of(add, i1)}),
        ((TensorType(f32, (3, 0)), TensorType(f32)), {"dimensions": (1,), "body": body_of(maximum, f32)}),
        ((TensorType(i32, (3, 5)), TensorType(i32)), {"dimensions": (1, 0), "body": body_of(maximum, i32)}),
        (
            (TensorType(f32, (3, 5)), TensorType(i32, (3, 5)), TensorType(f32), TensorType(i32)),
            {
                "dimensions": (1,),
                "body": region(scalars((f32, i32, f32, i32)), lambda a, i, b, j: (maximum(a, b), add(i, j))),
            },
        ),
        (
            (TensorType(f32, (3,)), TensorType(f32), TensorType(f32)),
            {  # the last operand is captured
                "dimensions": (0,),
                "body": region(scalars((f32, f32, f32)), lambda a, b, c: minimum(maximum(a, b), c)),
            },
        ),
    ]


def _sum(x: np.ndarray, init: np.ndarray, dimensions: tuple[int, ...], dtype: DType) -> np.ndarray:
    if dtype.is_narrow and dtype.is_int:
        return wrap_int(np.sum(x.astype(np.int64), axis=dimensions) + init.astype(np.int64), dtype)
    if dtype.is_int:
        return np.add(np.sum(x, axis=dimensions, dtype=dtype.np), init, dtype=dtype.np)
    wide = np.complex128 if dtype.is_complex else np.float64
    total = np.sum(x.astype(wide), axis=dimensions, initial=-0.0) + init.astype(wide)
    return narrow(total, dtype)


def mapped(ranks: Sequence[int], body: Function) -> int:
    """How many of map's operands are inputs: those after them are captured, with parameters of their own rank."""
    if not ranks or ranks[0] == 0:
        return len(ranks)
    n = 0
    while n < min(len(ranks), len(body.params)) and ranks[n] and not tensors([body.params[n].type])[0].rank:
        n += 1
    return n


@op("map")
class map_:
    """Apply `body`, a region of rank-0 values, to the elements of N tensors of one shape.

    Operands: the inputs, then what the region captures. `dimensions` must list all axes in order. Spec: map.
    """

    @staticmethod
    def infer(*types: Type, dimensions: tuple[int, ...], body: Function) -> Type:
        n = mapped([t.rank if isinstance(t, TensorType) else -1 for t in types], body)
        require(types, "C2", "map needs an input")
        require(n > 0, "C4", "body takes {p}, but must take a rank-0 tensor for each input", p=body.param_types)
        xs = tensors(types[:n])
        require(all(same_shape(x.shape, xs[0].shape) for x in xs), "C1", "inputs have several shapes: {xs}", xs=xs)
        ok = dimensions == tuple(range(xs[0].rank))
        require(ok, "C3", "dimensions {d} must list all axes of {x} in order", d=dimensions, x=xs[0])
        takes(body, [*scalars(x.dtype for x in xs), *types[n:]], "C4", "body")
        require(len(body.results) == 1, "C4", "body returns {n} values instead of one", n=len(body.results))
        result = tensors(body.result_types, "C4", "body's result")[0]
        require(result.rank == 0, "C4", "body returns {r}, not a rank-0 tensor", r=result)
        return result.with_shape(xs[0].shape)

    @staticmethod
    def evaluate(*arrays: np.ndarray, dimensions: tuple[int, ...], body: Function) -> np.ndarray:
        n = mapped([a.ndim for a in arrays], body)
        return apply(body, arrays[:n], arrays[n:], arrays[0].shape)[0]

    @staticmethod
    def expand(*operands: Op, dimensions: tuple[int, ...], body: Function) -> Op | None:
        """The body's ops on whole tensors; captured values are broadcast. Other bodies: passes/element_loops.py."""
        shape = operands[0].shape
        wide = widened(body, shape)
        if wide is None:
            return None
        from hilo.ops.shape import broadcast_in_dim

        new = {
            p: x if x.shape == shape else broadcast_in_dim(x, broadcast_dimensions=(), type=p.type)
            for p, x in zip(wide.params, operands, strict=True)
        }
        for o in wide.ops:
            if o not in new:
                new[o] = o.with_operands([new[x] for x in o.operands])
        return new[wide.results[0]]

    @staticmethod
    def element(
        b: Builder, out: TensorType, index: Indices, *operands: Operand, dimensions: tuple[int, ...], body: Function
    ) -> Elem:
        n = mapped([o.type.rank for o in operands], body)
        return apply_region(b, body, [*(x(index) for x in operands[:n]), *(x(()) for x in operands[n:])])[0]

    @staticmethod
    def sharding(*types: TensorType, out: TensorType, dimensions: tuple[int, ...], body: Function) -> str:
        n = mapped([t.rank for t in types], body)
        each = distinct(types)
        return f"{','.join([each[0]] * n + each[n:])}->{each[0]}"

    examples = lambda: [
        ((TensorType(f32, (3, 4)), TensorType(f32, (3, 4))), {"dimensions": (0, 1), "body": body_of(add, f32)}),
        ((TensorType(i32), TensorType(i32)), {"dimensions": (), "body": body_of(add, i32)}),
        ((TensorType(i32, (0,)), TensorType(i32, (0,))), {"dimensions": (0,), "body": body_of(maximum, i32)}),
    ]
