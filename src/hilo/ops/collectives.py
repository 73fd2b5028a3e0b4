"""Collective ops: over the groups of a grid of processes (ops/groups.py) in the interpreter. Imports ir.

A program that runs as one process, as native code does, has groups of one: what a process exchanges with itself. Groups
of several are then `Unsupported` at run time.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from hilo.errors import Unsupported, require
from hilo.ir.dtypes import DType, bf16, f32, from_numpy, i32
from hilo.ir.module import Function
from hilo.ir.op import Op, Opaque
from hilo.ir.process import current
from hilo.ir.registry import op
from hilo.ir.types import Dim, TensorType, Type, result_types
from hilo.ops.checks import accumulates, one_or_results, one_or_tuple, same_dim, tensors, unique
from hilo.ops.convert import convert
from hilo.ops.elementwise_arith import add
from hilo.ops.groups import (
    Channel,
    Groups,
    across,
    along,
    check_size,
    combined,
    gathered,
    listed,
    part,
    promoted,
    whole_group,
)
from hilo.ops.reduce import body_of
from hilo.ops.sharding import passed_through

CHANNEL: Final = {"channel_handle": None, "use_global_device_ids": False}


def alone(groups: Groups) -> bool:
    """Whether process 0 is in a group (no groups at all: one group of everybody)."""
    groups = listed(groups)
    if any(len([p for p in g if p >= 0]) > 1 for g in groups):
        raise Unsupported(f"groups {tuple(map(tuple, groups))} need several processes, but the program runs as one; "
                          "hilo.interpret_parallel simulates several")  # fmt: skip
    return not groups or any(0 in g for g in groups)


def check_groups(
    groups: Groups, rules: tuple[str, str], label: str, *, padded: bool = False, dense: bool = True,
    needed: bool = False,
) -> None:
    """Require process numbers that are unique and, if `dense`, are 0 up to their number; axes of a mesh are text."""
    if isinstance(groups, Opaque):
        return  # axes of a mesh
    check_rows(groups, "replica_groups", label)
    require(groups or not needed, rules[1], "with use_global_device_ids, replica_groups must not be empty")
    numbers = [p for g in groups for p in g if not (padded and p == -1)]
    require(unique(numbers), rules[0], "replica_groups {g} name a process twice", g=groups)
    ok = all(p >= 0 and (p < len(numbers) or not dense) for p in numbers)
    require(ok, rules[1], "replica_groups {g} must be the numbers 0 to {n}", g=groups, n=len(numbers) - 1)


def check_rows(rows: Any, what: str, label: str) -> None:
    """Require a matrix of integers, which is a tuple of tuples."""
    ok = isinstance(rows, tuple) and all(
        isinstance(r, tuple) and len(r) == len(rows[0]) and all(isinstance(n, int) for n in r) for r in rows
    )
    require(ok, label, "{what} {r} must be a tensor of rank 2", what=what, r=rows)


def check_channel(channel: tuple[int, int] | None, use_global: bool, rule: str) -> None:
    ok = not use_global or (channel is not None and channel[0] > 0)
    require(ok, rule, "use_global_device_ids needs a positive channel handle, not {c}", c=channel)


def combined_type(computation: Function, x: TensorType, rule: str) -> DType:
    """The element type that the computation of a reduction gives."""
    require(len(computation.results) == 1, rule, "computation returns {n} values, not one", n=len(computation.results))
    (e,) = accumulates(computation, [x], (), rule, "computation")
    return e.dtype


def promoted_op(x: Op, d: DType) -> Op:
    return x if x.dtype is d else convert(x, type=x.tensor.with_dtype(d))


def one_or_ops(ops: list[Op]) -> Op | tuple[Op, ...]:
    """What `expand` returns for an op of one result or of several."""
    return ops[0] if len(ops) == 1 else tuple(ops)


def free(*types: Type, out: Type, **_: Any) -> tuple[int, int]:
    """A collective's cost: no arithmetic, its results read and written."""
    return 0, sum(2 * t.nbytes for t in result_types(out) if isinstance(t, TensorType))


