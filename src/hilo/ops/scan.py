"""chlo.scan: a loop over slices along an axis, with carried values. It expands into a while. Imports ir, ops."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from hilo.errors import Unsupported, require
from hilo.ir.dtypes import bf16, f32, i32, i64
from hilo.ir.interpret import prepared
from hilo.ir.module import Function, region
from hilo.ir.op import Op
from hilo.ir.registry import op
from hilo.ir.types import Dim, TensorType, Type
from hilo.ops.checks import one_or_results, one_or_tuple, same_dim, same_shape, tensors
from hilo.ops.compare import compare
from hilo.ops.control import while_
from hilo.ops.decompose import full
from hilo.ops.elementwise_arith import add, multiply, subtract
from hilo.ops.regions import inlined
from hilo.ops.shape import reshape
from hilo.ops.sharding import unsharded
from hilo.ops.slicing import dynamic_slice, dynamic_update_slice


def scanned_inputs(types: Sequence[Type], body: Function) -> int:
    """How many of a scan's operands are inputs: those of one axis more than the parameter of `body` that they meet."""
    n = 0
    for t, p in zip(types, body.params, strict=False):
        if not isinstance(t, TensorType) or not isinstance(p.type, TensorType) or t.rank != p.type.rank + 1:
            break
        n += 1
    return n


def _without(shape: Sequence[Any], d: int) -> tuple[Any, ...]:
    return (*shape[:d], *shape[d + 1 :])


def _with(shape: Sequence[Any], d: int, n: Any) -> tuple[Any, ...]:
    return (*shape[:d], n, *shape[d:])


