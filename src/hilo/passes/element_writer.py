"""Loops over the elements of tensors, written as tensor IR: counters, flat arrays, regions with captures. Imports ir,
rewrite.

A `Writer` appends ops to a list. Regions are written by functions; what they use from outside becomes captures. Numbers
are rank-0 i64 values; a Python number stands for its constant.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from hilo.ir.dtypes import DType, i64
from hilo.ir.module import Function, parameter
from hilo.ir.op import Array, Op
from hilo.ir.types import Results, TensorType, Type
from hilo.rewrite import ops as make
from hilo.rewrite.bodies import instantiate

Number = Op | int


class Writer:
    """Appends to `ops`; new ops are located at `loc`."""

    def __init__(self, ops: list[Op], loc: Any = None) -> None:
        self.ops = ops
        self.loc = loc

    def add(self, o: Op) -> Op:
        """Take a new op in."""
        if o.loc is None and self.loc is not None:
            o = Op(o.kind, o.operands, o.attrs, o.type, self.loc)
        self.ops.append(o)
        return o

    def results(self, o: Op) -> list[Op]:
        """The results of an op of the list, each taken in."""
        out = list(o.results())
        if isinstance(o.type, Results):
            self.ops += out
        return out

    def inline(self, body: Function, operands: Sequence[Op]) -> tuple[Op, ...]:
        """The results of `body` on `operands`."""
        copies, results = instantiate(body, operands, self.loc)
        self.ops += copies
        return results

    # ---- numbers
    def number(self, n: Any) -> Op:
        """A number: an int, or a number already."""
        if isinstance(n, Op):
            return n
        return self.add(make.constant(value=Array(np.asarray(n, np.int64))))

    def truth(self, value: bool = True) -> Op:
        return self.add(make.constant(value=Array(np.asarray(value))))

    def _value(self, x: Number) -> int | None:
        if isinstance(x, Op):
            return int(x.attrs["value"].scalar) if x.name == "constant" else None
        return x

    def _arithmetic(self, name: str, fold: Callable[[int, int], int], a: Number, b: Number) -> Op:
        x, y = self._value(a), self._value(b)
        if x is not None and y is not None and not (y == 0 and name in ("divide", "remainder")):
            return self.number(fold(x, y))
        return self.add(make.symbol(name)(self.number(a), self.number(b)))

    def plus(self, a: Number, b: Number) -> Op:
        return self._arithmetic("add", lambda x, y: x + y, a, b)

    def subtract(self, a: Number, b: Number) -> Op:
        return self._arithmetic("subtract", lambda x, y: x - y, a, b)

    def multiply(self, a: Number, b: Number) -> Op:
        return self._arithmetic("multiply", lambda x, y: x * y, a, b)

    def divide(self, a: Number, b: Number) -> Op:
        """a / b of numbers that are not negative (others round towards zero)."""
        return self._arithmetic("divide", lambda x, y: x // y, a, b)

    def remainder(self, a: Number, b: Number) -> Op:
        """The rest of `divide`."""
        return self._arithmetic("remainder", lambda x, y: x % y, a, b)

    def least(self, a: Number, b: Number) -> Op:
        return self._arithmetic("minimum", min, a, b)

    def product(self, numbers: Iterable[Number]) -> Op:
        out: Op = self.number(1)
        for n in numbers:
            out = self.multiply(out, n)
        return out

    def linear(self, at: Sequence[Number], shape: Sequence[Number]) -> Op:
        """The row-major position of an index."""
        out: Op = self.number(0)
        for i, n in zip(at, shape, strict=True):
            out = self.plus(self.multiply(out, n), i)
        return out

    def delinear(self, position: Op, shape: Sequence[Op]) -> list[Op]:
        """The index of a row-major position."""
        out: list[Op] = []
        for n in reversed(shape):
            out.append(self.remainder(position, n))
            position = self.divide(position, n)
        return out[::-1]

    def less(self, a: Number, b: Number) -> Op:
        return self._compare("LT", a, b)

    def equal(self, a: Op, b: int) -> Op:
        """Whether an integer of any type is `b`."""
        other = self.add(make.constant(value=Array(np.asarray(b, a.dtype.np))))
        return self.add(make.compare(a, other, comparison_direction="EQ"))

    def _compare(self, direction: str, a: Number, b: Number) -> Op:
        return self.add(make.compare(self.number(a), self.number(b), comparison_direction=direction))

    def within(self, x: Op, end: Any) -> Op:
        """Whether 0 <= x < end."""
        return self.both(self._compare("GE", x, 0), self.less(x, end))

    def both(self, a: Op, b: Op) -> Op:
        return self.add(make.and_(a, b))

    def clamped(self, x: Op, most: int) -> Op:
        """An integer of any type as a number of [-most, most]."""
        if x.dtype.kind == "u" and x.dtype.bits == 64:
            top = self.add(make.constant(value=Array(np.asarray(most, np.uint64))))
            x = self.add(make.minimum(x, top))
        return self.add(make.clamp(self.number(-most), self.convert(x, i64), self.number(most)))

    # ---- arrays
    def convert(self, x: Op, dtype: DType) -> Op:
        return x if x.dtype is dtype else self.add(make.convert(x, type=x.tensor.with_dtype(dtype)))

    def transpose(self, x: Op, order: Sequence[int]) -> Op:
        return x if tuple(order) == (*range(x.tensor.rank),) else self.add(make.transpose(x, permutation=tuple(order)))

    def sizes(self, x: Op) -> list[Op]:
        """The size of each axis."""
        out = []
        for d, n in enumerate(x.shape):
            at_run_time = not isinstance(n, int)
            size = self.add(make.get_dimension_size(x, dimension=d)) if at_run_time else self.number(n)
            out.append(self.convert(size, i64))
        return out

    def flat(self, x: Op) -> Op:
        """All elements as one axis."""
        t = x.tensor
        return x if t.rank == 1 else self.add(make.reshape(x, type=t.with_shape([t.size])))

    def shaped(self, flat: Op, t: Type) -> Op:
        """A flat array as a value of type `t`."""
        return flat if flat.type is t else self.add(make.reshape(flat, type=t))

    def full(self, value: Op, t: TensorType) -> Op:
        """A flat array of as many elements as `t` has, all the rank-0 `value`."""
        return self.add(make.broadcast_in_dim(value, broadcast_dimensions=(), type=t.with_shape([t.size])))

    def zero(self, dtype: DType) -> Op:
        return self.add(make.constant(value=Array(np.zeros((), dtype.np))))

    def at(self, flat: Op, i: Number) -> Op:
        """Element `i`, or the one nearest to it that there is."""
        one = self.add(make.dynamic_slice(flat, self.number(i), slice_sizes=(1,)))
        return self.add(make.reshape(one, type=TensorType(flat.dtype)))

    def put(self, flat: Op, value: Op, i: Number) -> Op:
        """The array with another element `i` (or the nearest one)."""
        one = self.add(make.reshape(value, type=TensorType(flat.dtype, (1,))))
        return self.add(make.dynamic_update_slice(flat, one, self.number(i)))

    # ---- regions
    def loop(self, count: Op, carried: Sequence[Op], step: Callable[[Op, Sequence[Op]], Sequence[Op]]) -> list[Op]:
        """carried = step(i, carried) for all i below `count`; gives the last ones."""

        def turn(values: Sequence[Op]) -> list[Op]:
            new = step(values[0], values[1:])
            return [self.plus(values[0], 1), *new]

        return self.repeat([self.number(0), *carried], lambda values: self.less(values[0], count), turn)[1:]

    def repeat(self, carried: Sequence[Op], cond: Callable[[Sequence[Op]], Op],
               step: Callable[[Sequence[Op]], Sequence[Op]]) -> list[Op]:  # fmt: skip
        """while cond(carried): carried = step(carried). Gives the last ones."""
        types = [c.type for c in carried]
        traced = [self._trace(types, lambda values: [cond(values)]), self._trace(types, step)]
        captures, (test, body) = _closed(traced)
        return self.results(self.add(make.while_(*carried, *captures, cond=test, body=body)))

    def where(self, pred: Op, then: Callable[[], Sequence[Op]], otherwise: Callable[[], Sequence[Op]]) -> list[Op]:
        """The values of `then()` if `pred` holds, else those of `otherwise()`; only these are computed."""
        captures, (yes, no) = _closed([self._trace((), lambda _: then()), self._trace((), lambda _: otherwise())])
        return self.results(self.add(make.if_(pred, *captures, true_branch=yes, false_branch=no)))

    def _trace(self, types: Iterable[Type], build: Callable[[Sequence[Op]], Sequence[Op]]) -> _Traced:
        """What `build` writes for parameters of `types`."""
        params = [parameter(i, t, self.loc) for i, t in enumerate(types)]
        outside, self.ops = self.ops, []
        results = build(params)
        made, self.ops = self.ops, outside
        return _Traced(params, made, list(results))


class _Traced(NamedTuple):
    """A region that may still use values from outside."""

    params: list[Op]
    ops: list[Op]
    results: list[Op]

    def outside(self) -> Iterator[Op]:
        """The values from outside, in the order of their use."""
        inside = {*self.params, *self.ops}
        used = [x for o in self.ops for x in o.operands]
        yield from (x for x in (*used, *self.results) if x not in inside)

    def close(self, captures: Iterable[Op]) -> Function:
        """The region, with parameters for `captures` behind its own and clones of constants."""
        params = list(self.params)
        new: dict[Op, Op] = {p: p for p in params}
        for c in captures:
            new[c] = parameter(len(params), c.type, c.loc)
            params.append(new[c])
        ops = list(params)
        for x in self.outside():
            if x not in new:
                new[x] = Op(x.kind, (), x.attrs, x.type, x.loc)
                ops.append(new[x])
        for o in self.ops:
            new[o] = o.with_operands([new[x] for x in o.operands])
            ops.append(new[o])
        return Function("region", params, ops, [new[r] for r in self.results])


def _closed(traced: Sequence[_Traced]) -> tuple[list[Op], list[Function]]:
    """What the regions of one op capture together, and the closed regions."""
    captures = list(dict.fromkeys(x for t in traced for x in t.outside() if x.name != "constant"))
    return captures, [t.close(captures) for t in traced]