@op("all_reduce")
class all_reduce:
    """Combine each operand's elements over the processes of a group with `computation`. Spec: all_reduce."""

    attrs = CHANNEL

    @staticmethod
    def infer(*types: Type, replica_groups: Groups, channel_handle: tuple[int, int] | None,
              use_global_device_ids: bool, computation: Function) -> Type:  # fmt: skip
        xs = tensors(types)
        require(len(xs) > 0, "I1", "nothing to reduce")
        check_groups(replica_groups, ("C1", "C3"), "I2", padded=True, needed=use_global_device_ids)
        check_channel(channel_handle, use_global_device_ids, "C4")
        return one_or_results([x.with_dtype(combined_type(computation, x, "C5")) for x in xs])

    @staticmethod
    def evaluate(*xs: np.ndarray, replica_groups: Groups, channel_handle: Channel, use_global_device_ids: bool,
                 computation: Function) -> Any:  # fmt: skip
        d = tensors(computation.result_types)[0].dtype
        if (me := current()) is None:
            alone(replica_groups)
            return one_or_tuple([promoted(x, d) for x in xs])
        group = whole_group(me, replica_groups, across(channel_handle, use_global_device_ids), "C2", "C3")
        each = gathered(me, "all_reduce", channel_handle, group, xs)
        return one_or_tuple([combined(values, computation, d) for values in each])

    @staticmethod
    def expand(*xs: Op, replica_groups: Groups, computation: Function, **_: Any) -> Op | tuple[Op, ...]:
        alone(replica_groups)
        d = tensors(computation.result_types)[0].dtype
        return one_or_ops([promoted_op(x, d) for x in xs])

    sharding = staticmethod(passed_through)
    cost = staticmethod(free)
    examples = [
        ((TensorType(f32, (2, 3)),), {"replica_groups": ((0,),), "computation": body_of(add, f32)}),
        ((TensorType(bf16, (3,)),), {"replica_groups": (), "computation": body_of(add, f32)}),
    ]


class _Exchange:
    """The pieces of an op whose results, in a group of one, are its operands."""

    attrs: Any = CHANNEL

    @staticmethod
    def expand(*xs: Op, replica_groups: Groups, **_: Any) -> Op | tuple[Op, ...]:
        alone(replica_groups)
        return one_or_ops(list(xs))

    sharding = staticmethod(passed_through)
    cost = staticmethod(free)


@op("all_gather", typed=True)
class all_gather(_Exchange):
    """Concatenate each operand of the processes of a group along `all_gather_dim`. Spec: all_gather."""

    @staticmethod
    def infer(*types: Type, all_gather_dim: int, replica_groups: Groups, channel_handle: tuple[int, int] | None,
              use_global_device_ids: bool, type: Type) -> Type:  # noqa: A002  # fmt: skip
        xs, outs = tensors(types), tensors(result_types(type))
        require(len(xs) > 0, "I1", "nothing to gather")
        for x in xs:
            ok = 0 <= all_gather_dim < x.rank
            require(ok, "C1", "all_gather_dim {d} is not an axis of {x}", d=all_gather_dim, x=x)
        check_groups(replica_groups, ("C2", "C4"), "I3", needed=use_global_device_ids)
        check_channel(channel_handle, use_global_device_ids, "C5")
        require(len(xs) == len(outs), "C6", "{n} operands, but {m} results", n=len(xs), m=len(outs))
        for x, t in zip(xs, outs, strict=True):
            ok = x.dtype is t.dtype and x.rank == t.rank and all(
                _multiple(n, m) if d == all_gather_dim else same_dim(n, m)
                for d, (n, m) in enumerate(zip(x.shape, t.shape, strict=True)))  # fmt: skip
            require(ok, "C6", "{t} is not made of tensors {x} along axis {d}", t=t, x=x, d=all_gather_dim)
        return type

    @staticmethod
    def evaluate(*xs: np.ndarray, all_gather_dim: int, replica_groups: Groups, channel_handle: Channel,
                 use_global_device_ids: bool, type: Type) -> Any:  # noqa: A002  # fmt: skip
        if (me := current()) is None:
            alone(replica_groups)
            return one_or_tuple(xs)
        group = whole_group(me, replica_groups, across(channel_handle, use_global_device_ids), "C3", "C4")
        each = gathered(me, "all_gather", channel_handle, group, xs)
        results = [np.concatenate(values, all_gather_dim) for values in each]
        for r, t in zip(results, tensors(result_types(type)), strict=True):
            check_size(r, t, "C6", len(group))
        return one_or_tuple(results)

    examples = [((TensorType(f32, (2, 3)),),
                 {"all_gather_dim": 1, "replica_groups": ((0,),), "type": TensorType(f32, (2, 3))})]  # fmt: skip