@op("scan", dialect="chlo")
class scan:
    """Apply `body` to one slice of the inputs after the other along `dimension`, from the last if `is_reverse`.

    Operands: inputs, then inits. `body` takes a slice of each input (without the axis) and the carried values, and
    gives a slice of each output, then the carried values for the next turn. Results: the outputs, then the carried
    values after the last turn. `scan_dim_size` says how many turns there are; inputs say so too. `is_associative` is
    a hint that is not used, so that results are those of the order that is written. Source: CHLO.
    """

    attrs = {"scan_dim_size": None, "is_reverse": False, "is_associative": None}

    @staticmethod
    def infer(*types: Type, dimension: int, scan_dim_size: int | None, is_reverse: bool, is_associative: bool | None,
              body: Function) -> Type:  # fmt: skip
        operands = tensors(types, "")
        m = len(body.params)
        require(m == len(types), "", "the body takes {m} values for {n} operands", m=m, n=len(types))
        require(dimension >= 0, "", "dimension {d} is negative", d=dimension)
        require(scan_dim_size is None or scan_dim_size >= 0, "", "scan_dim_size {n} is negative", n=scan_dim_size)
        n = scanned_inputs(types, body)
        turns: Any = scan_dim_size
        for i, t in enumerate(operands[:n]):
            require(dimension < t.rank, "", "dimension {d} is no axis of input {i}, {t}", d=dimension, i=i, t=t)
            size = t.shape[dimension]
            ok = turns is None or same_dim(turns, size)
            require(ok, "", "input {i} has {n} slices along dimension {d}, not {m}", i=i, n=size, m=turns, d=dimension)
            turns = size if turns is None or isinstance(turns, Dim) else turns
        for i, (t, p) in enumerate(zip(operands, tensors(body.param_types, "", "parameter"), strict=True)):
            want = t.with_shape(_without(t.shape, dimension)) if i < n else t
            ok = p.dtype is want.dtype and same_shape(p.shape, want.shape)
            require(ok, "", "the body's parameter {i} must be {w} for the operand {t}, not {p}", i=i, w=want, t=t, p=p)
        results, carried = tensors(body.result_types, "", "result"), operands[n:]
        outputs = len(results) - len(carried)
        require(outputs >= 0, "", "the body gives {n} values for {m} carried", n=len(results), m=len(carried))
        require(n + outputs > 0, "", "a scan needs an input or an output")
        require(turns is not None, "", "a scan without inputs needs a scan_dim_size")
        for r, t in zip(results[outputs:], carried, strict=True):
            ok = r.dtype is t.dtype and same_shape(r.shape, t.shape)
            require(ok, "", "the body gives {r} for the carried {t}", r=r, t=t)
        ok = all(dimension <= r.rank for r in results[:outputs])
        require(ok, "", "dimension {d} is no axis of an output", d=dimension)
        whole = [r.with_shape(_with(r.shape, dimension, turns)) for r in results[:outputs]]
        return one_or_results([*whole, *carried])

    @staticmethod
    def evaluate(*arrays: np.ndarray, dimension: int, scan_dim_size: int | None, is_reverse: bool,
                 is_associative: bool | None, body: Function) -> Any:  # fmt: skip
        types = [TensorType(f32, x.shape) for x in arrays]
        n = scanned_inputs(types, body)
        inputs, carried = arrays[:n], list(arrays[n:])
        turns = inputs[0].shape[dimension] if inputs else scan_dim_size
        assert turns is not None
        made = [r.tensor for r in body.results[: len(body.results) - len(carried)]]
        outputs = [np.zeros(_with(t.shape, dimension, turns), t.dtype.np) for t in made]
        turn = prepared(body)
        for i in reversed(range(turns)) if is_reverse else range(turns):
            results = turn([*(np.asarray(np.take(x, i, dimension)) for x in inputs), *carried])
            for whole, part in zip(outputs, results, strict=False):
                whole[(slice(None),) * dimension + (i,)] = part
            carried = results[len(outputs) :]
        return one_or_tuple([*outputs, *carried])

    @staticmethod
    def expand(*operands: Op, dimension: int, scan_dim_size: int | None, is_reverse: bool,
               is_associative: bool | None, body: Function) -> Op | tuple[Op, ...]:  # fmt: skip
        types = [o.tensor for o in operands]
        n = scanned_inputs(types, body)
        turns = types[0].shape[dimension] if n else scan_dim_size
        results = [r.tensor for r in body.results]
        if not isinstance(turns, int) or not all(t.is_static for t in (*types, *results)):
            raise Unsupported("a scan over sizes known only at run time cannot be compiled")
        inits = operands[n:]
        outputs = [t.with_shape(_with(t.shape, dimension, turns)) for t in results[: len(results) - len(inits)]]
        if turns == 0:
            return one_or_tuple([*(full(0, t.dtype, t.shape) for t in outputs), *inits])
        state = [TensorType(i64), *outputs, *(o.type for o in inits)]

        def more(i: Op, *_: Op) -> Op:
            return compare(i, full(turns, i64), comparison_direction="LT")

        def turn(i: Op, *values: Op) -> tuple[Op, ...]:
            wholes, carried, inputs = (values[: len(outputs)], values[len(outputs) : len(state) - 1],
                                       values[len(state) - 1 :])  # fmt: skip
            at = subtract(full(turns - 1, i64), i) if is_reverse else i
            parts = inlined(body, [*(_slice(x, at, dimension) for x in inputs), *carried])
            new = [_stored(w, part, at, dimension) for w, part in zip(wholes, parts, strict=False)]
            return add(i, full(1, i64)), *new, *parts[len(outputs) :]

        begin = [full(0, i64), *(full(0, t.dtype, t.shape) for t in outputs), *inits, *operands[:n]]
        kinds = [b.type for b in begin]
        loop = while_(*begin, cond=region(kinds, more), body=region(kinds, turn)).results()
        return one_or_tuple(loop[1 : len(state)])

    sharding = unsharded

    examples = lambda: [
        ((TensorType(f32, (5,)), TensorType(f32)),
         {"dimension": 0, "body": region([TensorType(f32)] * 2, lambda x, c: (add(x, c),) * 2)}),
        ((TensorType(i32, (2, 4)), TensorType(i32, (2,))),
         {"dimension": 1, "is_reverse": True, "scan_dim_size": 4,
          "body": region([TensorType(i32, (2,))] * 2, lambda x, c: (multiply(x, c), add(x, c)))}),
        ((TensorType(bf16, (3, 2)), TensorType(f32, (3, 2))),
         {"dimension": 0,
          "body": region([TensorType(bf16, (2,)), TensorType(f32, (2,))], lambda x, y: (add(y, y), x))}),
        ((TensorType(f32, (2,)),),
         {"dimension": 1, "scan_dim_size": 3, "body": region([TensorType(f32, (2,))], lambda c: (c, add(c, c)))}),
        ((TensorType(f32, (3,)), TensorType(f32)),
         {"dimension": 0, "body": region([TensorType(f32)] * 2, lambda x, c: add(x, c))}),
        ((TensorType(f32, (0, 2)), TensorType(f32, (2,))),
         {"dimension": 0, "body": region([TensorType(f32, (2,))] * 2, lambda x, c: (add(x, c),) * 2)}),
    ]  # fmt: skip


def _slice(x: Op, at: Op, d: int) -> Op:
    shape = x.shape
    starts = [at if k == d else full(0, i64) for k in range(len(shape))]
    cut = dynamic_slice(x, *starts, slice_sizes=tuple(1 if k == d else n for k, n in enumerate(shape)))
    return reshape(cut, type=x.tensor.with_shape(_without(shape, d)))


def _stored(whole: Op, part: Op, at: Op, d: int) -> Op:
    starts = [at if k == d else full(0, i64) for k in range(whole.tensor.rank)]
    return dynamic_update_slice(whole, reshape(part, type=part.tensor.with_shape(_with(part.shape, d, 1))), *starts)