def _multiple(n: Any, m: Any) -> bool:
    """Whether `m` may be a positive number of times `n`."""
    return isinstance(n, Dim) or isinstance(m, Dim) or n == m or (n > 0 and m > 0 and m % n == 0)


@op("all_to_all")
class all_to_all(_Exchange):
    """Send the `split_count` parts of each operand along `split_dimension` to the processes of a group.

    What a process gets it concatenates along `concat_dimension`. Spec: all_to_all.
    """

    attrs = {"channel_handle": None}

    @staticmethod
    def infer(*types: Type, split_dimension: int, concat_dimension: int, split_count: int, replica_groups: Groups,
              channel_handle: tuple[int, int] | None) -> Type:  # fmt: skip
        xs = tensors(types)
        require(len(xs) > 0, "I1", "nothing to send")
        require(split_count > 0, "C4", "split_count {n} must be positive", n=split_count)
        check_groups(replica_groups, ("C5", "C7"), "I5")
        ok = isinstance(replica_groups, Opaque) or bool(replica_groups)
        ok = ok and all(len(g) == split_count for g in replica_groups if not isinstance(g, str))
        require(ok, "C8", "replica_groups {g} must be groups of {n}", g=replica_groups, n=split_count)
        out = []
        for x in xs:
            require(0 <= split_dimension < x.rank, "C1", "split_dimension {d} is not an axis of {x}", d=split_dimension,
                    x=x)  # fmt: skip
            ok = 0 <= concat_dimension < x.rank
            require(ok, "C3", "concat_dimension {d} is not an axis of {x}", d=concat_dimension, x=x)
            shape = list(x.shape)
            n = shape[split_dimension]
            ok = isinstance(n, Dim) or n % split_count == 0
            require(ok, "C2", "axis {d} of {x} does not fall into {n} parts", d=split_dimension, x=x, n=split_count)
            if split_dimension != concat_dimension and split_count > 1:
                shape[split_dimension] = Dim() if isinstance(n, Dim) else n // split_count
                m = shape[concat_dimension]
                shape[concat_dimension] = Dim() if isinstance(m, Dim) else m * split_count
            out.append(x.with_shape(shape))
        return one_or_results(out)

    @staticmethod
    def evaluate(*xs: np.ndarray, split_dimension: int, concat_dimension: int, split_count: int,
                 replica_groups: Groups, channel_handle: Channel) -> Any:  # fmt: skip
        if (me := current()) is None:
            alone(replica_groups)
            return one_or_tuple(xs)
        group = whole_group(me, replica_groups, along(channel_handle), "C6", "C7")
        each = gathered(me, "all_to_all", channel_handle, group, xs)
        mine = group.index(me.id)
        return one_or_tuple([
            np.concatenate([part(x, split_dimension, split_count, mine) for x in values], concat_dimension)
            for values in each
        ])

    examples = [((TensorType(f32, (2, 3)), TensorType(i32, (4, 1))),
                 {"split_dimension": 0, "concat_dimension": 1, "split_count": 1,
                  "replica_groups": ((0,),)})]  # fmt: skip


@op("reduce_scatter", typed=True)
class reduce_scatter:
    """all_reduce, of which each process of a group keeps its part along `scatter_dimension`. Spec: reduce_scatter."""

    attrs = CHANNEL

    @staticmethod
    def infer(x: Type, *, scatter_dimension: int, replica_groups: Groups, channel_handle: tuple[int, int] | None,
              use_global_device_ids: bool, computation: Function, type: Type) -> Type:  # noqa: A002  # fmt: skip
        x, t = tensors((x, type))
        require(0 <= scatter_dimension < x.rank, "C2", "scatter_dimension {d} is not an axis of {x}",
                d=scatter_dimension, x=x)  # fmt: skip
        check_groups(replica_groups, ("C3", "C5"), "I3", needed=use_global_device_ids)
        check_channel(channel_handle, use_global_device_ids, "C6")
        d = combined_type(computation, x, "C7")
        require(t.dtype is d, "C9", "the result {t} must have elements of {d}", t=t, d=d)
        ok = x.rank == t.rank and all(
            k == scatter_dimension or same_dim(n, m) for k, (n, m) in enumerate(zip(x.shape, t.shape, strict=True))
        )
        require(ok, "C8", "{t} is not a part of {x} along axis {d}", t=t, x=x, d=scatter_dimension)
        n = x.shape[scatter_dimension]
        alone = channel_handle is None or channel_handle[0] <= 0 or use_global_device_ids  # groups are as written
        parts = len(replica_groups[0]) if replica_groups and alone and not isinstance(replica_groups, Opaque) else 1
        ok = isinstance(n, Dim) or n % max(parts, 1) == 0
        require(ok, "C1", "axis {d} of {x} does not fall into {n} parts", d=scatter_dimension, x=x, n=parts)
        ok = _multiple(t.shape[scatter_dimension], n)
        require(ok, "C8", "axis {d} of {x} does not fall into parts {t}", d=scatter_dimension, x=x, t=t)
        return t

    @staticmethod
    def evaluate(x: np.ndarray, *, scatter_dimension: int, replica_groups: Groups, channel_handle: Channel,
                 use_global_device_ids: bool, computation: Function, type: TensorType) -> np.ndarray:  # noqa: A002  # fmt: skip
        if (me := current()) is None:
            alone(replica_groups)
            return promoted(x, type.dtype)
        group = whole_group(me, replica_groups, across(channel_handle, use_global_device_ids), "C4", "C5")
        n = x.shape[scatter_dimension]
        require(n % len(group) == 0, "C1", "axis {d} of size {n} does not fall into parts for {p} processes",
                d=scatter_dimension, n=n, p=len(group))  # fmt: skip
        (values,) = gathered(me, "reduce_scatter", channel_handle, group, [x])
        mine = [part(v, scatter_dimension, len(group), group.index(me.id)) for v in values]
        result = combined(mine, computation, type.dtype)
        check_size(result, type, "C8", len(group))
        return result

    @staticmethod
    def expand(x: Op, *, replica_groups: Groups, type: TensorType, **_: Any) -> Op:  # noqa: A002
        alone(replica_groups)
        return promoted_op(x, type.dtype)

    sharding = staticmethod(passed_through)
    cost = staticmethod(free)
    examples = [((TensorType(f32, (2, 3)),), {"scatter_dimension": 0, "replica_groups": ((0,),),
                 "computation": body_of(add, f32), "type": TensorType(f32, (2, 3))})]  # fmt: skip


@op("cross-replica-sum")
class cross_replica_sum(_Exchange):
    """The sum over the processes of a group; an older form of all_reduce. Spec: none, a dialect's op."""

    attrs: Any = {}

    @staticmethod
    def infer(x: Type, *, replica_groups: Groups) -> Type:
        check_groups(replica_groups, ("C1", "C3"), "I2", padded=True)
        return tensors((x,))[0]

    @staticmethod
    def evaluate(x: np.ndarray, *, replica_groups: Groups) -> np.ndarray:
        if (me := current()) is None:
            alone(replica_groups)
            return x
        group = whole_group(me, replica_groups, along(None), "C2", "C3")
        (values,) = gathered(me, "cross-replica-sum", None, group, [x])
        d = from_numpy(x.dtype)
        return combined(values, body_of(add, d), d)

    examples = [((TensorType(f32, (2, 3)),), {"replica_groups": ((0,),)})]
